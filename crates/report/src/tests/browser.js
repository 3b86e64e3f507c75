// Uses the page as a reader would, and leaves what it saw as JSON in the element #seen.
const seen = { faults: window.faults, saved: [] };
const told = document.createElement("pre");
told.id = "seen";
const tell = () => {
  told.textContent = JSON.stringify(seen);
  document.body.append(told);
};
(async () => {
  const blobs = new Map();
  URL.createObjectURL = (blob) => {
    const url = `made:${blobs.size}`;
    blobs.set(url, blob);
    return url;
  };
  HTMLAnchorElement.prototype.click = function click() {
    seen.saved.push([this.getAttribute("download"), blobs.get(this.getAttribute("href"))]);
  };
  const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
  const pressed = (root, name) => [...root.querySelectorAll("button")]
    .find((button) => button.textContent === name);
  await wait(500);

  const figures = [...document.querySelectorAll("figure.chart")];
  seen.figures = figures.length;
  seen.opened = figures.filter((figure) => figure.querySelector(".tools")).length;
  const lines = figures.find((figure) => figure.querySelector(".drawn"));
  seen.drawn = document.querySelectorAll(".drawn canvas").length;
  seen.canvas = [...document.querySelectorAll(".drawn canvas")]
    .every((canvas) => canvas.width > 200 && canvas.height > 200);

  // The legend takes a series away and brings it back.
  const series = lines.querySelector(".legend button");
  series.click();
  seen.hidden = series.getAttribute("aria-pressed");
  series.click();
  seen.shown = series.getAttribute("aria-pressed");

  // The scale changes, its button and its unit with it.
  const log = figures.find((figure) => pressed(figure, "Linear scale"));
  pressed(log, "Linear scale").click();
  seen.scale = [Boolean(pressed(log, "Log scale")), log.querySelector(".unit").textContent];

  // The pointer over the middle shows every series.
  const over = lines.querySelector(".u-over");
  const box = over.getBoundingClientRect();
  over.dispatchEvent(new MouseEvent("mousemove",
    { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }));
  await wait(100);
  seen.tip = lines.querySelector(".tip").textContent;

  for (const figure of [lines, ...figures.filter((it) => it.querySelector(".heat")).slice(0, 1)]) {
    for (const format of ["CSV", "SVG", "PNG"]) {
      pressed(figure, format).click();
      await wait(300);
    }
  }
  const { found, counts } = await layouts(PAGES);
  seen.layout = found;
  seen.texts = counts.every((count) => count > 200);
  seen.saved = await Promise.all(seen.saved.map(async ([name, blob]) => {
    const bytes = new Uint8Array(await blob.arrayBuffer());
    const text = name.endsWith("png") ? "" : new TextDecoder().decode(bytes);
    return { name, size: bytes.length, head: [...bytes.slice(0, 4)], text: text.slice(0, 4000),
      variables: text.includes("var(") };
  }));
})().catch((fault) => seen.faults.push(String(fault))).finally(tell);
