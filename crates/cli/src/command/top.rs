//! `floatgate top`: what a served drive does, a screen a second.

use std::io::{self, IsTerminal as _};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use blockio::Bytes;
use live::management::Connection;
use live::status::{Commands, Die, Server, Status, Writes};

use crate::args::Top;
use crate::{Ending, output, table};

/// Puts the cursor into the first place of an empty terminal.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Dies that are shown, of more the busiest: a screen has 24 lines.
const DIES_MAX: usize = 6;
/// Columns of the longest bar.
const BAR_COLUMNS: f64 = 24.0;

/// Two looks at a drive, and the seconds between them.
struct Span<'a> {
    then: &'a Status,
    now: &'a Status,
    seconds: f64,
}

/// Shows what happened between one look and the next, until Ctrl-C, or once.
pub(crate) fn top(args: &Top) -> Result<Ending> {
    let shown = args.vault.display();
    let attempted = || format!("asking the server of {shown}");
    let Some(mut connection) = Connection::open(&args.vault).with_context(attempted)? else {
        bail!("nobody serves {shown}; `floatgate serve {shown}` does");
    };
    let clear = if io::stdout().is_terminal() && !args.once { CLEAR } else { "" };
    let mut then = (Instant::now(), connection.status().with_context(attempted)?);
    loop {
        thread::sleep(args.interval);
        let now = (Instant::now(), connection.status().with_context(attempted)?);
        let seconds = (now.0 - then.0).as_secs_f64();
        let span = Span { then: &then.1, now: &now.1, seconds };
        output::data(&format!("{clear}{}", screen(&span)))?;
        if args.once {
            return Ok(Ending::Done);
        }
        then = now;
    }
}

fn screen(span: &Span<'_>) -> String {
    let now = span.now;
    let state = now.reason.as_deref().unwrap_or("open");
    let beacon = if now.is_beacon_lit { ", (*) BEACON" } else { "" };
    let mut lines = vec![format!("drive {}, {state}{beacon}", now.drive)];
    lines.push(table::columns(&command_rows(span)));
    lines.push(String::new());
    lines.push(table::columns(&drive_rows(span)));
    lines.push(String::new());
    lines.push(table::columns(&die_rows(span)));
    lines.join("\n")
}

/// What each die does, of many the busiest.
fn die_rows(span: &Span<'_>) -> Vec<[String; 5]> {
    let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / span.seconds / 1e6;
    let mut dies: Vec<(usize, &Die, [f64; 2])> = (0..)
        .zip(span.now.dies.iter().zip(&span.then.dies))
        .map(|(index, (now, then))| {
            let read = rate(now.read_bytes, then.read_bytes);
            (index, now, [read, rate(now.written_bytes, then.written_bytes)])
        })
        .collect();
    let busy = |[read, written]: [f64; 2]| read + written;
    dies.sort_by(|a, b| busy(b.2).total_cmp(&busy(a.2)));
    dies.truncate(DIES_MAX);
    let most = dies.first().map_or(0.0, |(_, _, rates)| busy(*rates)).max(f64::MIN_POSITIVE);
    dies.sort_by_key(|(index, ..)| *index);
    let titles = ["die", "state", "read", "written", "activity"].map(str::to_owned);
    let row = |(index, die, rates): (usize, &Die, [f64; 2])| {
        let [read, written] = rates.map(|rate| format!("{rate:.1} MB/s"));
        let state = if die.is_lost { "lost" } else { "good" };
        [index.to_string(), state.to_owned(), read, written, bar(busy(rates) / most)]
    };
    std::iter::once(titles).chain(dies.into_iter().map(row)).collect()
}

/// A bar of so much of its full length, 0 to 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a short length")]
fn bar(share: f64) -> String {
    "#".repeat((share * BAR_COLUMNS).round() as usize)
}

fn command_rows(span: &Span<'_>) -> Vec<[String; 6]> {
    let titles = ["", "IOPS", "throughput", "half within", "99 % within", "failed"];
    let mut rows = vec![titles.map(str::to_owned)];
    if let (Some(now), Some(then)) = (&span.now.server, &span.then.server) {
        let (now, then) = (&now.traffic, &then.traffic);
        rows.extend([
            command_row("read", span, &now.reads.since(&then.reads)),
            command_row("write", span, &now.writes.since(&then.writes)),
            command_row("flush", span, &now.flushes.since(&then.flushes)),
            command_row("trim", span, &now.trims.since(&then.trims)),
        ]);
    }
    rows
}

fn command_row(name: &str, span: &Span<'_>, commands: &Commands) -> [String; 6] {
    let within = |share| {
        let nanos = commands.latency_ns_below(share);
        nanos.map_or_else(|| "-".to_owned(), |nanos| format!("{:.0} us", nanos as f64 / 1e3))
    };
    [
        name.to_owned(),
        format!("{:.0}", commands.commands as f64 / span.seconds),
        format!("{:.1} MB/s", commands.bytes as f64 / span.seconds / 1e6),
        within(0.5),
        within(0.99),
        commands.failures.to_string(),
    ]
}

fn drive_rows(span: &Span<'_>) -> Vec<[String; 2]> {
    let row = |name: &str, text: String| [name.to_owned(), text];
    let now = span.now;
    let mut rows = Vec::new();
    if let (Some(writes), Some(then)) = (&now.writes, &span.then.writes) {
        rows.push(row("write amplification", amplification(writes, then)));
        let relocated = writes.relocation_bytes.saturating_sub(then.relocation_bytes);
        let relocated = relocated as f64 / span.seconds / 1e6;
        rows.push(row("relocation", format!("{relocated:.1} MB/s")));
    }
    if let Some(space) = &now.space {
        let free = format!("{} of {} superblocks", space.superblocks_free, now.format.superblocks);
        rows.push(row("free", free));
        let (stored, most) = (Bytes(space.stored_bytes), Bytes(space.stored_bytes_max));
        rows.push(row("stored", format!("{stored} of {most}")));
    }
    let lost = now.dies.iter().filter(|die| die.is_lost).count();
    rows.push(row("dies", format!("{} of {} lost", lost, now.dies.len())));
    if let (Some(server), Some(then)) = (&now.server, &span.then.server) {
        let busy = 100.0 * (server.cpu_s - then.cpu_s) / span.seconds;
        rows.extend(heat(server, then, span.seconds).map(|text| row("model", text)));
        let text = format!("{busy:.0} % of a processor, {}", Bytes(server.memory_bytes));
        rows.push(row("server", text));
        rows.push(row("clients", server.clients.len().to_string()));
    }
    rows
}

/// Power and heat of the modelled drive, where it tells them.
fn heat(now: &Server, then: &Server, seconds: f64) -> Option<String> {
    let climate = |server: &Server| server.model.as_ref()?.climate;
    let (now, then) = (climate(now)?, climate(then)?);
    let (temperature, power) = (now.temperature_c, now.power_w_since(&then, seconds));
    let limit = now.power_limit_w.map_or_else(String::new, |limit| format!(" of {limit}"));
    let held = if now.held_s > then.held_s { ", holds its writes" } else { "" };
    let throttle = now.throttle_c;
    Some(format!("{temperature:.1} °C, slows down at {throttle}; {power:.1}{limit} W{held}"))
}

/// Of the span, and since the drive was opened.
fn amplification(now: &Writes, then: &Writes) -> String {
    let all = |it: &Writes| {
        let moved = it.relocation_bytes + it.wear_bytes + it.parity_bytes;
        it.host_bytes + moved + it.metadata_bytes
    };
    let host = now.host_bytes.saturating_sub(then.host_bytes);
    let written = all(now).saturating_sub(all(then));
    let recent = (host > 0).then(|| written as f64 / host as f64);
    let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| format!("{it:.3}"));
    format!("{}, {} since the drive was opened", ratio(recent), ratio(now.write_amplification))
}
