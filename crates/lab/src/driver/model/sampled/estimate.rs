//! Estimates from the windows so far: the time of a request, how much it differs from window to
//! window, and so how close windows have to lie.

use std::collections::VecDeque;

use blockio::Nanos;
use results::{Interval, NandWrites};

use super::Scale;

/// Windows whose mean is the time that a request is expected to take.
const RECENT: usize = 4;
/// Windows whose differences say how close the next ones have to lie.
const SPREAD_WINDOWS: usize = 32;
/// Windows of a load at least, so that batches of them have a spread.
const WINDOWS_MIN: f64 = 40.0;
/// Times that a window and the detail before it fit into the smallest stratum: of smaller ones most
/// would be in detail.
const STRATUM_WINDOWS_MIN: f64 = 2.5;
/// Part of a load that is to meet the precision by itself: the window of the steady-state rule is
/// five of twelve rounds.
pub(super) const PARTS: usize = 4;
/// Quantile 0.975 of the normal distribution.
const QUANTILE: f64 = 1.960;
/// Stalls of each thread that windows are to meet, at least.
const STALLS_MIN: f64 = 10.0;
/// Windows from which a regression is worth something.
const REGRESSION_MIN: usize = 8;
/// Factor by which a stratum is faster than its window, at most.
const CORRECTION_MAX: f64 = 4.0;
/// Weight of what was measured last in a moving average.
const WEIGHT: f64 = 0.25;

/// Figures of a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowFigures {
    /// Nanoseconds of a request.
    pub(super) request_ns: f64,
    /// Pages relocated for each request.
    pub(super) relocated: f64,
    /// Pages relocated for each request of the stratum.
    pub(super) relocated_all: f64,
    /// Nanoseconds of a request of the stratum: what relocation in all of it makes of the window.
    pub(super) stratum_ns: f64,
}

/// Pages over a stretch of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProgrammedPages {
    /// Written by the host.
    pub(super) written: u64,
    /// Programmed for any cause.
    pub(super) programmed: u64,
}

/// Pages of 4 KiB that were relocated.
fn relocated(nand: NandWrites) -> f64 {
    (nand.relocation_bytes + nand.wear_bytes) as f64 / 4096.0
}

/// Estimates of a load under way.
#[derive(Debug)]
pub(super) struct Estimate {
    precision: f64,
    /// Requests of a window and of the detail before it.
    detail: f64,
    /// The last windows.
    seen: VecDeque<WindowFigures>,
    /// Nanoseconds that a request takes longer for each page relocated for it.
    relocation_ns: f64,
    windows: u64,
    /// Pages relocated in idle time for each page that the host wrote.
    idle_pages: Option<f64>,
    /// Pages programmed for each page that the host wrote, at the last looks; absent before.
    programmed: Option<f64>,
    /// Pages since the last look at them, and those that are due for one.
    unseen: ProgrammedPages,
    look_pages: u64,
    /// Longest time between two stalls of a thread on the drive's own clock, which stands still
    /// between windows; 0 without any.
    stall_every_ns: f64,
    /// Requests of a stratum for each that is simulated in detail.
    dilution: f64,
}

impl Estimate {
    pub(super) fn new(
        precision: f64,
        detail: u64,
        look_pages: u64,
        stall_every: Option<Nanos>,
    ) -> Self {
        Self {
            precision,
            detail: detail as f64,
            seen: VecDeque::new(),
            relocation_ns: 0.0,
            windows: 0,
            idle_pages: None,
            programmed: None,
            unseen: ProgrammedPages::default(),
            look_pages,
            stall_every_ns: stall_every.map_or(0.0, |every| every.as_secs_f64() * 1e9),
            dilution: 1.0,
        }
    }

    /// Takes note that a window and the detail before it have so many requests.
    pub(super) const fn set_detail(&mut self, requests: u64) {
        self.detail = requests as f64;
    }

    /// Requests of the smallest stratum that is sampled.
    pub(super) fn stratum_min(&self) -> f64 {
        (self.detail * STRATUM_WINDOWS_MIN).ceil()
    }

    /// True if a window was measured.
    pub(super) fn is_begun(&self) -> bool {
        self.windows > 0
    }

    /// Windows that were measured.
    pub(super) const fn windows(&self) -> u64 {
        self.windows
    }

    /// Time that so many requests are expected to take, in nanoseconds.
    pub(super) fn of(&self, requests: u64) -> f64 {
        self.each_ns() * requests as f64
    }

    fn each_ns(&self) -> f64 {
        let recent = self.seen.iter().rev().take(RECENT);
        let count = recent.len().max(1) as f64;
        recent.map(|it| it.stratum_ns).sum::<f64>() / count
    }

    /// Pages that are relocated in idle time for each page that is written.
    pub(super) fn idle_pages(&self) -> f64 {
        self.idle_pages.unwrap_or_default()
    }

    /// Factor by which stalls that hold one request are shorter than at full scale.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small factor")]
    pub(super) fn stall_scale(&self, scale: &Scale) -> u32 {
        (scale.time_lapse * self.dilution).round() as u32
    }

    /// Share of a stratum that is simulated in detail, of which [`Self::stall_scale`] is the exact
    /// inverse.
    pub(super) fn share(&self, scale: &Scale) -> f64 {
        scale.time_lapse / f64::from(self.stall_scale(scale))
    }

    /// Has all requests from now on count as simulated in detail.
    pub(super) const fn simulate_all(&mut self) {
        self.dilution = 1.0;
    }

    /// Requests of the stratum that begins at `at_ns`: so many windows lie in a part of the load as
    /// their differences ask for, and one in each interval at least; together they are long enough
    /// to meet stalls of threads.
    pub(super) fn plan(&mut self, scale: &Scale, at_ns: f64) -> f64 {
        let each_ns = self.each_ns();
        if each_ns <= 0.0 {
            return 0.0;
        }
        let span_ns = scale.end_ns - scale.ramp_ns;
        let variation = self.variation();
        let wanted = (QUANTILE * variation / self.precision).powi(2) * PARTS as f64;
        let intervals = (span_ns / scale.interval_ns).max(1.0);
        // Half of what is in detail is in windows.
        let stalls = STALLS_MIN * self.stall_every_ns / (self.detail / 2.0 * each_ns);
        let windows = wanted.max(WINDOWS_MIN).max(intervals).max(stalls);
        let requests = (span_ns / windows / each_ns).min((scale.end_ns - at_ns) / each_ns + 1.0);
        self.dilution = (requests / self.detail).max(1.0);
        requests
    }

    /// Standard deviation of the time of a request between neighbouring windows, as a share of its
    /// mean: from successive differences, so that a slow change of the load is none.
    fn variation(&self) -> f64 {
        let mean =
            self.seen.iter().map(|it| it.stratum_ns).sum::<f64>() / self.seen.len().max(1) as f64;
        let pairs = self.seen.len().saturating_sub(1);
        if pairs < RECENT || mean <= 0.0 {
            return 0.0;
        }
        let distance = |(one, next): (&WindowFigures, &WindowFigures)| {
            let unexplained = self.relocation_ns * (one.relocated - next.relocated);
            one.request_ns - next.request_ns - unexplained
        };
        let squares: f64 = self.neighbours().map(distance).map(|it| it * it).sum();
        (squares / (2.0 * pairs as f64)).sqrt() / mean
    }

    fn neighbours(&self) -> impl Iterator<Item = (&WindowFigures, &WindowFigures)> {
        self.seen.iter().zip(self.seen.iter().skip(1))
    }

    /// Time that a relocated page takes: the regression of the differences of neighbouring windows.
    fn regression(&self) -> f64 {
        if self.seen.len() < REGRESSION_MIN {
            return 0.0;
        }
        let (mut products, mut squares) = (0.0, 0.0);
        for (one, next) in self.neighbours() {
            let distance = one.relocated - next.relocated;
            products += distance * (one.request_ns - next.request_ns);
            squares += distance * distance;
        }
        // Relocation makes nothing faster.
        if squares > 0.0 { (products / squares).max(0.0) } else { 0.0 }
    }

    /// Takes a window into account, during which `idle_pages` were relocated in idle time.
    pub(super) fn saw(&mut self, window: &Interval, idle_pages: f64) {
        let requests = (window.read.count() + window.write.count()).max(1) as f64;
        let request_ns = window.span_s * 1e9 / requests;
        let relocated = window.nand.map_or(0.0, relocated) / requests;
        self.relocation_ns = self.regression();
        self.seen.push_back(WindowFigures {
            request_ns,
            relocated,
            relocated_all: relocated,
            stratum_ns: request_ns,
        });
        if self.seen.len() > SPREAD_WINDOWS {
            self.seen.pop_front();
        }
        self.windows += 1;
        let written = window.nand.map_or(0, |nand| nand.host_sent_bytes) as f64 / 4096.0;
        if written > 0.0 {
            let now = idle_pages / written;
            let before = self.idle_pages.unwrap_or(now);
            self.idle_pages = Some(before + (now - before) * WEIGHT);
        }
    }

    /// The figures of the last window, whose stratum of so many `requests` wrote `nand`: the time
    /// of a request in it is that of the window, less or more what relocation there takes by the
    /// windows before.
    pub(super) fn close(&mut self, nand: Option<NandWrites>, requests: u64) -> WindowFigures {
        let Some(last) = self.seen.back_mut() else { return WindowFigures::default() };
        let all = nand.map_or(0.0, relocated) / (requests as f64).max(1.0);
        let corrected = last.request_ns + self.relocation_ns * (all - last.relocated);
        last.relocated_all = all;
        last.stratum_ns = corrected.max(last.request_ns / CORRECTION_MAX);
        *last
    }

    /// True if, once a look is due, the pages programmed for those written since the last one are
    /// not as many as at the looks before, by more than `change`. Then what windows told counts no
    /// longer. `part` was written since the last call.
    pub(super) fn is_changed(&mut self, part: ProgrammedPages, change: f64) -> bool {
        self.unseen.written += part.written;
        self.unseen.programmed += part.programmed;
        if self.unseen.written < self.look_pages {
            return false;
        }
        let pages = std::mem::take(&mut self.unseen);
        let now = pages.programmed as f64 / pages.written as f64;
        let usual = *self.programmed.get_or_insert(now);
        let is_changed = (now - usual).abs() > usual * change;
        if is_changed {
            self.programmed = Some(now);
            self.seen.drain(..self.seen.len().saturating_sub(1));
        } else {
            self.programmed = Some(usual + (now - usual) * WEIGHT);
        }
        is_changed
    }
}
