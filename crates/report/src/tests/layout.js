// Measures the text of pages in frames of several widths and on paper; returns what lies over
// something else, leaves its place, or is cut.
const LAYOUTS = [["1440", 1440], ["768", 768], ["390", 390], ["print", 688]];
// Texts may touch: glyphs do not fill their boxes.
const TOUCH = 3;

const layoutOf = (page, printed) => {
  const view = page.defaultView;
  const faults = [];
  const wide = page.documentElement.clientWidth;
  const name = (element) => {
    const part = element.closest("figure[id], section[id], header[id], footer[id], aside[id]");
    return `${part?.id ?? "page"} ${element.tagName.toLowerCase()}.${element.getAttribute("class") ?? ""}`;
  };
  const texts = [];
  const walker = page.createTreeWalker(page.body, view.NodeFilter.SHOW_TEXT);
  const range = page.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest("script, style, title, .skip, nav")) continue;
    if (!element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true })) continue;
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width > 1 && box.height > 1) texts.push({ box, element, node });
    }
  }
  const scroller = (element) => {
    for (let it = element; it && it !== page.body; it = it.parentElement) {
      if (["auto", "scroll"].includes(view.getComputedStyle(it).overflowX)) return it;
    }
    return null;
  };
  const said = (text) => `"${text.node.textContent.trim().slice(0, 40)}" in ${name(text.element)}`;
  const cut = new Set();
  const torn = new Set();
  for (const text of texts) {
    const outer = scroller(text.element);
    if (!outer && (text.box.right > wide + 1 || text.box.left < -1)) {
      faults.push(`beyond the page: ${said(text)}`);
    }
    if (outer && text.box.right > outer.getBoundingClientRect().right + 1
      && view.getComputedStyle(outer).backgroundImage === "none") cut.add(said(text));
    if (printed && outer && text.box.bottom > outer.getBoundingClientRect().bottom + 1) {
      cut.add(said(text));
    }
    for (let it = text.element; it && it !== page.body; it = it.parentElement) {
      if (it instanceof view.SVGElement) continue;
      if (!["hidden", "clip"].includes(view.getComputedStyle(it).overflowX)) continue;
      const box = it.getBoundingClientRect();
      if (text.box.right > box.right + 1 || text.box.left < box.left - 1) cut.add(said(text));
    }
  }
  const kept = (element, side) => view.getComputedStyle(element)[side] === "avoid";
  for (const { element } of printed ? texts : []) {
    const path = [];
    for (let it = element; it && it !== page.body; it = it.parentElement) path.push(it);
    const last = path.findIndex((it) => kept(it, "breakAfter"));
    if (last >= 0 && !path.slice(0, last + 1).some((it) => kept(it, "breakInside"))
      && !element.closest("table")) torn.add(name(path[last]));
  }
  faults.push(...[...torn].map((it) => `torn where what follows has no room: ${it}`));
  faults.push(...[...cut].map((it) => `cut without a cue: ${it}`));
  for (const badge of page.querySelectorAll(".badge, .kind, .menu summary, button, .glance td i")) {
    if (badge.closest(".legend") || !badge.checkVisibility()) continue;
    range.selectNodeContents(badge);
    const tops = new Set([...range.getClientRects()].map((box) => Math.round(box.top / 4)));
    if (tops.size > 1) faults.push(`in two lines: "${badge.textContent}" in ${name(badge)}`);
  }
  texts.sort((a, b) => a.box.top - b.box.top);
  for (let index = 0; index < texts.length; index += 1) {
    const one = texts[index];
    for (let next = index + 1; next < texts.length; next += 1) {
      const other = texts[next];
      if (other.box.top > one.box.bottom - TOUCH) break;
      if (other.node === one.node) continue;
      const [first, second] = [scroller(one.element), scroller(other.element)];
      if (first !== second && (first || second)) continue;
      const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const down = Math.min(one.box.bottom, other.box.bottom) - other.box.top;
      if (across > TOUCH && down > TOUCH) faults.push(`overlap: ${said(one)} with ${said(other)}`);
    }
  }
  return { faults, count: texts.length };
};

// Every page at every width, one frame after the other.
const layouts = async (pages) => {
  const found = [];
  const counts = [];
  for (const [title, html] of pages) {
    for (const [layout, width] of LAYOUTS) {
      const frame = document.createElement("iframe");
      frame.style.cssText = `position:absolute;left:0;top:0;border:0;width:${width}px;height:900px`;
      const loaded = new Promise((resolve) => { frame.addEventListener("load", resolve); });
      const printed = layout === "print";
      frame.srcdoc = printed
        ? html.replaceAll("@media print", "@media all").replaceAll(/<script>[^]*?<\/script>/g, "")
        : html;
      document.body.append(frame);
      await loaded;
      const page = frame.contentDocument;
      if (!printed) page.querySelectorAll("details:not(.menu)").forEach((it) => { it.open = true; });
      await new Promise((resolve) => { setTimeout(resolve, 100); });
      const { faults, count } = layoutOf(page, printed);
      counts.push(count);
      found.push(...faults.map((fault) => `${title}, ${layout}: ${fault}`));
      frame.remove();
    }
  }
  return { found, counts };
};
