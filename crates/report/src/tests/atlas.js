// Uses the atlas as a reader would, and leaves what it saw as JSON in the element #seen.
const seen = { faults: window.faults };
const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const table = document.querySelector("table.atlas");
const names = () => [...table.tBodies[0].rows].filter((row) => !row.hidden)
  .map((row) => row.cells[0].textContent.trim());
const head = (text) => [...table.tHead.rows[0].cells].find((cell) => cell.textContent.startsWith(text));
const form = document.querySelector(".controls");
const given = (name, value) => {
  form.elements[name].value = value;
  form.elements[name].dispatchEvent(new Event("input", { bubbles: true }));
};
const comparison = document.getElementById("comparison");
const choose = (...places) => {
  for (const box of table.querySelectorAll("input")) {
    const checked = places.includes(Number(box.value));
    if (box.checked !== checked) box.click();
  }
};
const compared = async (...places) => {
  choose();
  choose(...places);
  await wait(300);
  const charts = [...comparison.querySelectorAll("figure")];
  const first = JSON.parse(charts[0].querySelector("script").textContent);
  return {
    charts: charts.length,
    drawn: comparison.querySelectorAll(".drawn canvas").length,
    series: first.series.length,
    dashes: first.series.map((one) => one.dash),
    conditions: comparison.querySelector(".conditions")?.textContent ?? "",
    order: comparison.querySelector(".headlines").textContent,
    caution: comparison.querySelector(".caution")?.textContent ?? "",
  };
};
(async () => {
  await wait(300);
  const writes = head("4K random writes").querySelector("button");
  writes.click();
  seen.rising = [names()[0], names().at(-1)];
  writes.click();
  seen.falling = [names()[0] !== "Other", names().at(-1)];
  seen.sorted = head("4K random writes").getAttribute("aria-sort");
  given("find", "maker u.2");
  seen.found = names();
  given("find", "");
  given("origin", "real");
  seen.measured = names();
  given("origin", "");
  seen.closed = [comparison.hidden];
  choose(0);
  seen.closed.push(comparison.hidden);
  seen.formats = await compared(0, 1);
  seen.alike = await compared(0, 2);
  seen.unlike = await compared(0, 3);
  seen.address = location.hash;
  const told = document.createElement("pre");
  told.id = "seen";
  told.textContent = JSON.stringify(seen);
  document.body.append(told);
})();
