//! `floatgate volume top`: the activity of a served volume, a screen a second.
//!
//! Problems come first. Fifty columns suffice; where there are more, bars are longer.

mod terminal;

use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result};
use blockio::Nanos;
use blockio::text::{bytes, counted, rate};
use status::{Commands, Die, Problem, Server, Status, Writes};

use self::terminal::{Terminal, size};
use super::maintenance::needed_server;
use crate::args::Top;
use crate::{Ending, output, table};

/// Puts the cursor into the first place of an empty terminal.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Dies that are shown, of more the failed and the busiest: a screen has 24 lines.
const DIES_MAX: usize = 6;
/// Problems that are shown; `floatgate volume status` has them all.
const PROBLEMS_MAX: usize = 3;
/// Columns of the longest bar, and what stands before it.
const BAR_COLUMNS: usize = 24;
const BAR_FROM: usize = 39;
/// Fewest columns that lines are wrapped at.
const COLUMNS_MIN: usize = 30;

/// Two looks at a drive, and the seconds between them.
struct Span<'a> {
    then: &'a Status,
    now: &'a Status,
    seconds: f64,
}

/// Shows what happened between one look and the next, until q or Ctrl-C, or once.
pub(crate) fn top(args: &Top) -> Result<Ending> {
    let shown = args.volume.display();
    let attempted = || format!("asking the server of {shown}");
    let start = || format!("start `floatgate volume serve {shown}`");
    let mut connection = needed_server(&args.volume, start)?;
    let mut then = (Instant::now(), connection.status().with_context(attempted)?);
    let terminal = if args.once { None } else { Terminal::take()? };
    loop {
        match &terminal {
            Some(terminal) if terminal.is_over_within(args.interval) => return Ok(Ending::Done),
            Some(_) => {}
            None => thread::sleep(args.interval),
        }
        let now = (Instant::now(), connection.status().with_context(attempted)?);
        let seconds = (now.0 - then.0).as_secs_f64();
        let span = Span { then: &then.1, now: &now.1, seconds };
        let (columns, lines) = size();
        let screen = screen(&span, columns.max(COLUMNS_MIN));
        if terminal.is_some() {
            let fitting: Vec<&str> = screen.lines().take(lines.saturating_sub(1)).collect();
            output::data(&format!("{CLEAR}{}", fitting.join("\n")))?;
        } else {
            output::data(&screen)?;
        }
        if args.once {
            return Ok(Ending::Done);
        }
        then = now;
    }
}

fn screen(span: &Span<'_>, columns: usize) -> String {
    let now = span.now;
    let locate = if now.is_locate_led_on { ", (*) LOCATE" } else { "" };
    let health = now.health.state.word();
    let mut lines =
        table::wrapped(&format!("{} ({}): {health}{locate}", now.name, now.drive), columns);
    lines.extend(problem_lines(&now.health.problems, columns));
    lines.push(String::new());
    lines.push(table::columns(&command_rows(span)));
    lines.push(String::new());
    lines.extend(drive_rows(span).iter().flat_map(|row| hanging(row, columns)));
    lines.push(String::new());
    lines.push(table::columns(&die_rows(span, columns)));
    lines.join("\n")
}

/// Returns the first `PROBLEMS_MAX` problems with their remedies, and the number of others.
fn problem_lines(problems: &[Problem], columns: usize) -> Vec<String> {
    let text = |problem: &Problem| format!("! {} {}", problem.text, problem.remedy);
    let told = problems.iter().take(PROBLEMS_MAX);
    let mut lines: Vec<String> =
        told.flat_map(|problem| table::wrapped(&text(problem), columns)).collect();
    let more = problems.len().saturating_sub(PROBLEMS_MAX) as u64;
    if more > 0 {
        lines.push(format!("! and {}", counted(more, "more problem")));
    }
    lines
}

/// A name, and a text whose further lines stand below its first.
fn hanging([name, text]: &[String; 2], columns: usize) -> Vec<String> {
    const NAME_COLUMNS: usize = 21;
    let lines = table::wrapped(text, columns.saturating_sub(NAME_COLUMNS));
    let named = |(index, line): (usize, String)| {
        let name = if index == 0 { name } else { "" };
        format!("{name:NAME_COLUMNS$}{line}").trim_end().to_owned()
    };
    lines.into_iter().enumerate().map(named).collect()
}

/// Returns the throughput of each die, at most `DIES_MAX`: those not in service first, then the
/// busiest.
fn die_rows(span: &Span<'_>, columns: usize) -> Vec<[String; 5]> {
    let speed = |now: u64, then: u64| now.saturating_sub(then) as f64 / span.seconds;
    let mut dies: Vec<(usize, &Die, [f64; 2])> = (0..)
        .zip(span.now.dies.iter().zip(&span.then.dies))
        .map(|(index, (now, then))| {
            let read = speed(now.read_bytes, then.read_bytes);
            (index, now, [read, speed(now.written_bytes, then.written_bytes)])
        })
        .collect();
    let busy = |[read, written]: [f64; 2]| read + written;
    dies.sort_by(|a, b| b.1.state.cmp(&a.1.state).then(busy(b.2).total_cmp(&busy(a.2))));
    let left = dies.len().saturating_sub(DIES_MAX) as u64;
    dies.truncate(DIES_MAX);
    let most = dies.iter().map(|(.., rates)| busy(*rates)).fold(f64::MIN_POSITIVE, f64::max);
    dies.sort_by_key(|(index, die, _)| (std::cmp::Reverse(die.state), *index));
    let titles = ["die", "state", "read", "written", "activity"].map(str::to_owned);
    let bar_columns = columns.saturating_sub(BAR_FROM).min(BAR_COLUMNS);
    let row = |(index, die, rates): (usize, &Die, [f64; 2])| {
        let [read, written] = rates.map(rate);
        let bar = bar(busy(rates) / most, bar_columns);
        [index.to_string(), die.state.word().to_owned(), read, written, bar]
    };
    let mut rows: Vec<_> = std::iter::once(titles).chain(dies.into_iter().map(row)).collect();
    if left > 0 {
        let [a, b, c] = std::array::from_fn(|_| String::new());
        rows.push(["...".to_owned(), format!("{left} more"), a, b, c]);
    }
    rows
}

/// A bar of so much of its full length, 0 to 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a short length")]
fn bar(share: f64, columns: usize) -> String {
    "#".repeat((share * columns as f64).round() as usize)
}

fn command_rows(span: &Span<'_>) -> Vec<[String; 6]> {
    let titles = ["", "IOPS", "rate", "p50", "p99", "fail"];
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
        let nanos = commands.latency_histogram.percentile_ns(share);
        nanos.map_or_else(|| "-".to_owned(), |nanos| Nanos(nanos).to_string())
    };
    [
        name.to_owned(),
        format!("{:.0}", commands.commands as f64 / span.seconds),
        rate(commands.bytes as f64 / span.seconds),
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
        rows.push(row("relocation", rate(relocated as f64 / span.seconds)));
    }
    if let Some(space) = &now.space {
        let free = format!("{} of {} superblocks", space.superblocks_free, now.format.superblocks);
        rows.push(row("free", free));
        let (stored, most) = (bytes(space.stored_bytes), bytes(space.stored_bytes_max));
        rows.push(row("stored", format!("{stored} of {most}")));
    }
    let failed = now.dies.iter().filter(|die| die.is_lost).count();
    let dies = format!("{failed} of {} failed", now.dies.len());
    rows.push(row("dies", dies));
    if let (Some(server), Some(then)) = (&now.server, &span.then.server) {
        let busy = 100.0 * (server.cpu_s - then.cpu_s) / span.seconds;
        rows.extend(heat(server, then, span.seconds).map(|text| row("model", text)));
        let clients = counted(server.clients.len() as u64, "client");
        let text = format!("{busy:.0} % CPU, {}, {clients}", bytes(server.memory_bytes));
        rows.push(row("server", text));
        rows.extend(controllers(server, then, span.seconds).map(|text| row("NVMe", text)));
    }
    rows
}

/// NVMe controllers with the commands of their queues; none where there is none.
fn controllers(now: &Server, then: &Server, seconds: f64) -> Option<String> {
    let commands = |server: &Server| -> u64 {
        let queues = server.controllers.iter().flat_map(|it| &it.queues);
        queues.map(|it| it.read_commands + it.write_commands + it.other_commands).sum()
    };
    let queues: usize = now.controllers.iter().map(|it| it.queues.len()).sum();
    let iops = commands(now).saturating_sub(commands(then)) as f64 / seconds;
    let controllers = counted(now.controllers.len() as u64, "controller");
    let text = format!("{controllers}, {}, {iops:.0} IOPS", counted(queues as u64, "I/O queue"));
    (!now.controllers.is_empty()).then_some(text)
}

/// Power and heat of the modelled drive, where it tells them.
fn heat(now: &Server, then: &Server, seconds: f64) -> Option<String> {
    let climate = |server: &Server| server.model.as_ref()?.climate;
    let (now, then) = (climate(now)?, climate(then)?);
    let (temperature, power) = (now.temperature_c, now.power_w_since(&then, seconds));
    let limit = now.power_limit_w.map_or_else(String::new, |limit| format!(" of {limit}"));
    let throttled = if now.throttled_s > then.throttled_s { ", writes throttled" } else { "" };
    let limit_c = now.throttle_c;
    Some(format!("{temperature:.1} °C, throttles at {limit_c}; {power:.1}{limit} W{throttled}"))
}

/// Of the span, and since the drive was opened; rebuilds and scrubs are no part of it.
fn amplification(now: &Writes, then: &Writes) -> String {
    let all = |it: &Writes| {
        let moved = it.relocation_bytes + it.wear_bytes + it.parity_bytes;
        it.host_bytes + moved + it.metadata_bytes
    };
    let host = now.host_sent_bytes.saturating_sub(then.host_sent_bytes);
    let written = all(now).saturating_sub(all(then));
    let recent = (host > 0).then(|| written as f64 / host as f64);
    let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| format!("{it:.3}"));
    format!("{}, {} since opened", ratio(recent), ratio(now.write_amplification))
}
