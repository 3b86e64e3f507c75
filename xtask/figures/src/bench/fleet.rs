//! Cost of watching many drives on one page: processor time of the dashboard and of the servers
//! that it asks, with no viewer, one, and ten.
//!
//! The drives do nothing else, and one finished review lies beside them.

use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::overhead::median;
use super::viewers::{Program, Server, Viewers, floatgate, in_folder};

/// Name of the case.
pub(super) const NAME: &str = "fleet";
const DRIVES: usize = 8;
const SIZE_MIB: u64 = 64;
/// Numbers of viewers, measured in turn.
const VIEWERS: [usize; 3] = [0, 1, 10];
/// Measurements for each number of viewers; the median counts.
const ROUNDS: usize = 3;
/// Length of each measurement.
const SPAN: Duration = Duration::from_secs(15);
/// Pause after viewers connect, before the measurement begins.
const REST: Duration = Duration::from_secs(2);
/// Ticks of processor time in a second, as Linux counts them for every program.
const TICKS_PER_S: f64 = 100.0;
/// Highest share of a core that a viewer may cost, in percent.
const PERCENT_MAX: f64 = 2.0;

/// Results of the benchmark.
#[derive(Debug, Serialize)]
pub(super) struct Looking {
    case: &'static str,
    drives: usize,
    shares: Vec<Share>,
}

/// Medians over the spans with so many viewers.
#[derive(Debug, Serialize)]
struct Share {
    viewers: usize,
    /// Of one core.
    dashboard_percent: f64,
    /// Of one core, all servers together.
    servers_percent: f64,
}

impl Looking {
    /// The lines of a table.
    pub(super) fn shown(&self) -> String {
        let without = self.shares.first().map_or(0.0, Share::percent);
        let lines = self.shares.iter().map(|share| {
            let Share { viewers, dashboard_percent, servers_percent } = share;
            let each = (share.percent() - without) / (*viewers).max(1) as f64;
            let verdict = if each <= PERCENT_MAX { "within" } else { "not within" };
            format!(
                "{NAME:<20} {viewers:>2} viewers of {DRIVES} idle drives: dashboard \
                 {dashboard_percent:.2} %, servers {servers_percent:.2} % of a core; {each:.2} % \
                 a viewer, {verdict} {PERCENT_MAX} %"
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Share {
    fn percent(&self) -> f64 {
        self.dashboard_percent + self.servers_percent
    }
}

/// Measures them.
///
/// # Errors
/// Fails if something does not start.
pub(super) fn measure() -> Result<Looking> {
    in_folder(shares)
}

fn shares(place: &Path) -> Result<Looking> {
    let runs = place.join("runs").display().to_string();
    let review = ["review", "iodrive-duo", "--protocol", "quick", "--time-lapse", "64"];
    let review = floatgate().args(review).current_dir(place).output().context("reviewing")?;
    // 3: it was measured, and a reader is warned.
    let is_measured = matches!(review.status.code(), Some(0 | 3));
    ensure!(is_measured, "{}", String::from_utf8_lossy(&review.stderr));
    let mut command = floatgate();
    command.args(["dashboard", "--http", "127.0.0.1:0", "--runs", &runs]);
    let mut servers = Vec::new();
    for index in 0..DRIVES {
        let folder = place.join(format!("drive{index}"));
        fs::create_dir(&folder)?;
        servers.push(Server::start(&folder, SIZE_MIB)?.program);
        command.arg(folder.join("volume"));
    }
    let (dashboard, http) = Program::start(&mut command, &place.join("said"))?;
    let mut measured = [const { Vec::new() }; VIEWERS.len()];
    for _ in 0..ROUNDS {
        for (viewers, spans) in VIEWERS.into_iter().zip(&mut measured) {
            let looking = Viewers::come(&http, viewers, 0)?;
            thread::sleep(REST);
            let before = (ticks(&[&dashboard])?, ticks(&servers.iter().collect::<Vec<_>>())?);
            thread::sleep(SPAN);
            let after = (ticks(&[&dashboard])?, ticks(&servers.iter().collect::<Vec<_>>())?);
            drop(looking);
            spans.push((percent(after.0 - before.0), percent(after.1 - before.1)));
        }
    }
    let shares = VIEWERS.into_iter().zip(measured).map(|(viewers, spans)| {
        let (dashboard, servers): (Vec<f64>, Vec<f64>) = spans.into_iter().unzip();
        let (dashboard_percent, servers_percent) = (median(dashboard), median(servers));
        Share { viewers, dashboard_percent, servers_percent }
    });
    Ok(Looking { case: NAME, drives: DRIVES, shares: shares.collect() })
}

/// The share of one core that so many ticks are of a span.
fn percent(ticks: u64) -> f64 {
    100.0 * ticks as f64 / TICKS_PER_S / SPAN.as_secs_f64()
}

/// Processor time that programs have taken so far, threads that are gone included.
fn ticks(programs: &[&Program]) -> Result<u64> {
    programs.iter().try_fold(0, |sum, program| {
        let text = fs::read_to_string(format!("/proc/{}/stat", program.0.id()))?;
        // The name of the program comes first, and may have spaces in it.
        let (_, rest) = text.rsplit_once(") ").context("a process without a name")?;
        let field = |index| rest.split(' ').nth(index).and_then(|it| it.parse::<u64>().ok());
        let taken = field(11).zip(field(12)).context("a process without times")?;
        Ok(sum + taken.0 + taken.1)
    })
}
