//! Figures of a step that are not those of its drive: they lack requests, or the host was the
//! limit.
//!
//! | doubt | rule | what remains |
//! |---|---|---|
//! | unfinished | a warning of that kind names the step | a rate, no percentiles |
//! | host-limited | the host does 95 % of what it can, see [`Target::host_limit`] | all |
//!
//! Tables mark such figures, findings that rest on them are withheld, and a figure that lacks
//! requests is compared with nothing. Of a drive whose flash translation layer runs on the host no
//! figure is host-limited: what keeps processors busy there is the drive.

use std::fmt;

use blockio::text::counted;

use crate::{HostLimits, Run, Step, Summary, Target, Warning, WarningKind};

/// Share of what the host can do from which it is the limit.
const HOST_BUSY_MIN: f64 = 0.95;

/// Reason why the figures of a step are not those of the drive alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Requests that had not completed when the measurement ended are in no figure.
    Unfinished,
    /// The host was busy all the time.
    HostLimited(HostLimit),
}

/// Part of a host that bounds the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostLimit {
    /// So many threads, a processor for each.
    Threads(u32),
    /// So many processors, for more threads.
    Processors(u32),
    /// The section of its driver that only one request may be in.
    SerialSection,
}

impl Doubt {
    /// The doubt about the figures that `run` measured in `step`, which are `summary`; absent
    /// where there is none.
    pub fn of(run: &Run, step: &Step, summary: &Summary) -> Option<Self> {
        if run.lacks_requests(&step.id) {
            return Some(Self::Unfinished);
        }
        run.target.host_limit(step.threads, summary).map(Self::HostLimited)
    }

    /// Few words beside the figures.
    pub fn note(self) -> String {
        match self {
            Self::Unfinished => "requests missing".into(),
            Self::HostLimited(limit) => format!("limited by the host ({limit})"),
        }
    }

    /// Reason why a finding does not rest on the figures.
    pub(crate) fn reason(self) -> String {
        format!("{}: the figures are those of the host", self.note())
    }

    /// True if the percentiles of the latency tell something of the drive.
    pub const fn has_percentiles(self) -> bool {
        match self {
            Self::Unfinished => false,
            Self::HostLimited(_) => true,
        }
    }
}

/// True if a figure under such a warning may not be the drive's own.
pub(crate) const fn is_doubt(kind: WarningKind) -> bool {
    match kind {
        WarningKind::QueueNotFilled
        | WarningKind::LittlesLaw
        | WarningKind::Unfinished
        | WarningKind::Lateness
        | WarningKind::PageCache
        | WarningKind::Environment
        | WarningKind::UnwrittenReads
        | WarningKind::Interrupted => true,
        WarningKind::NotSteady
        | WarningKind::NotPreconditioned
        | WarningKind::Submission
        | WarningKind::Purge
        | WarningKind::Scale
        | WarningKind::Space
        | WarningKind::Throttled
        | WarningKind::DieFailure => false,
    }
}

impl fmt::Display for HostLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads(threads) => f.write_str(&counted((*threads).into(), "thread")),
            Self::Processors(processors) => {
                f.write_str(&counted((*processors).into(), "processor"))
            }
            Self::SerialSection => f.write_str("one request at a time in its driver"),
        }
    }
}

impl Run {
    /// Text of the first warning that says that the figures of the step `id`, and of no other, may
    /// not be the drive's own.
    pub(crate) fn doubt_of_step(&self, id: &str) -> Option<&str> {
        let is_about = |it: &&Warning| is_doubt(it.kind) && it.step == id;
        self.warnings.iter().find(is_about).map(|it| it.text.as_str())
    }

    /// Reason why no ratio rests on the figures of `step`: a warning about them, or the host as
    /// their limit; absent where there is none.
    pub fn distrusted(&self, step: &Step) -> Option<String> {
        let is_about =
            |it: &&Warning| is_doubt(it.kind) && (it.step.is_empty() || it.step == step.id);
        let warned = self.warnings.iter().find(is_about).map(|it| it.text.clone());
        warned.or_else(|| host_limited(self, step).map(Doubt::reason))
    }

    /// True if a warning says that the figures of the step `id` lack requests.
    pub fn lacks_requests(&self, id: &str) -> bool {
        let mut warnings = self.warnings.iter();
        warnings.any(|warning| warning.kind == WarningKind::Unfinished && warning.step == id)
    }
}

/// The host as the limit of what counts of `step`.
pub(crate) fn host_limited(run: &Run, step: &Step) -> Option<Doubt> {
    let summary = step.settled.as_ref().or(step.summary.as_ref())?;
    let doubt = Doubt::of(run, step, summary)?;
    matches!(doubt, Doubt::HostLimited(_)).then_some(doubt)
}

impl Target {
    /// True if a latency is that of the longest stall that the file of a model lists for its host,
    /// within a factor of two: the list makes it, and no mechanism.
    pub fn is_listed_stall(&self, latency_ns: u64) -> bool {
        let latency_ms = latency_ns as f64 / 1e6;
        let is_near = |longest: f64| (longest / 2.0..=longest * 2.0).contains(&latency_ms);
        self.host_stall_ms_max.is_some_and(is_near)
    }

    /// The part of the host that bounds a load of `threads` on each device, if at least 95 % of it
    /// was in use: its threads or its processors are busy for so much of the time, or one request
    /// after the other is in the serial section of its driver. A drive that is faster would not be
    /// faster here. Absent otherwise, and where the flash translation layer runs on the host.
    pub fn host_limit(&self, threads: u16, figures: &Summary) -> Option<HostLimit> {
        // Only there the host keeps the map.
        if threads == 0 || self.host_map_bytes.is_some() {
            return None;
        }
        let threads = u32::from(threads) * self.devices;
        let HostLimits { processors, serial_us } = self.host_limits.unwrap_or_default();
        let busy = figures.host_processors().unwrap_or_default();
        let (available, limit) = match processors {
            Some(processors) if processors < threads => {
                (processors, HostLimit::Processors(processors))
            }
            _ => (threads, HostLimit::Threads(threads)),
        };
        if busy >= HOST_BUSY_MIN * f64::from(available) {
            return Some(limit);
        }
        let serial = figures.iops * serial_us.unwrap_or_default() / 1e6;
        (serial >= HOST_BUSY_MIN).then_some(HostLimit::SerialSection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn a_warning_of_unfinished_requests_takes_the_percentiles_of_its_step() {
        let mut run = example::run();
        let doubt = |run: &Run, index: usize| {
            let step = &run.steps[index];
            Doubt::of(run, step, step.summary.as_ref().unwrap())
        };
        assert_eq!((doubt(&run, 2), doubt(&run, 3)), (None, None));
        run.warnings.push(Warning {
            kind: WarningKind::Unfinished,
            step: run.steps[2].id.clone(),
            text: String::new(),
            remedy: String::new(),
        });
        assert_eq!((doubt(&run, 2), doubt(&run, 3)), (Some(Doubt::Unfinished), None));
        assert!(!Doubt::Unfinished.has_percentiles());
    }

    #[test]
    fn a_host_whose_threads_are_busy_for_95_percent_is_the_limit() {
        let mut run = example::run();
        run.target.devices = 2;
        let step = run.steps[2].clone();
        let busy = |share: f64| {
            let mut summary = step.summary.clone().unwrap();
            summary.host_processor_us = Some(32e6 / summary.iops * share);
            Doubt::of(&run, &step, &summary)
        };
        assert_eq!(busy(0.94), None);
        let threads = Doubt::HostLimited(HostLimit::Threads(32));
        assert_eq!(busy(0.96), Some(threads), "sixteen on each device");
        let mut managed = run.clone();
        managed.target.host_map_bytes = Some(1);
        let mut summary = step.summary.clone().unwrap();
        summary.host_processor_us = Some(64e6 / summary.iops);
        assert_eq!(Doubt::of(&managed, &step, &summary), None, "that is the drive");
        assert_eq!(threads.note(), "limited by the host (32 threads)");
        let one = Doubt::HostLimited(HostLimit::Threads(1));
        assert_eq!(one.note(), "limited by the host (1 thread)");
    }

    #[test]
    fn fewer_processors_than_threads_and_a_serial_section_are_limits_too() {
        let mut run = example::run();
        let step = run.steps[2].clone();
        let mut summary = step.summary.clone().unwrap();
        summary.host_processor_us = Some(8e6 / summary.iops * 0.96);
        assert_eq!(Doubt::of(&run, &step, &summary), None, "16 threads, 16 processors");
        run.target.host_limits = Some(HostLimits { processors: Some(8), serial_us: None });
        let processors = Doubt::HostLimited(HostLimit::Processors(8));
        assert_eq!(Doubt::of(&run, &step, &summary), Some(processors));
        let serial_us = Some(0.96e6 / summary.iops);
        run.target.host_limits = Some(HostLimits { processors: None, serial_us });
        let serial = Doubt::of(&run, &step, &summary).unwrap();
        assert_eq!(serial.note(), "limited by the host (one request at a time in its driver)");
        summary.iops *= 0.97;
        assert_eq!(Doubt::of(&run, &step, &summary), None);
    }
}
