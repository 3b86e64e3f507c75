// What the page of a drive and that of many share: numbers as texts, charts, tables, the stream.
"use strict";

// How far back charts may look: what is counted here each second, or what the server keeps.
const SPANS = [
  { word: "2min", title: "2 min", from: "two minutes ago", steps: 120, step: 1 },
  { word: "1h", title: "1 h", from: "an hour ago", steps: 360, step: 10 },
  { word: "24h", title: "24 h", from: "a day ago", steps: 1440, step: 60 },
];
const RETRY_MS = 1000;
// Longer than the time between two messages: a server that is silent for that long is gone.
const SILENCE_MS = 5000;
const SVG = "http://www.w3.org/2000/svg";

const at = (id) => document.getElementById(id);

// A text, and where it stands for a number, that number for programs.
function write(node, text, value) {
  if (node.textContent !== text) node.textContent = text;
  if (value !== undefined) node.value = String(value);
}

const show = (id, text, value) => write(at(id), text, value);

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function drawing(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

// Rounds as `blockio::text` does: what comes to a thousand belongs to the next unit.
function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  let count = value;
  while (count >= 999.5 && unit < units.length - 1) { count /= 1000; unit += 1; }
  const digits = unit === 0 || count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2;
  return `${count.toFixed(digits)} ${units[unit]}`;
}
const rate = (count) => `${bytes(Math.max(0, count))}/s`;
const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const number = (value) => Math.round(value).toLocaleString("en");
const ratio = (value) => value === null ? "–" : value.toFixed(3);
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const celsius = (value) => `${value.toFixed(1)} °C`;
const watts = (value) => `${value.toFixed(1)} W`;
const micros = (value) => value === null ? "–"
  : value < 1000 ? `${value.toFixed(value < 10 ? 1 : 0)} µs`
  : value < 1e6 ? `${(value / 1000).toFixed(value < 1e4 ? 1 : 0)} ms`
  : `${(value / 1e6).toFixed(1)} s`;

// The shortest latency of a bucket of a histogram, in microseconds: eight buckets of 0.128 us, then
// eight for each doubling.
const bucketStart = (bucket) => bucket < 8 ? 0.128 * bucket
  : 0.128 * (8 + bucket % 8) * 2 ** (Math.floor(bucket / 8) - 1);

// A percentile of the latencies between two counts in microseconds, interpolated within its bucket;
// null of so few commands that it would be their longest latency.
function latency(now, then, share) {
  const counts = now.latency_histogram.map(
    (count, index) => Math.max(0, count - (then.latency_histogram[index] ?? 0)));
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total * (1 - share) < 1 - 1e-9) return null;
  const wanted = share * total;
  let below = 0;
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && below + count >= wanted) {
      const [start, end] = [bucketStart(bucket), bucketStart(bucket + 1)];
      return start + (end - start) * (wanted - below) / count;
    }
    below += count;
  }
  return null;
}

// --- Charts -------------------------------------------------------------------------------------

// The least of 1, 2 and 5 times a power of ten that is not below.
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

// A colour of the style sheet, when it is drawn with: the reader's machine may turn dark.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);

class Chart {
  constructor(title, series, { text, least, stacked = false }) {
    // Live rows are added each second; those of a longer span are shown in their place.
    Object.assign(this, { text, least, stacked, rows: [], past: null, span: SPANS[0] });
    this.body = element("tbody");
    this.details = element("details", {}, element("summary", {}, "The last ten steps as a table"),
      element("div", { class: "scroll" }, element("table", {},
        element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Seconds ago"),
          ...series.map(({ name }) => element("th", { scope: "col" }, name)))), this.body)));
    this.details.addEventListener("toggle", () => this.tell());
    const header = element("header", {}, element("h3", {}, title));
    const plot = element("div", { class: "plot", "aria-hidden": "true" });
    this.node = element("figure", { "aria-label": title, class: stacked ? "stack" : "" },
      header, plot, this.details);
    this.plot = new uPlot(this.options(series, header), [[], ...series.map(() => [])], plot);
    new ResizeObserver(() => this.plot.setSize({ width: plot.clientWidth,
      height: plot.clientHeight })).observe(plot);
    this.look(SPANS[0], null);
  }

  options(series, header) {
    const axis = { stroke: () => colour("faint"), font: "11px system-ui, sans-serif", gap: 6,
      ticks: { show: false } };
    // Of the step under the pointer, else of the last; areas lie upon each other.
    const value = (index) => (plot, top, _, step) => {
      const own = (this.past ?? this.rows).at(step ?? -1)?.[index] ?? null;
      return own === null ? "–" : this.text(own);
    };
    const lines = series.map(({ name, tone, dashed }, index) => ({
      label: name, class: tone, stroke: () => colour(tone), width: this.stacked ? 0 : 1.7,
      dash: dashed ? [5, 3] : undefined, fill: this.stacked ? () => colour(tone) : undefined,
      points: { show: false }, value: value(index),
    }));
    return {
      width: 1, height: 1, padding: [8, 14, 0, 0],
      legend: { mount: (_, legend) => header.append(legend), markers: { fill: () => "",
        dash: (_, index) => series[index - 1].dashed ? "dashed" : "solid" } },
      cursor: { y: false, drag: { x: false, setScale: false }, sync: { key: "charts" } },
      scales: { x: { time: false, range: () => [(1 - this.span.steps) * this.span.step, 0] },
        y: { range: (_, low, high) => [0, ceiling(Math.max(this.least, high ?? 0))] } },
      axes: [
        { ...axis, size: 22, grid: { show: false }, splits: ({ scales }) => [scales.x.min, 0],
          values: () => [this.span.from, "now"] },
        { ...axis, size: 64, grid: { stroke: () => colour("grid"), width: 1 },
          splits: ({ scales: { y } }) => [0, y.max / 2, y.max],
          values: (_, splits) => splits.map(this.text) },
      ],
      series: [{}, ...lines],
      bands: !this.stacked ? []
        : lines.slice(1).map((_, index) => ({ series: [index + 2, index + 1] })),
    };
  }

  // Shows the rows of a span, or where there are none those that are added each second.
  look(span, past) {
    Object.assign(this, { span, past });
    this.draw();
    this.tell();
  }

  // One value a series, null where there is none; they stack in their order.
  add(values) {
    this.rows.push(values);
    if (this.rows.length > SPANS[0].steps) this.rows.shift();
    if (this.past) return;
    this.draw();
    this.tell();
  }

  forget() {
    this.rows = [];
    this.draw();
  }

  // What a server counted before this page was open.
  begin(rows) {
    this.rows = [...rows, ...this.rows].slice(-SPANS[0].steps);
    this.draw();
  }

  draw() {
    const rows = this.past ?? this.rows;
    let below = rows.map(() => 0);
    const column = (_, index) => {
      if (!this.stacked) return rows.map((row) => row[index]);
      below = rows.map((row, step) => below[step] + (row[index] ?? 0));
      return below;
    };
    const seconds = rows.map((_, step) => (step + 1 - rows.length) * this.span.step);
    this.plot.setData([seconds, ...this.plot.series.slice(1).map(column)]);
  }

  tell() {
    if (!this.details.open) return;
    const recent = (this.past ?? this.rows).slice(-10).reverse();
    this.body.replaceChildren(...recent.map((row, index) =>
      line([String(index * this.span.step), ...row.map((value) => value === null ? "–" : this.text(value))])));
  }
}

// --- Tables -------------------------------------------------------------------------------------

function line(cells) {
  const row = element("tr");
  cells.forEach((cell, index) => {
    const { text, tone, node } = typeof cell === "object" ? cell : { text: cell };
    const field = element(index === 0 ? "th" : "td", index === 0 ? { scope: "row" } : {});
    if (tone) field.className = tone;
    field.append(node ?? text);
    row.append(field);
  });
  return row;
}

// Rewrites only what is different, so that a reader's place and selection stay.
function fillNode(body, rows) {
  rows.forEach((row, index) => {
    const old = body.children[index];
    if (!old) body.append(row);
    else if (!old.isEqualNode(row)) old.replaceWith(row);
  });
  while (body.children.length > rows.length) body.lastElementChild.remove();
}

const fill = (id, rows) => fillNode(at(id), rows);

const pairs = (id, rows) => fill(id, rows.map(([name, text]) =>
  element("div", {}, element("dt", {}, name), element("dd", {}, text))));

function bar(parts) {
  const node = element("span", { class: "bar", "aria-hidden": "true" });
  for (const [tone, share] of parts) {
    const part = element("i", { class: tone });
    part.style.width = `${Math.min(100, 100 * share).toFixed(1)}%`;
    node.append(part);
  }
  return node;
}

function eventRow(atUnixMs, text) {
  const moment = new Date(atUnixMs);
  return element("li", {}, element("time", { datetime: moment.toISOString() },
    moment.toLocaleString([], { dateStyle: "short", timeStyle: "medium" })),
  element("span", {}, ...coded(text)));
}

// How much of the space is taken. Full is a fault only where clients were promised more than fits.
function showTaken(meter, taken, most, isThin) {
  const share = taken / Math.max(1, most);
  [meter.low, meter.high] = isThin ? [0.8, 0.95] : [1, 1];
  meter.value = share;
  return `${percent(share)}${isThin ? "; thin: the capacity exceeds the physical space" : ""}`;
}

const HEALTH = { ok: "Health is ok.", degraded: "Degraded", critical: "Critical" };
const toneOf = (state) => state === "critical" ? "bad" : state === "degraded" ? "warn" : "";

// What is wrong, and what to do next. Commands stand between backquotes.
const problemRow = ({ severity, text, remedy }) => element("li", { class: toneOf(severity) },
  element("span", { class: "what" }, ...coded(text)),
  element("span", { class: "next" }, ...coded(remedy)));

const coded = (text) => text.split("`").map((part, index) =>
  index % 2 ? element("code", {}, part) : part);

// Work on what is stored, beside what clients ask for.
function works(maintenance, dies = []) {
  const { rebuild, redundancy, scrub, purge } = maintenance ?? {};
  const done = (work, [gone, all] = [work.rows_done, work.rows]) => work.failure
    ?? (work.is_running ? `${percent(gone / Math.max(1, all))} done` : "done");
  return [
    ...(rebuild ? [`Rebuild of die ${rebuild.die}: ${done(rebuild)}`] : []),
    // Once no die has failed, what an earlier attempt came to means nothing any more.
    ...(redundancy && (redundancy.is_running || dies.some((die) => die.is_lost)) ? [`Redundancy without the failed dies: ${
      done(redundancy, [redundancy.pages_done, redundancy.pages])}`] : []),
    ...(scrub ? [`Scrub: ${done(scrub)}, ${counted(scrub.units_bad, "corrupt unit")} found, ${
      number(scrub.units_restored)} repaired, ${counted(scrub.pages_lost, "page")} lost${
      Number.isInteger(scrub.for_die) ? `, begun by the volume, because reads found damage on die ${scrub.for_die}` : ""}`] : []),
    ...(purge ? [`Purge: ${done(purge, [purge.superblocks_done, purge.superblocks])}`] : []),
  ];
}

const ledClass = (led) => `led ${["read", "write"].includes(led) ? "active" : led}`;

// --- The token ----------------------------------------------------------------------------------

const keepToken = (text) => sessionStorage.setItem("token", text);
const keptToken = () => sessionStorage.getItem("token") ?? "";

// Takes the token out of the address: it is to stay neither there nor in the history.
function takeToken() {
  const [, token] = location.hash.match(/^#token=([0-9a-f]+)$/) ?? [];
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  keepToken(token);
}

// --- The stream ---------------------------------------------------------------------------------

// Shows what is told each second; says so when nothing is, and asks again.
function follow(showAll) {
  let silence = 0;
  const connect = () => {
    const stream = new EventSource("stream");
    const lose = () => {
      stream.close();
      clearTimeout(silence);
      at("led").className = "led off";
      show("link", "no answer: the page shows old data; retrying");
      // What was well is not known to be any more.
      show("health", "Unknown: the server of this page does not answer.");
      at("health").className = "verdict bad";
      setTimeout(connect, RETRY_MS);
    };
    const wait = () => {
      clearTimeout(silence);
      silence = setTimeout(lose, SILENCE_MS);
    };
    stream.onmessage = ({ data }) => {
      wait();
      show("link", "live, updated each second");
      showAll(JSON.parse(data));
    };
    stream.onerror = lose;
    wait();
  };
  connect();
}
