//! Repeats of a load with other seeds, for the spread of its figures: as many as a model gets
//! through soon, where no number was ordered.

use crate::plan::Plan;
use crate::subject::Subject;
use crate::wanted::TargetSetup;

/// Pages that a model moves in a second of one processor, from the default review, which moves 535
/// million for each format and takes 100 s for that on a machine of two.
pub const MODEL_PAGES_PER_S: f64 = 6e6;

/// Repeats of a model that is quick, enough for a spread.
const AFFORDABLE: u32 = 3;
/// Time of one processor that all of these may take. It is estimated: a limit on the clock would
/// make results depend on the machine.
const SECONDS_MAX: f64 = 60.0;

/// Returns the repeats of all of `runs` where no number was ordered: three of models that get
/// through them in less than a minute, and one of a real target, which every repeat wears.
pub fn affordable<'a>(
    subject: &Subject,
    runs: impl Iterator<Item = (&'a TargetSetup, &'a Plan)>,
) -> u32 {
    let Subject::Model { spec, .. } = subject else { return 1 };
    let work = |(wanted, plan): (&TargetSetup, &Plan)| {
        // A recording is replayed the same with every seed, and has no estimate.
        if plan.steps.iter().any(|step| step.application.is_some()) {
            return f64::INFINITY;
        }
        plan.work() * f64::from(spec.time_lapse_default()) / f64::from(wanted.time_lapse.max(1))
    };
    of_work(runs.map(work).sum())
}

/// As [`affordable`], for models that move so many pages, see [`Plan::work`].
pub fn of_work(pages: f64) -> u32 {
    let seconds = pages * f64::from(AFFORDABLE) / MODEL_PAGES_PER_S;
    if seconds <= SECONDS_MAX { AFFORDABLE } else { 1 }
}

#[cfg(test)]
mod tests {
    use crate::library::Library;
    use crate::plan::OneLoad;
    use crate::subject::Choice;
    use workload::{Protocol, Workload, catalogue};

    use super::*;

    #[test]
    fn short_models_repeat_and_long_ones_do_not() {
        let count = |drive: &str, duration_s, time_lapse| {
            let subject = Subject::find(drive).expect("a drive of the catalogue");
            let choice = Choice { time_lapse, ..Choice::default() };
            let wanted = subject.setup(&choice).expect("its first format");
            let workload = Library::of_user().find::<Workload>("4k-rand-write");
            let load = OneLoad {
                threads: 16,
                queue_per_thread: 16,
                precondition_s: 0.0,
                duration_s,
                pace: None,
                replay: None,
            };
            let plan = Plan::of_one(&workload.expect("it is built in").value, &load, 1);
            affordable(&subject, std::iter::once((&wanted, &subject.plan(plan, &wanted))))
        };
        assert_eq!(count("iodrive-duo", 60.0, None), 3);
        assert_eq!(count("iodrive-duo", 6.0 * 3600.0, None), 3);
        assert_eq!(count("iodrive-duo", 6.0 * 3600.0, Some(1)), 1, "at full scale");
    }

    #[test]
    fn replays_of_recordings_are_not_repeated() {
        let subject = Subject::find("px600-2600").expect("a drive of the catalogue");
        let wanted = subject.setup(&Choice::default()).expect("its first format");
        let count = |protocol: &str| {
            let library = Library::of_user();
            let protocol = library.find::<Protocol>(protocol).expect("it is built in").value;
            let plan = Plan::new(&protocol, &catalogue::workloads(), 1).expect("it has workloads");
            affordable(&subject, std::iter::once((&wanted, &subject.plan(plan, &wanted))))
        };
        assert_eq!((count("applications"), count("quick")), (1, 3));
    }
}
