//! Figures of a step that are not those of its drive: they lack requests, or the host was the
//! limit.
//!
//! | doubt | rule | what remains |
//! |---|---|---|
//! | unfinished | a warning of that kind names the step | a rate, no percentiles |
//! | host-limited | processors of the host are busy for 95 % of what its threads have | all |
//!
//! Tables mark such figures, findings that rest on them are withheld, and a figure that lacks
//! requests is compared with nothing. Of a drive whose flash translation layer runs on the host no
//! figure is host-limited: what keeps processors busy there is the drive.

use crate::{Run, Step, Summary, Target, Warning, WarningKind};

/// Share of the processor time of all threads from which the host is the limit.
const HOST_BUSY_MIN: f64 = 0.95;

/// Reason why the figures of a step are not those of the drive alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Requests that had not completed when the measurement ended are in no figure.
    Unfinished,
    /// The processors of the host were busy all the time: one for each of so many threads.
    HostLimited(u32),
}

impl Doubt {
    /// The doubt about the figures that `run` measured in `step`, which are `summary`; absent
    /// where there is none.
    pub fn of(run: &Run, step: &Step, summary: &Summary) -> Option<Self> {
        if run.lacks_requests(&step.id) {
            return Some(Self::Unfinished);
        }
        let threads = run.target.host_limit(step.threads, summary)?;
        Some(Self::HostLimited(threads))
    }

    /// Few words beside the figures.
    pub fn note(self) -> String {
        match self {
            Self::Unfinished => "requests missing".into(),
            Self::HostLimited(1) => "limited by the host (1 thread)".into(),
            Self::HostLimited(threads) => format!("limited by the host ({threads} threads)"),
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
    /// Threads of a load of `threads` on each device, if its requests kept the processors of the
    /// host busy for at least 95 % of the time that they have: a drive that is faster would not be
    /// faster here. Absent otherwise, and where the flash translation layer runs on the host.
    pub fn host_limit(&self, threads: u16, figures: &Summary) -> Option<u32> {
        let threads = u32::from(threads) * self.devices;
        let busy = figures.host_processors().unwrap_or_default();
        let is_limited = threads > 0 && busy >= HOST_BUSY_MIN * f64::from(threads);
        // Only there the host keeps the map.
        (is_limited && self.host_map_bytes.is_none()).then_some(threads)
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
        assert_eq!(busy(0.96), Some(Doubt::HostLimited(32)), "sixteen on each device");
        let mut managed = run.clone();
        managed.target.host_map_bytes = Some(1);
        let mut summary = step.summary.clone().unwrap();
        summary.host_processor_us = Some(64e6 / summary.iops);
        assert_eq!(Doubt::of(&managed, &step, &summary), None, "that is the drive");
        assert_eq!(Doubt::HostLimited(32).note(), "limited by the host (32 threads)");
        assert_eq!(Doubt::HostLimited(1).note(), "limited by the host (1 thread)");
    }
}
