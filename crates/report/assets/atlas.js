// Sorts and filters the table of drives, and compares those that are chosen.
(() => {
  "use strict";
  const { make, short, trimmed } = globalThis.floatgate;
  const data = JSON.parse(document.getElementById("atlas-data").textContent);
  const table = document.querySelector("table.atlas");
  const rows = [...table.tBodies[0].rows];
  const form = document.querySelector(".controls");
  const boxes = [...table.querySelectorAll("input[type=checkbox]")];
  const section = document.getElementById("comparison");
  const paper = section.querySelector("div");
  const of = (entries, more) => entries.flatMap((entry) => more(entry));
  const element = (tag, attributes, ...children) => {
    const made = make(tag, attributes);
    made.append(...children);
    return made;
  };

  // Sorting: by number where a cell has one, else by text; either way what is in doubt comes behind
  // what is sound, and the unknown last.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.value;
    return value === undefined ? cell.textContent.trim().toLowerCase() : Number(value);
  };
  const isDoubted = (row, column) => row.cells[column].classList.contains("doubted");
  const sortBy = (column, falling) => {
    const order = (a, b) => {
      const [one, other] = [keyOf(a, column), keyOf(b, column)];
      if (one === "" || other === "") return (one === "") - (other === "");
      const doubt = isDoubted(a, column) - isDoubted(b, column);
      if (doubt) return doubt;
      const rising = typeof one === "number" && typeof other === "number"
        ? one - other : String(one).localeCompare(String(other), "en");
      return falling ? -rising : rising;
    };
    table.tBodies[0].append(...rows.sort(order));
  };
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = element("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      // Numbers fall first, words rise first.
      const isWords = rows[0]?.cells[column].matches("th, .words");
      const known = head.getAttribute("aria-sort");
      const falling = known === null ? !isWords : known === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      sortBy(column, falling);
    });
  });

  const filter = () => {
    const words = form.elements.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const origin = form.elements.origin.value;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(words.every((word) => text.includes(word))
        && (origin === "" || row.classList.contains(origin)));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    document.getElementById("listed").textContent = `${shown} of ${rows.length} rows`;
  };

  // Names of the conditions in which measurements of these kinds differ.
  const unlike = (kinds) => {
    const all = [...new Set(kinds)].map((kind) => data.loadConditions[kind]);
    if (all.length < 2) return [];
    return all[0].map(([name, value], at) => (all.some((it) => it[at][1] !== value) ? name : null))
      .filter(Boolean);
  };
  const listed = (names) => (names.length < 2 ? names.join("")
    : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);

  const headed = (chosen, first) => {
    const row = element("tr", {}, make("th", { scope: "col" }, first));
    chosen.forEach((entry, tone) => row.append(element("th", { scope: "col", class: `t${tone}` },
      make("i", { class: "key" }), element("a", { href: entry.page }, entry.name))));
    return element("thead", {}, row);
  };

  const conditions = (chosen) => {
    const body = make("tbody");
    const all = [...new Set(of(chosen, (entry) => entry.conditions.map((it) => it.what)))];
    for (const what of all) {
      const values = chosen.map((entry) => entry.conditions.find((it) => it.what === what)?.value);
      // A suite, or a property of a real machine, that one of them lacks is no difference.
      if (values.filter((value) => value !== undefined).every((value, _, known) => value === known[0])) continue;
      if (what.startsWith("preconditioning of") && values.includes(undefined)) continue;
      body.append(element("tr", {}, make("th", { scope: "row" }, what),
        ...values.map((value) => make("td", { class: "prose" }, value || "–"))));
    }
    if (!body.rows.length) {
      return make("p", { class: "small" }, "Formats, hosts, preconditioning, protocols, versions, "
        + "time lapse, data and platforms are the same. Seeds are in the reviews.");
    }
    return element("div", {}, make("h3", {}, "What differs between the runs"), element("div",
      { class: "scroll" }, element("table", { class: "conditions" }, headed(chosen, "Condition"), body)));
  };

  // Who is first in a row of values, and by how much; said only of like measurements.
  const order = (chosen, cells, less) => {
    let known = cells.map((cell, at) => ({ cell, at })).filter(({ cell }) => cell);
    if (known.length < 2) return "";
    const differing = unlike(known.map(({ cell }) => cell[2]));
    if (differing.length) return `No order: ${listed(differing)} differ${differing.length > 1 ? "" : "s"}.`;
    if (new Set(known.map(({ cell }) => cell[3])).size > 1) return "No order: the loads differ.";
    // A figure in doubt takes itself out, and nothing else.
    const doubted = known.filter(({ cell }) => cell[1]);
    const without = doubted.length ? `, without ${listed(doubted.map(({ at }) => chosen[at].name))}` : "";
    known = known.filter(({ cell }) => !cell[1]);
    if (known.length < 2) return `No order: ${doubted.map(({ cell, at }) => `${chosen[at].name} is ${cell[1]}`).join("; ")}.`;
    known.sort((a, b) => (less ? a.cell[0] - b.cell[0] : b.cell[0] - a.cell[0]));
    const [first, second] = known.map(({ cell }) => cell[0]);
    const lead = less ? second / first : first / second;
    const [best, next] = known.map(({ cell }) => cell);
    const overlaps = best[4] !== null && next[4] !== null && best[4] <= next[5] && next[4] <= best[5];
    if (overlaps) return `Even: the intervals of the first two overlap${without}.`;
    if (!(lead >= 1 + data.meaningful)) {
      return `Even: the first two are less than ${trimmed(data.meaningful * 100)} % apart${without}.`;
    }
    const [name, other] = known.map(({ at }) => chosen[at].name);
    if (less) return `${name}; ${other} takes ${lead >= 2 ? `${trimmed(lead)} times as long` : `${trimmed((lead - 1) * 100)} % longer`}${without}.`;
    return `${name}, ${lead >= 2 ? `${trimmed(lead)} times` : `${trimmed((lead - 1) * 100)} % above`} ${other}${without}.`;
  };

  const gauge = (value, greatest) => {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    for (const [name, it] of [["class", "gauge"], ["viewBox", "0 0 100 10"],
      ["preserveAspectRatio", "none"], ["aria-hidden", "true"]]) svg.setAttribute(name, it);
    const bar = document.createElementNS(space, "rect");
    for (const [name, it] of [["class", "fill"], ["height", 10],
      ["width", (value / greatest) * 100]]) bar.setAttribute(name, it);
    svg.append(bar);
    return svg;
  };

  const headlines = (chosen) => {
    const body = make("tbody");
    data.headlines.forEach((headline, at) => {
      const cells = chosen.map((entry) => entry.headlines[at]);
      const greatest = Math.max(...of(cells, (cell) => (cell ? [cell[0]] : [])));
      if (!Number.isFinite(greatest)) return;
      const row = element("tr", {}, element("th", { scope: "row" }, headline.name, " ",
        make("span", { class: "unit" }, headline.unit)));
      cells.forEach((cell, tone) => row.append(cell ? element("td", { class: `t${tone}` },
        gauge(cell[0], greatest), make("b", {}, short(cell[0])), ...(cell[1] ? [make("i", {}, cell[1])] : []))
        : make("td", { class: "absent" }, "–")));
      row.append(make("td", { class: "prose" }, order(chosen, cells, headline.less)));
      body.append(row);
    });
    const head = headed(chosen, "Headline");
    head.rows[0].append(make("th", { scope: "col" }, "First"));
    return element("div", { class: "scroll" }, element("table", { class: "headlines" }, head, body));
  };

  const METRICS = [["Throughput", "IOPS", "linear", 4], ["Latency, p99.9", "ms", "log", 6]];
  // The loads of several runs, each once, in the order of the reviews.
  const slotsOf = (loads) => [...new Map(loads.map((load) => [`${load[1]},${load[2]}`, [load[1], load[2]]])).values()]
    .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  // A workload under like conditions: the loads of each run that has it.
  const groups = (chosen) => {
    const found = new Map();
    chosen.forEach((entry, tone) => {
      for (const load of entry.loads) {
        const key = `${load[0]}\n${load[3]}`;
        if (!found.has(key)) found.set(key, { workload: load[0], kind: load[3], lines: new Map() });
        const { lines } = found.get(key);
        if (!lines.has(tone)) lines.set(tone, []);
        lines.get(tone).push(load);
      }
    });
    // Formats or hosts of one drive are what is compared.
    const isOneDrive = chosen.every((entry) => String(entry.drive) === String(chosen[0].drive));
    const all = [...found.values()];
    for (const [at, group] of all.entries()) {
      const others = all.slice(at + 1).filter((it) => it.workload === group.workload);
      if (!isOneDrive || !others.length) continue;
      const differing = unlike([group, ...others].map((it) => it.kind));
      if (differing.length !== 1 || !["format", "host"].includes(differing[0])) continue;
      for (const other of others) {
        other.lines.forEach((loads, tone) => group.lines.set(tone, loads));
        other.lines.clear();
      }
    }
    return all.filter(({ lines }) => lines.size);
  };

  const figure = (chosen, group, [title, unit, spacing, column], at) => {
    const slots = slotsOf([...group.lines.values()].flat());
    if (slots.length < 3) return null;
    const isMixed = chosen.some((it) => it.isModel) && chosen.some((it) => !it.isModel);
    const series = [...group.lines].map(([tone, loads]) => {
      const points = loads.filter((load) => load[column] > 0).map((load) => [
        slots.findIndex(([t, q]) => t === load[1] && q === load[2]), load[column]]);
      points.sort((a, b) => a[0] - b[0]);
      return { name: chosen[tone].name, tone, dash: isMixed && chosen[tone].isModel ? 1 : 0,
        x: points.map(([x]) => x), y: points.map(([, y]) => y) };
    }).filter(({ x }) => x.length);
    if (!series.length) return null;
    const chart = { kind: "lines", title: `${title}, ${group.workload}`, source: "", ends: "",
      x: { label: "load", unit: "", spacing: "linear" },
      y: { label: title, unit, spacing, switchable: true }, slots, series, windows: [] };
    const script = make("script", { type: "application/json" });
    script.textContent = JSON.stringify(chart);
    const legend = make("ul", { class: "legend" });
    for (const { name, tone } of series) {
      legend.append(element("li", { class: `t${tone}` }, make("i", { class: "key" }), make("span", {}, name)));
    }
    const unitText = unit + (spacing === "log" ? ", log scale" : "");
    return element("figure", { class: "chart", id: `compared-${at}-${column}` },
      element("header", {}, make("h4", {}, title), make("span", { class: "unit" }, unitText)),
      legend, make("div", { class: "plot" }), script);
  };

  const numbers = (chosen, workload) => {
    const own = chosen.map((entry) => entry.loads.filter((load) => load[0] === workload));
    const body = make("tbody");
    for (const [t, q] of slotsOf(own.flat())) {
      const row = element("tr", {}, make("th", { scope: "row" }, `T${t}Q${q}`));
      for (const loads of own) {
        const load = loads.find((it) => it[1] === t && it[2] === q);
        const time = (value) => (value === null ? "–" : trimmed(value));
        row.append(make("td", {}, load ? `${short(load[4])} IOPS, ${time(load[5])} / ${time(load[6])} ms` : "–"));
      }
      body.append(row);
    }
    return element("details", {}, make("summary", {}, "Numbers: rate, average and p99.9"),
      element("div", { class: "scroll" }, element("table", {}, headed(chosen, "Load"), body)));
  };

  const loads = (chosen) => {
    const all = groups(chosen);
    return [...new Set(all.map((group) => group.workload))].map((workload, at) => {
      const own = all.filter((group) => group.workload === workload);
      const differing = unlike(own.map((group) => group.kind));
      const figures = own.flatMap((group, part) => METRICS.map((metric) => figure(chosen, group, metric, `${at}-${part}`)));
      const charts = figures.filter(Boolean);
      const isDoubted = (entry) => entry.loads.some((load) => load[0] === workload && load[7]);
      const doubted = chosen.filter(isDoubted).map((entry) => entry.name);
      const cautions = [
        ...(charts.length && differing.length ? [`Drawn apart, since the runs differ in ${listed(differing)}.`] : []),
        ...(doubted.length ? [`Some loads of ${listed(doubted)} are in doubt; the review says why.`] : []),
      ];
      const note = cautions.map((text) => make("p", { class: "caution" }, text));
      return element("section", { id: `compared-${at}`, class: "group" }, make("h3", {}, workload), ...note,
        ...(charts.length ? [element("div", { class: "charts" }, ...charts)] : []), numbers(chosen, workload));
    });
  };

  const compare = () => {
    const places = boxes.filter((box) => box.checked).map((box) => Number(box.value));
    const chosen = places.map((place) => data.entries[place]);
    for (const box of boxes) box.disabled = !box.checked && places.length >= data.most;
    const told = document.getElementById("chosen");
    told.replaceChildren(places.length === 0 ? `Choose two to ${data.most} drives to compare them.`
      : `${places.length} chosen`);
    const ids = chosen.map((entry) => encodeURIComponent(entry.id)).join(",");
    history.replaceState(null, "", ids ? `#compare=${ids}` : location.pathname);
    section.hidden = chosen.length < 2;
    if (section.hidden) return;
    const jump = make("button", { type: "button" }, "Go to the comparison");
    jump.addEventListener("click", () => section.scrollIntoView());
    told.append(", ", jump);
    paper.replaceChildren(make("p", { class: "lead" }, listed(chosen.map((it) => it.name))),
      conditions(chosen), headlines(chosen), ...loads(chosen));
    for (const one of paper.querySelectorAll("figure")) {
      one.dispatchEvent(new Event("figure", { bubbles: true }));
    }
  };

  // The address names what is compared, so that it can be passed on.
  const choose = () => {
    const ids = (location.hash.match(/^#compare=(.+)$/)?.[1] ?? "").split(",").map(decodeURIComponent);
    const places = ids.map((id) => data.entries.findIndex((entry) => entry.id === id));
    for (const box of boxes) box.checked = places.slice(0, data.most).includes(Number(box.value));
  };
  for (const box of boxes) {
    box.hidden = false;
    box.addEventListener("change", compare);
  }
  addEventListener("hashchange", () => {
    choose();
    compare();
  });
  choose();
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(() => {
    for (const box of boxes) box.checked = false;
    filter();
    compare();
  }));
  filter();
  compare();
  if (!section.hidden) section.scrollIntoView();
})();
