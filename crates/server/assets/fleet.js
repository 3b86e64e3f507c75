// The page of many drives and of the runs of a folder: is told how all fare once a second.
"use strict";

const SPARK_S = 60;
const EVENTS_MAX = 60;

// --- Parts of cards -----------------------------------------------------------------------------

const sum = (values) => values.reduce((all, value) => all + value, 0);

// A span as one says it.
const span = (seconds) => seconds < 90 ? `${seconds.toFixed(0)} s`
  : seconds < 5400 ? `${(seconds / 60).toFixed(0)} min`
  : `${(seconds / 3600).toFixed(1)} h`;

// The last minute of one or two series, without axes: the numbers stand beside it.
class Spark {
  constructor(...tones) {
    this.rows = [];
    this.lines = tones.map((tone) => drawing("polyline", { class: `line ${tone}` }));
    this.node = drawing("svg", { class: "spark", viewBox: `0 0 ${SPARK_S - 1} 100`,
      preserveAspectRatio: "none", "aria-hidden": "true" });
    this.node.append(...this.lines);
  }

  add(values) {
    this.rows.push(values);
    if (this.rows.length > SPARK_S) this.rows.shift();
    const top = Math.max(Number.MIN_VALUE, ...this.rows.flat());
    const first = SPARK_S - this.rows.length;
    this.lines.forEach((line, series) => {
      line.setAttribute("points", this.rows.map((row, index) =>
        `${first + index},${(97 - 94 * row[series] / top).toFixed(1)}`).join(" "));
    });
  }
}

// --- A drive ------------------------------------------------------------------------------------

const speedOf = (now, then, seconds) => ({
  bytes: (now.bytes - then.bytes) / seconds,
  commands: (now.commands - then.commands) / seconds,
  most: latency(now, then, 0.99),
});

class DriveCard {
  constructor() {
    this.led = element("span", { class: "led off", "aria-hidden": "true" });
    this.name = element("a", { class: "name" });
    this.size = element("span", { class: "size" });
    this.place = element("p", { class: "note place" });
    this.verdict = element("p", { class: "state" });
    this.problems = element("ul", { class: "problems" });
    this.work = element("p", { class: "note" });
    this.figures = ["Read", "Written"].map((title) => {
      const [rate, more] = [element("data"), element("dd", { class: "note" })];
      return { rate, more, node: element("div", {}, element("dt", {}, title),
        element("dd", {}, rate), more) };
    });
    this.spark = new Spark("t0", "t1 d1");
    this.meter = element("meter", { min: "0", max: "1", low: "0.9", high: "0.97", optimum: "0",
      "aria-label": "Share of the space that is used" });
    this.space = element("p", { class: "note" });
    this.facts = element("ul", { class: "facts" });
    this.body = element("div", {}, element("dl", {}, ...this.figures.map(({ node }) => node)),
      this.spark.node, this.meter, this.space, this.facts);
    this.node = element("article", { class: "drive" }, element("header", {}, this.led,
      element("h3", {}, this.name), this.size), this.place, this.verdict,
      this.problems, this.work, this.body);
    this.before = null;
  }

  // Shows what is known; returns what it does now, and what an operator should look after.
  update(card) {
    const { name, volume, is_locate_led_on, is_served, fault, drive } = card;
    write(this.name, name);
    if (drive) this.name.setAttribute("href", `drives/${drive.drive}/`);
    write(this.size, drive ? bytes(drive.capacity_bytes) : "");
    write(this.place, drive ? `${drive.drive}, ${volume}` : volume);
    const light = is_locate_led_on ? "locate" : is_served ? drive.led : "off";
    this.led.className = ledClass(light);
    const problems = is_served ? drive.health.problems : [];
    const faults = is_served ? problems.map(({ text }) => text) : fault ? [fault] : [];
    const state = is_served ? drive.health.state : fault ? "critical" : "ok";
    writeLines(this.verdict, [is_served
      ? state === "ok" ? HEALTH.ok : `${HEALTH[state]}: ${counted(problems.length, "problem")}.`
      : fault ?? "Not served; closed cleanly."]);
    this.verdict.className = `state ${toneOf(state)}`;
    this.node.classList.toggle("alarmed", toneOf(state) === "bad");
    this.node.classList.toggle("warned", toneOf(state) === "warn");
    fillNode(this.problems, problems.map(problemRow));
    this.node.classList.toggle("away", !is_served);
    this.body.hidden = !is_served;
    const running = Object.entries(drive?.maintenance ?? {}).filter(([, it]) => it?.is_running);
    write(this.work, [...(is_locate_led_on ? ["The locate LED is on"] : []),
      ...(is_served ? works(Object.fromEntries(running)) : [])].join("; "));
    const speeds = is_served ? this.updateBody(drive) : null;
    this.before = is_served ? drive : null;
    return { faults, state, speeds };
  }

  updateBody(drive) {
    const then = this.before;
    const isNext = then && then.pid === drive.pid && then.drive === drive.drive
      && drive.uptime_s > then.uptime_s;
    const seconds = isNext ? drive.uptime_s - then.uptime_s : 1;
    const old = isNext ? then : drive;
    const speeds = [speedOf(drive.reads, old.reads, seconds),
      speedOf(drive.writes, old.writes, seconds)];
    speeds.forEach(({ bytes: moved, commands, most }, index) => {
      const { rate: place, more } = this.figures[index];
      write(place, rate(moved), moved);
      write(more, `${number(commands)} IOPS${
        most === null ? "" : `, p99 ${micros(most)}`}`);
    });
    if (isNext) this.spark.add(speeds.map(({ bytes: moved }) => moved));
    const taken = showTaken(this.meter, drive.stored_bytes, drive.stored_bytes_max,
      drive.is_thin);
    write(this.space, `${bytes(drive.stored_bytes)} of ${bytes(drive.stored_bytes_max)
    } used, ${taken}`);
    const facts = [
      drive.percentage_used === null ? "wear not rated" : `${drive.percentage_used} % of the rated wear`,
      `spare ${drive.available_spare ?? "–"} %`,
      `write amplification ${ratio(drive.write_amplification)} since opened`,
      counted(drive.clients, "client"),
      ...(drive.hot_spares ? [counted(drive.hot_spares, "hot spare")] : []),
      ...(drive.temperature_c === null ? [] : [celsius(drive.temperature_c)]),
    ];
    fillNode(this.facts, facts.map((fact) => element("li", {}, fact)));
    return speeds;
  }
}

// --- A run under way ----------------------------------------------------------------------------

const micro = (nanos) => micros(nanos === null ? null : nanos / 1000);

// Rate, throughput and latency of what was measured; dashes where nothing was.
const measured = (glimpse) => glimpse
  ? [`${number(glimpse.iops)} IOPS`, rate(glimpse.throughput_mb_s * 1e6),
    micro(glimpse.latency_ns_avg)]
  : ["–", "–", "–"];

// A table of a run that may be wider or longer than its place, which the keyboard moves as well.
const stepTable = (kind, label, head, body) => element("div", { class: "scroll", tabindex: "0",
  role: "region", "aria-label": label }, element("table", { class: `steps ${kind}` }, head, body));

const stepHead = (...titles) => element("thead", {}, element("tr", {}, ...titles.map((title) =>
  element("th", { scope: "col" }, title))));

class RunCard {
  constructor() {
    this.title = element("h3");
    this.about = element("p", { class: "note place" });
    this.progress = element("progress", { max: "1", "aria-label": "Share of the run that is over" });
    this.left = element("p", { class: "left" });
    this.now = element("tbody");
    this.steps = element("tbody");
    this.summary = element("summary");
    this.sparks = new Map();
    this.node = element("article", { class: "run" }, this.title, this.about, this.progress,
      this.left,
      stepTable("now", "Current steps", stepHead("Current step", "Done", "Rate", "Throughput",
        "Mean latency", "Last minute"), this.now),
      element("details", {}, this.summary, stepTable("all", "All steps", stepHead("Step", "Length",
        "State", "Rate", "Throughput", "Mean latency"), this.steps)));
  }

  update({ name, target, format, protocol, done, planned, underway, steps }) {
    write(this.title, `${target} ${format}`.trim());
    write(this.about, `${protocol}, ${name}`);
    this.progress.value = underway?.done ?? 0;
    const left = underway?.left_s ?? null;
    write(this.left, underway
      ? `${percent(underway.done)} done, ${done} of ${planned} steps completed${
        left === null ? "" : `, ${span(left)} left`}`
      : `queued, ${planned} steps`);
    this.showNow(underway?.steps ?? []);
    write(this.summary, `All ${planned} steps and their results`);
    const now = new Map((underway?.steps ?? []).map((step) => [step.id, step]));
    const state = ({ id, is_done }) => is_done ? "done"
      : now.has(id) ? percent(now.get(id).done) : "–";
    fillNode(this.steps, steps.map((step) => line([step.id,
      step.length_s ? span(step.length_s) : "–", state(step), ...measured(step.result)])));
  }

  showNow(steps) {
    const ids = steps.map(({ id }) => id);
    for (const id of this.sparks.keys()) if (!ids.includes(id)) this.sparks.delete(id);
    this.now.replaceChildren(...steps.map(({ id, done, text, glimpse }) => {
      if (!this.sparks.has(id)) this.sparks.set(id, new Spark("t0"));
      const spark = this.sparks.get(id);
      if (glimpse) spark.add([glimpse.iops]);
      const figures = glimpse ? measured(glimpse) : [text || "–", "", ""];
      return line([id, percent(done), ...figures, { node: spark.node }]);
    }));
  }
}

// --- All of them --------------------------------------------------------------------------------

// Cards by key, in the order in which they are told of; each stays as long as its key does.
class Cards {
  constructor(id, make) {
    Object.assign(this, { place: at(id), make, cards: new Map() });
  }

  update(told, key) {
    const keys = told.map(key);
    for (const [old, card] of this.cards) {
      if (keys.includes(old)) continue;
      card.node.remove();
      this.cards.delete(old);
    }
    return told.map((one, index) => {
      const own = keys[index];
      if (!this.cards.has(own)) this.cards.set(own, this.make());
      const card = this.cards.get(own);
      if (this.place.children[index] !== card.node) {
        this.place.insertBefore(card.node, this.place.children[index] ?? null);
      }
      return card.update(one);
    });
  }
}

const DRIVES = new Cards("cards", () => new DriveCard());
const RUNS = new Cards("under-way", () => new RunCard());

// Sentences, each on a line of its own. Commands stand between backquotes.
function writeLines(node, sentences) {
  const lines = sentences.map((it) => element("span", { class: "line" }, ...coded(it), " "));
  const text = lines.map((line) => line.textContent).join("");
  if (node.textContent !== text) node.replaceChildren(...lines);
}

function showDrives(drives, missing) {
  const states = DRIVES.update(drives, ({ volume }) => volume);
  const served = drives.filter(({ is_served }) => is_served);
  at("no-drives").hidden = drives.length > 0;
  show("served", `${served.length} of ${drives.length}`, served.length);
  const faults = [...missing, ...drives.flatMap(({ name }, index) =>
    states[index].faults.map((fault) => `${name}: ${fault}`))];
  show("attention", faults.length ? `${counted(faults.length, "problem")}` : "no problem");
  const known = states.flatMap(({ speeds }) => speeds ? [speeds] : []);
  ["read", "write"].forEach((id, index) => {
    const moved = sum(known.map((speeds) => speeds[index].bytes));
    show(`${id}-rate`, rate(moved), moved);
    show(`${id}-iops`, `${number(sum(known.map((speeds) => speeds[index].commands)))} IOPS`);
  });
  const stored = sum(served.map(({ drive }) => drive.stored_bytes ?? 0));
  show("stored", bytes(stored), stored);
  show("stored-note", `of ${bytes(sum(served.map(({ drive }) => drive.stored_bytes_max ?? 0)))}`);
  const worst = missing.length ? "critical"
    : ["critical", "degraded"].find((it) => states.some(({ state }) => state === it));
  const away = drives.length - served.length;
  const rest = away ? ` ${counted(away, "volume")} ${away === 1 ? "is" : "are"} not served.` : "";
  if (faults.length) writeLines(at("health"), faults);
  else show("health", served.length
    ? `${served.length === 1 ? "The served volume is" : `All ${served.length} served volumes are`
    } ok.${rest}` : drives.length ? "No volume is served." : "");
  at("health").className = `verdict ${toneOf(worst)}`;
  const isMarked = drives.some(({ is_locate_led_on }) => is_locate_led_on);
  document.title = `${isMarked ? "(*) " : worst ? "! " : ""}Floatgate: ${served.length} of ${
    counted(drives.length, "volume")}`;
}

function showEvents(drives) {
  const events = drives.flatMap(({ name, drive }) =>
    (drive?.events ?? []).map((event) => ({ name, ...event })));
  events.sort((a, b) => b.at_unix_ms - a.at_unix_ms);
  fill("event-rows", events.slice(0, EVENTS_MAX).map(({ name, at_unix_ms, what }) =>
    eventRow(at_unix_ms, `${name}: ${what}`)));
}

const STATE_TEXTS = { interrupted: "interrupted", done: "done", unreadable: "cannot be read" };
const stemOf = ({ name }) => name.replace(/\.html$/, "");
const linkTo = (page, text) =>
  element("a", { href: `reviews/${encodeURIComponent(page.name)}` }, text);

// The page that was made of a run: its name is that of the run, the format left out.
function reviewOf({ name }, pages) {
  const found = pages.filter((page) => name === stemOf(page) || name.startsWith(`${stemOf(page)}-`));
  return found.sort((a, b) => b.name.length - a.name.length)[0];
}

function showReviews(runs, pages) {
  at("reviews").hidden = at("reviews-entry").hidden = false;
  const underway = runs.filter(({ state }) => state === "underway");
  at("no-runs").hidden = underway.length > 0;
  RUNS.update(underway, ({ name }) => name);
  at("ended").hidden = runs.length === underway.length;
  const used = new Set();
  fill("ended-rows", runs.filter(({ state }) => state !== "underway").map((run) => {
    const page = reviewOf(run, pages);
    if (page) used.add(page.name);
    return line([run.name, `${run.target} ${run.format}`.trim(), run.protocol,
      `${run.done} of ${run.planned}`,
      { text: run.fault || STATE_TEXTS[run.state], tone: run.state === "done" ? "good" : "bad" },
      { node: page ? linkTo(page, "Open") : "–" }]);
  }));
  const others = pages.filter(({ name }) => !used.has(name));
  at("others").hidden = others.length === 0;
  fill("page-rows", others.map((page) => element("li", {}, linkTo(page, page.title),
    element("span", {}, `${page.name}, ${bytes(page.size_bytes)}, ${
      new Date(page.written_unix_s * 1000).toLocaleString([],
        { dateStyle: "short", timeStyle: "short" })}`))));
}

let before = null;

function showAll(overview) {
  at("led").className = "led attached";
  const isOfRuns = overview.drives.length === 0 && overview.runs !== undefined;
  for (const part of ["drives", "events"]) {
    at(part).hidden = at(`${part}-entry`).hidden = isOfRuns;
  }
  showDrives(overview.drives, overview.faults);
  showEvents(overview.drives);
  if (overview.runs) showReviews(overview.runs, overview.pages);
  before = overview;
}

takeToken();
follow(showAll);
