// The page of a served drive: is told its status once a second, and shows it.
"use strict";

const CAUSES = ["host", "relocation", "wear", "parity", "metadata", "rebuild"];
const STATES = { f: "free", o: "open", c: "closed", v: "being relocated", b: "bad" };

const CHARTS = {
  throughput: new Chart("Throughput", [{ name: "read", tone: "t0" },
    { name: "written", tone: "t1", dashed: true }], { text: rate, least: 1e6 }),
  commands: new Chart("Commands a second", [{ name: "reads", tone: "t0" },
    { name: "writes", tone: "t1", dashed: true }, { name: "flushes", tone: "t2" }],
  { text: number, least: 100 }),
  latencies: new Chart("Latency p99", [{ name: "reads", tone: "t0" },
    { name: "writes", tone: "t1", dashed: true }, { name: "flushes", tone: "t2" }],
  { text: micros, least: 100 }),
  causes: new Chart("Written to the dies, by cause",
    CAUSES.map((name, index) => ({ name, tone: `t${index}` })),
    { text: rate, least: 1e6, stacked: true }),
  space: new Chart("Space used", [{ name: "used", tone: "t0" },
    { name: "limit", tone: "t0", dashed: true }], { text: bytes, least: 1e6 }),
  wear: new Chart("Erases of a superblock, on average", [{ name: "erases", tone: "t2" }],
    { text: (count) => count.toFixed(1), least: 1 }),
  temperature: new Chart("Temperature of the model", [{ name: "temperature", tone: "t1" },
    { name: "throttles at", tone: "t1", dashed: true }], { text: celsius, least: 50 }),
  power: new Chart("Power of the model", [{ name: "drawn", tone: "t3" },
    { name: "limit", tone: "t3", dashed: true }], { text: watts, least: 10 }),
};
at("charts").append(...Object.values(CHARTS).map((chart) => chart.node));

// --- The parts of the page ----------------------------------------------------------------------

let before = null;

const written = (writes) => CAUSES.reduce((sum, cause) => sum + writes[`${cause}_bytes`], 0);
// What clients' writes made the drive write: rebuilds and scrubs are no part of it.
const amplifying = (writes) => written(writes) - writes.rebuild_bytes;

function showNow(status, then, seconds) {
  const { reads, writes, flushes } = status.server.traffic;
  const since = then.server.traffic;
  const speeds = {};
  for (const [id, now, old] of [["read", reads, since.reads], ["write", writes, since.writes],
    ["flush", flushes, since.flushes]]) {
    const speed = {
      bytes: (now.bytes - old.bytes) / seconds,
      commands: (now.commands - old.commands) / seconds,
      half: latency(now, old, 0.5),
      most: latency(now, old, 0.99),
    };
    if (id !== "flush") {
      show(`${id}-rate`, rate(speed.bytes), speed.bytes);
      show(`${id}-iops`, `${number(speed.commands)} IOPS`);
    }
    show(`${id}-p50`, micros(speed.half), speed.half ?? "");
    show(`${id}-p99`, speed.commands > 0 ? `p99 ${micros(speed.most)}` : "no commands");
    speeds[id] = speed;
  }
  const all = (key) => [speeds.read[key], speeds.write[key], speeds.flush[key]];
  CHARTS.throughput.add([speeds.read.bytes, speeds.write.bytes]);
  CHARTS.commands.add(all("commands"));
  CHARTS.latencies.add(all("most"));
  const causes = CAUSES.map((cause) => Math.max(0,
    status.writes[`${cause}_bytes`] - then.writes[`${cause}_bytes`]) / seconds);
  CHARTS.causes.add(causes);
  CHARTS.space.add([status.space.stored_bytes, status.space.stored_bytes_max]);
  CHARTS.wear.add([status.wear?.erase_count_mean ?? null]);
  const sent = status.writes.host_sent_bytes - then.writes.host_sent_bytes;
  const amplified = sent > 0
    ? (amplifying(status.writes) - amplifying(then.writes)) / sent : null;
  show("wa-now", ratio(amplified), amplified ?? "");
  show("relocation", `${rate(causes[1])} relocated`);
}

let hasHeat = false;

// Of a modelled drive whose times replies keep to; there is nothing of the kind without one.
function showHeat(status, then, seconds) {
  const now = status.server.model?.climate;
  const old = then?.server.model?.climate;
  const parts = ["temperature", "power"];
  parts.forEach((part) => { at(`${part}-tile`).hidden = CHARTS[part].node.hidden = !now; });
  hasHeat = Boolean(now);
  if (!now) return;
  show("temperature", celsius(now.temperature_c), now.temperature_c);
  show("temperature-limit", `throttles at ${now.throttle_c}, powers off at ${now.shutdown_c}`);
  if (!old) return;
  const drawn = Math.max(0, now.energy_j - old.energy_j) / seconds;
  const limit = now.power_limit_w;
  show("power", watts(drawn), drawn);
  show("power-limit", now.throttled_s > old.throttled_s ? "writes are throttled"
    : limit === null ? "no power limit" : `limited to ${watts(limit)}`);
  CHARTS.temperature.add([now.temperature_c, now.throttle_c]);
  CHARTS.power.add([drawn, limit]);
}

function showWrites({ writes }) {
  show("wa", `${ratio(writes.write_amplification)} since it was opened`);
  const all = Math.max(1, written(writes));
  fill("causes", CAUSES.map((cause, index) => {
    const count = writes[`${cause}_bytes`];
    return line([cause, { node: bar([[`t${index}`, count / all]]) },
      `${bytes(count)}, ${percent(count / all)}`]);
  }));
}

function showSpace({ space, format }) {
  const letters = space.superblocks;
  const counts = {};
  for (const letter of letters) counts[letter] = (counts[letter] ?? 0) + 1;
  show("free", `${number(space.superblocks_free)} of ${number(letters.length)}`,
    space.superblocks_free);
  show("stored", bytes(space.stored_bytes), space.stored_bytes);
  const isThin = format.physical_bytes < format.capacity_bytes;
  const taken = showTaken(at("stored-meter"), space.stored_bytes, space.stored_bytes_max, isThin);
  show("stored-note", `of ${bytes(space.stored_bytes_max)} used, ${taken}`);
  show("map-counts", Object.entries(STATES)
    .map(([letter, name]) => `${number(counts[letter] ?? 0)} ${name}`).join(", "));
  drawMap(letters);
}

let drawn = "";

function drawMap(letters) {
  const map = at("map");
  const wide = map.clientWidth;
  const scale = window.devicePixelRatio;
  const tones = getComputedStyle(document.documentElement);
  const key = `${letters} ${wide} ${scale} ${tones.getPropertyValue("--free")}`;
  if (key === drawn || wide === 0) return;
  drawn = key;
  const cell = letters.length > 4000 ? 6 : letters.length > 800 ? 9 : 14;
  const columns = Math.max(1, Math.floor(wide / cell));
  const high = Math.ceil(letters.length / columns) * cell;
  map.width = wide * scale;
  map.height = high * scale;
  map.style.height = `${high}px`;
  const names = { f: "--free", o: "--open", c: "--closed", v: "--victim", b: "--broken" };
  const pen = map.getContext("2d");
  pen.scale(scale, scale);
  for (const [letter, name] of Object.entries(names)) {
    pen.fillStyle = tones.getPropertyValue(name);
    for (let index = letters.indexOf(letter); index >= 0;
      index = letters.indexOf(letter, index + 1)) {
      pen.fillRect(index % columns * cell, Math.floor(index / columns) * cell, cell - 2, cell - 2);
    }
  }
}

function showDies(status, then, seconds) {
  const speed = (now, old) => (now - old) / seconds;
  const speeds = status.dies.map((die, index) => {
    const old = then?.dies[index] ?? die;
    return [speed(die.read_bytes, old.read_bytes), speed(die.written_bytes, old.written_bytes)];
  });
  const top = Math.max(1, ...speeds.map(([read, write]) => read + write));
  fill("die-rows", status.dies.map((die, index) => {
    const [read, write] = speeds[index];
    const place = [die.path, die.model, die.serial].filter(Boolean).join(", ");
    const tones = { good: "good", rebuilding: "warn", failed: "bad" };
    return line([String(index), { text: die.state, tone: tones[die.state] }, place || "–", { node: bar([["t0", read / top], ["t1", write / top]]) },
    ...memberCells(die.member), rate(read), rate(write), bytes(die.read_bytes), bytes(die.written_bytes),
    { text: number(die.failures), tone: die.failures ? "bad" : "" }]);
  }));
  show("work", works(status.maintenance, status.dies).join("; "));
  const damage = status.maintenance.damage ?? [];
  at("damage").hidden = damage.length === 0;
  fill("damage-rows", damage.toReversed().map((it) => eventRow(1000 * it.at_unix_s, damageText(it))));
  const places = status.maintenance.bad_places ?? [];
  at("bad-places").hidden = places.length === 0;
  fill("bad-place-rows", places.map((it) => eventRow(1000 * it.since_unix_s, badPlaceText(it))));
}

// Session, events and last write of a die, as arrays show their members.
function memberCells(member) {
  if (!member) return ["–", "–", "–"];
  const at = member.last_written_unix_s;
  const written = at ? new Date(1000 * at).toLocaleString([], { dateStyle: "short", timeStyle: "medium" }) : "–";
  const { session, events, is_current } = member;
  return [{ text: `${number(session)}, ${is_current ? "current" : "stale"}`, tone: is_current ? "" : "bad" },
    number(events), written];
}

const COPIED = { header: "the header", checkpoint: "the checkpoint", journal: "a batch of the journal" };
const damageText = ({ die, row, lba, copy_of, found_by, outcome }) => {
  const on = Number.isInteger(die) ? ` on die ${die}` : "";
  const place = copy_of ? `Copy of ${COPIED[copy_of]}${on}`
    : die === null ? `Page of sector ${lba}` : `Row ${row}${on}`;
  const rewritten = copy_of ? "written again" : "rewritten from parity";
  const ends = { rewritten, left: "not repaired", lost: "lost" };
  return `${place}: found by a ${found_by}, ${ends[outcome]}.`;
};

const badPlaceText = ({ die, superblock, offset_bytes, length_bytes, cause, times, state }) => {
  const causes = { "read-error": "read errors", rot: "rot" };
  const fates = { draining: ", being emptied", retired: ", retired", "in-use": ", still used" };
  return `Superblock ${number(superblock)} on die ${die}, ${bytes(length_bytes)} from byte `
    + `${number(offset_bytes)} on: ${causes[cause]}, found ${number(times)} ${times === 1 ? "time" : "times"}`
    + `${fates[state] ?? ""}.`;
};

// Bits as nvme-cli names them.
const WARNINGS = ["available spare", "temperature threshold", "NVM subsystem reliability",
  "read-only"];
const warningText = (bits) => bits
  ? `0x${bits.toString(16).padStart(2, "0")}: ${
    WARNINGS.filter((_, bit) => bits & (1 << bit)).join(", ")}`
  : "none";

function showLife({ smart, wear, life, writes, pages_lost, maintenance }) {
  pairs("health-rows", [
    ...(wear === null ? [] : [
      ["Available spare",
        `${smart.available_spare ?? "–"} %, warns below ${smart.available_spare_threshold} %`],
      ["Percentage used", smart.percentage_used === null
        ? "not rated" : `${smart.percentage_used} %`],
    ]),
    ["Critical warning", warningText(smart.critical_warning)],
    ...(wear === null ? [] : [
      ["Erases of a superblock", `${wear.erase_count_min} to ${wear.erase_count_max}, ${
        wear.erase_count_mean.toFixed(2)} on average`],
      ["Superblocks erased", number(writes.superblocks_erased)],
      ["Pages lost now", pages_lost === null ? "unknown" : number(pages_lost)],
      ["Pages found lost since it was opened", number(smart.media_errors)],
      ["Scrubs since it was opened", `${number(maintenance.scrubs.ended)}, ${
        number(maintenance.scrubs.completed)} of them complete`],
    ]),
    ["Power cycles", `${number(smart.power_cycles)}, ${
      number(smart.unsafe_shutdowns)} unsafe shutdowns`],
  ]);
  pairs("moved-rows", [
    ["Power-on time", `${(life.power_on_s / 3600).toFixed(1)} h`],
    ["Written by clients", `${bytes(life.host_written_bytes)}, ${
      number(life.host_write_commands)} writes`],
    ["Read by clients", `${bytes(life.host_read_bytes)}, ${number(life.host_read_commands)} reads`],
    ...(wear === null ? [] : [
      ["Written to the dies", bytes(life.media_written_bytes)],
      ["Read from the dies", bytes(life.media_read_bytes)],
      ["Trimmed since it was opened", bytes(writes.trimmed_bytes)],
      ["Compression of writes since it was opened", ratio(writes.compression_ratio)],
    ]),
  ]);
}

// What acknowledged writes survive.
const PROMISES = {
  "power-loss": "survive a power loss",
  "server-death": "survive the server; once flushed a power loss too",
  nothing: "survive nothing until they are flushed",
};

function showSheet({ acknowledged_survives, format, server, hot_spares }) {
  pairs("format-rows", [
    ["Capacity", bytes(format.capacity_bytes)],
    ...(format.dies === 0 ? [["Stored in", "memory, until the server stops"]] : [
      ["Usable flash", bytes(format.data_bytes)],
      ["Raw flash", bytes(format.raw_bytes)],
      ["Over-provisioning", `${format.over_provisioning_percent.toFixed(1)} %`],
      ["Dies", `${format.dies}, ${format.is_protected ? `${format.dies - 1}+1` : "no parity"}`],
      ["Hot spares", number(hot_spares)],
      ["Superblocks", `${number(format.superblocks)} of ${bytes(format.superblock_bytes)}`],
      ["Compression", format.is_compressed ? "on" : "off"],
      ["Journal", bytes(format.journal_bytes)],
      ["Map in memory", bytes(format.mapping_bytes)],
      ["Acknowledged writes", PROMISES[acknowledged_survives] ?? "–"],
    ]),
  ]);
  const minutes = Math.floor(server.uptime_s / 60);
  pairs("server-rows", [
    ["Process", `${server.pid}, version ${server.version}`],
    ["Uptime", minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`],
    ["Memory", bytes(server.memory_bytes)],
    ["Processor time", `${server.cpu_s.toFixed(0)} s`],
  ]);
}

// A count of all I/O queues, added up.
const sum = (queues, key) => queues.reduce((all, queue) => all + queue[key], 0);

function showReservations(namespaces) {
  const reserved = namespaces.filter(({ reservations: it }) => it?.kind || it?.registrants.length);
  at("reservations").hidden = reserved.length === 0;
  const host = (it) => `${it.host_id ?? `of controller ${it.controller}`}, key ${it.key}${
    it.is_holder ? ", holder" : ""}`;
  fill("reservation-rows", reserved.map(({ id, reservations: it }) => line([
    String(id), it.kind ?? "not reserved",
    it.is_persistent ? "persistent" : "until the server stops",
    it.registrants.map(host).join("; ")])));
}

function showNvme({ server }) {
  const moved = (kind) => `${bytes(kind.bytes)}, ${number(kind.commands)}`;
  fill("namespace-rows", (server.namespaces ?? []).map((one) => line([
    String(one.id), one.name || "–", bytes(one.size_bytes),
    `${one.block_bytes} B${one.is_write_protected ? ", write-protected" : ""}`,
    moved(one.reads), moved(one.writes), number(one.trims.commands),
    number(one.reads.failures + one.writes.failures + one.flushes.failures
      + one.trims.failures)])));
  showReservations(server.namespaces ?? []);
  const controllers = server.controllers ?? [];
  at("controllers").hidden = controllers.length === 0;
  fill("controller-rows", controllers.map((one) => line([
    String(one.controller), one.transport,
    `${one.state}${one.is_authenticated ? ", authenticated" : ""}${
      one.is_encrypted ? ", encrypted" : ""}`, number(one.queues.length),
    `${bytes(sum(one.queues, "read_bytes"))}, ${number(sum(one.queues, "read_commands"))}`,
    `${bytes(sum(one.queues, "written_bytes"))}, ${number(sum(one.queues, "write_commands"))}`,
    number(sum(one.queues, "failures")), one.host])));
}

// A drive in memory has no dies: the page hides everything about them.
const NO_WRITES = Object.fromEntries([...CAUSES.map((cause) => [`${cause}_bytes`, 0]),
  ["write_amplification", null], ["compression_ratio", null]]);

function withoutDies(status) {
  const isInMemory = status.wear === null;
  document.body.classList.toggle("in-memory", isInMemory);
  for (const chart of ["causes", "wear"]) CHARTS[chart].node.hidden = isInMemory;
  return isInMemory ? { ...status, writes: NO_WRITES } : status;
}

function showClients({ server }) {
  // An NVMe host uses all exports.
  const users = (name) => server.clients.filter((client) =>
    client.export === name || Boolean(client.host)).length;
  fill("export-rows", server.exports.map((one) => line([one.name || "(no name)",
    `${bytes(one.size_bytes)}${one.is_read_only ? ", read-only" : ""}`, String(users(one.name)),
    one.uris.join(" ")])));
  show("clients-note", `${number(server.connections_accepted)} accepted since the server started, ${
    number(server.clients_refused)} dropped or rejected`);
}

function showEvents({ server }) {
  fill("event-rows", (server.events ?? []).toReversed().map(({ at_unix_ms, what }) =>
    eventRow(at_unix_ms, what)));
}

function showHealth(status) {
  const { led } = status;
  at("led").className = ledClass(led);
  show("drive", status.name);
  show("number", [status.drive, status.folder].filter(Boolean).join(", "));
  const mark = status.health.state === "ok" ? "" : "! ";
  document.title = `${led === "locate" ? "(*) " : mark}${status.name}`;
  const { state, problems } = status.health;
  show("health", state === "ok" ? HEALTH.ok
    : `${HEALTH[state]}: ${counted(problems.length, "problem")}.`);
  at("health").className = `verdict ${toneOf(state)}`;
  fill("problems", problems.map(problemRow));
}

// --- Actions ------------------------------------------------------------------------------------

const diesThat = (status, isLost) => status.dies.flatMap((die, index) =>
  (die.is_lost === isLost ? [String(index)] : []));
const dieText = (status, index) => [index, status.dies[index].path, status.dies[index].model,
  status.dies[index].serial].filter(Boolean).join(", ");

const BEYOND = ["keep it", "discard it"];
const UNITS = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12,
  KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
const SIZE = /([0-9]+(?:\.[0-9]+)?) ?([kMGT]?B|[KMGT]iB)/;
const PAGE_BYTES = 4096;

// Bytes of a text such as `4 GiB`, in whole pages.
function sizeOf(text) {
  const [, count, unit] = text.match(SIZE);
  return Math.floor(Number(count) * UNITS[unit] / PAGE_BYTES) * PAGE_BYTES;
}

// Each with its title for a status, the request that it sends, and what must be told before: fields,
// of which some have choices, and the volume ID where something cannot be undone.
const ACTIONS = [
  {
    id: "locate",
    title: (status) => (status.is_locate_led_on ? "Turn the locate LED off" : "Turn the locate LED on"),
    text: "Shows a mark in every view of the volume. No LED of an enclosure is switched.",
    request: (status) => ({ request: "locate", is_lit: !status.is_locate_led_on }),
  },
  {
    id: "scrub",
    title: () => "Scrub volume",
    text: "Reads and verifies all data, and repairs damaged data from parity. "
      + "Clients continue, and their requests have priority.",
    request: () => ({ request: "scrub" }),
  },
  {
    id: "fail-die",
    title: () => "Fail die",
    text: "Takes the die offline. Its data is read from the other dies and parity. Until it is rebuilt, "
      + "the failure of another die loses data.",
    isFinal: true,
    isPossible: (status) => status.format.is_protected && diesThat(status, true).length === 0,
    fields: [{ name: "die", label: "Die", choices: (status) => diesThat(status, false),
      text: dieText }],
    request: (_, { die }) => ({ request: "fail-die", die: Number(die) }),
  },
  {
    id: "replace-die",
    title: () => "Replace die",
    text: "Rebuilds the data of the failed die on another file or block device. All data there now is "
      + "lost.",
    isFinal: true,
    isPossible: (status) => diesThat(status, true).length > 0,
    fields: [
      { name: "die", label: "Failed die", choices: (status) => diesThat(status, true),
        text: dieText },
      { name: "path", label: "New die: a file to be created, or a block device of the server" },
    ],
    request: (_, { die, path }) => ({ request: "replace-die", die: Number(die), path }),
  },
  {
    id: "add-spare",
    title: () => "Add hot spare",
    text: "Adds a file or block device that replaces the next failed die automatically. All data there "
      + "now is lost then.",
    isFinal: true,
    isPossible: (status) => status.format.is_protected,
    fields: [{ name: "path", label: "A file to be created, or a block device of the server" }],
    request: (_, { path }) => ({ request: "add-spare", path }),
  },
  {
    id: "resize",
    title: () => "Resize volume",
    text: "Sets another size and keeps the data. Clients see the new size when they reconnect.",
    isFinal: true,
    fields: [
      { name: "size", label: "New size, such as 500 MB or 4 GiB", pattern: SIZE.source },
      { name: "beyond", choices: () => BEYOND,
        label: "Data beyond the new end (with \"keep it\", the resize is refused if there is any)" },
    ],
    request: ({ drive }, { size, beyond }) => ({ request: "resize", drive,
      size_bytes: sizeOf(size), discard: beyond === BEYOND[1], while_served: true }),
  },
  {
    id: "format",
    title: () => "Format volume",
    text: "Erases all data and sets another capacity: stock (15 % over-provisioning beyond the "
      + "volume's own reserve), or "
      + "high-performance (80 % of the stock capacity), with which random writes are faster.",
    isFinal: true,
    fields: [{ name: "capacity", label: "Capacity", choices: () => ["stock", "high-performance"] }],
    request: ({ drive }, { capacity }) =>
      ({ request: "format", drive, capacity, while_served: true }),
  },
  {
    id: "purge",
    title: () => "Purge volume",
    text: "Erases all data, even while clients use the volume.",
    isFinal: true,
    request: ({ drive }) => ({ request: "purge", drive, while_served: true }),
  },
];

// Keeps what was typed, or forgets what opens nothing any more.
function useToken(text) {
  keepToken(text);
  at("token-form").hidden = text !== "";
}

function showActions(status) {
  for (const action of ACTIONS) {
    show(`action-${action.id}`, action.title(status));
    at(`action-${action.id}`).disabled = !(action.isPossible?.(status) ?? true);
  }
}

// What a field is filled in with: a list where there are choices, else a line.
function entry({ name, choices, pattern, text }, status) {
  const attributes = { id: `field-${name}`, required: "", autocomplete: "off", spellcheck: "false",
    ...(pattern ? { pattern } : {}) };
  if (!choices) return element("input", attributes);
  return element("select", attributes, ...choices(status).map((choice) =>
    element("option", { value: choice }, text ? text(status, choice) : choice)));
}

async function carryOut(status, request) {
  const answer = await fetch("request", {
    method: "POST",
    headers: { "Content-Type": "application/json",
      Authorization: `Bearer ${keptToken()}` },
    body: JSON.stringify({ drive: status.drive, request }),
  });
  if (answer.status === 401) useToken("");
  return answer.ok ? "Done." : `Refused: ${(await answer.text()).trim()}`;
}

// Asks whether it is meant, and has it done.
function confirmAction(action) {
  const status = before;
  if (!status) return;
  const fields = (action.fields ?? []).map((field) =>
    [field.name, entry(field, status), field.label]);
  const name = element("input", { id: "field-drive", autocomplete: "off", spellcheck: "false" });
  show("confirm-title", action.title(status));
  show("confirm-yes", action.title(status));
  show("confirm-text", `Volume ${status.name}, ${status.drive}. ${action.text}`);
  at("confirm-fields").replaceChildren(...[...fields,
    ...(action.isFinal ? [["drive", name, "To confirm, type the volume ID"]] : [])]
    .flatMap(([key, input, label]) => [element("label", { for: `field-${key}` }, label), input]));
  const ready = () => {
    at("confirm-yes").disabled = action.isFinal === true && name.value.trim() !== status.drive;
  };
  name.addEventListener("input", ready);
  ready();
  at("confirm-form").onsubmit = async (event) => {
    event.preventDefault();
    at("confirm").close();
    const values = Object.fromEntries(fields.map(([key, input]) => [key, input.value.trim()]));
    show("outcome", `${action.title(status)}: requested`);
    const outcome = await carryOut(status, action.request(status, values))
      .catch((error) => `No answer: ${error.message}`);
    show("outcome", `${action.title(status)}: ${outcome}`);
  };
  at("confirm").showModal();
}

// --- History ------------------------------------------------------------------------------------

const inMicros = (nanos) => nanos === null ? null : nanos / 1000;
const p99 = (kind) => inMicros(kind.latency_ns_p99);

// What each chart draws of a step that the server kept.
const PAST = {
  throughput: ({ reads, writes }) => [reads.bytes_per_s, writes.bytes_per_s],
  commands: ({ reads, writes, flushes }) => [reads.iops, writes.iops, flushes.iops],
  latencies: ({ reads, writes, flushes }) => [p99(reads), p99(writes), p99(flushes)],
  causes: ({ written_bytes_per_s }) => written_bytes_per_s,
  space: ({ stored_bytes }) => [stored_bytes, before?.space.stored_bytes_max ?? null],
  wear: ({ erase_count_mean }) => [erase_count_mean],
  temperature: ({ temperature_c }) => [temperature_c, before?.server.model?.climate?.throttle_c
    ?? null],
  power: ({ power_w }) => [power_w, null],
};

let shownSpan = SPANS[0];
let nextLook = 0;

const fetchHistory = async (span) => {
  const answer = await fetch(`history/${span.word}.json`);
  return answer.ok ? (await answer.json()).steps : null;
};

// Shows a span in all charts, and again as soon as it has a step more.
async function showSpan(span) {
  shownSpan = span;
  clearTimeout(nextLook);
  for (const button of at("spans").children) {
    button.setAttribute("aria-pressed", String(button.textContent === span.title));
  }
  if (span === SPANS[0]) {
    Object.values(CHARTS).forEach((chart) => chart.look(span, null));
    return;
  }
  const steps = await fetchHistory(span).catch(() => null);
  if (shownSpan !== span) return;
  for (const [name, chart] of Object.entries(CHARTS)) {
    chart.look(span, (steps ?? []).map(PAST[name]));
  }
  nextLook = setTimeout(() => showSpan(span), span.step * 1000);
}

// What the server counted before this page was open, so that charts do not begin empty.
async function beginCharts() {
  const steps = await fetchHistory(SPANS[0]).catch(() => null);
  for (const [name, chart] of Object.entries(CHARTS)) {
    if (hasHeat || !["temperature", "power"].includes(name)) {
      chart.begin((steps ?? []).map(PAST[name]));
    }
  }
}

// --- All of it ----------------------------------------------------------------------------------

function showAll(received) {
  const status = withoutDies(received);
  const isSame = before && before.server.pid === status.server.pid
    && before.drive === status.drive && status.server.uptime_s > before.server.uptime_s;
  const seconds = isSame ? status.server.uptime_s - before.server.uptime_s : 1;
  if (!isSame) Object.values(CHARTS).forEach((chart) => chart.forget());
  showHealth(status);
  if (isSame) showNow(status, before, seconds);
  showHeat(status, isSame ? before : null, seconds);
  showWrites(status);
  showSpace(status);
  showDies(status, isSame ? before : null, seconds);
  showLife(status);
  showSheet(status);
  showClients(status);
  showNvme(status);
  showEvents(status);
  showActions(status);
  before = status;
  if (!isSame) beginCharts();
}

at("spans").append(...SPANS.map((span) => {
  const button = element("button", { type: "button", "aria-pressed": String(span === SPANS[0]) },
    span.title);
  button.addEventListener("click", () => showSpan(span));
  return button;
}));
at("actions").append(...ACTIONS.map((action) => {
  const button = element("button", { type: "button", id: `action-${action.id}` });
  button.addEventListener("click", () => confirmAction(action));
  return button;
}));
at("confirm-no").addEventListener("click", () => at("confirm").close());
at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(at("token").value.trim());
});
takeToken();
useToken(keptToken());
// Below a page of many drives there is a way back to it.
at("home").hidden = !location.pathname.startsWith("/drives/");
at("states").append(...Object.entries(STATES).map(([letter, name]) =>
  element("li", {}, element("i", { class: `state-${letter}` }), name)));
new ResizeObserver(() => before && drawMap(before.space.superblocks)).observe(at("map"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  before && drawMap(before.space.superblocks));
follow(showAll);
