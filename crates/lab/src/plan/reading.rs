//! Plans for targets that keep their data.

use results::StepKind;

use super::{Plan, PlannedStep};
use crate::{Error, Kind};

impl Plan {
    /// The measurements of this plan alone, for a target that keeps its data: without purges, fills
    /// and preconditionings.
    ///
    /// # Errors
    /// Names the first measurement that writes or may write.
    pub fn for_reading(mut self) -> Result<Self, Error> {
        self.steps.retain(|it| matches!(it.kind, StepKind::Measure | StepKind::Application));
        self.work.clear();
        match self.steps.iter().find(|step| !only_reads(step)) {
            None => Ok(self),
            Some(step) => {
                let text = format!("refusing {}: it writes, and nothing may be written", step.id);
                let hint = "leave out --read-only, or measure loads that only read";
                Err(Error::new(Kind::Refused, text).hint(hint))
            }
        }
    }
}

/// True if every request of `step` is known to read: a trace is read when its turn comes.
fn only_reads(step: &PlannedStep) -> bool {
    let reads = step.workload.as_ref().is_some_and(|workload| workload.read_percent >= 100.0);
    reads && step.replay.is_none()
}

#[cfg(test)]
mod tests {
    use workload::catalogue::find_workload;

    use crate::plan::{OneLoad, Plan};

    fn plan(workload: &str) -> Plan {
        let load = OneLoad {
            threads: 1,
            queue_per_thread: 1,
            precondition_s: 3600.0,
            duration_s: 60.0,
            pace: None,
            replay: None,
        };
        Plan::of_one(&find_workload(workload).unwrap(), &load, 1).for_real(false)
    }

    #[test]
    fn a_plan_of_reads_keeps_its_measurement_alone_and_one_that_writes_is_refused() {
        assert_eq!(plan("4k-rand-read").steps.len(), 4, "purge, fill and preconditioning");
        let reading = plan("4k-rand-read").for_reading().unwrap();
        let ids: Vec<&str> = reading.steps.iter().map(|step| step.id.as_str()).collect();
        assert_eq!(ids, ["run/measure"]);
        for workload in ["4k-rand-write", "8k-70-30"] {
            let refused = plan(workload).for_reading().unwrap_err().to_string();
            assert!(refused.starts_with("refusing run/measure: it writes"), "{refused}");
        }
    }
}
