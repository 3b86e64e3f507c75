//! Model against measurement: by how much a modelled run misses a real one, load by load.
//!
//! A model misses nothing of a drive that it does not model. So the two are set against each other
//! only where the measured target names the drive, or the model was fitted to that run.

use std::borrow::Borrow;

use serde::Serialize;

use crate::compare::{Comparison, ratio};
use crate::{Run, StepKind, TargetKind};

/// Deviation of a model from a measurement under one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// A preconditioning, by its settled window, or a measurement.
    pub kind: StepKind,
    /// Name of the workload.
    pub workload: String,
    /// Jobs.
    pub threads: u16,
    /// Requests that each job kept outstanding.
    pub queue_per_thread: u16,
    /// Index of the modelled run.
    pub model: usize,
    /// Index of the real run.
    pub real: usize,
    /// Modelled IOPS over measured ones, minus 1.
    pub iops: f64,
    /// Modelled average latency over the measured one, minus 1.
    pub latency: f64,
}

/// Every load that a modelled and a real run of the same drive among `runs` have in common.
pub fn deviations<R: Borrow<Run>>(runs: &[R], comparisons: &[Comparison]) -> Vec<Deviation> {
    let is_model = |index: &usize| runs[*index].borrow().target.kind == TargetKind::Model;
    let (models, reals): (Vec<usize>, Vec<usize>) = (0..runs.len()).partition(is_model);
    let mut found = Vec::new();
    let pairs = models.iter().flat_map(|model| reals.iter().map(|real| (*model, *real)));
    let pairs = pairs.filter(|(model, real)| is_of(runs[*model].borrow(), runs[*real].borrow()));
    for (model, real) in pairs {
        let of_pair = comparisons.iter().filter_map(|it| deviation(it, model, real));
        found.extend(of_pair);
    }
    found
}

/// True if `model` is a model of what `real` measured: its file says that it was fitted to that
/// run, or the target, its title or its sheet names the drive.
fn is_of(model: &Run, real: &Run) -> bool {
    let fitted_to = format!("run {}", real.id);
    let sources = model.target.sheet.iter().map(|row| row.source.as_str());
    if !real.id.is_empty() && sources.into_iter().any(|source| source.contains(&fitted_to)) {
        return true;
    }
    let title = model.target.title.split('(').next().unwrap_or_default();
    let drive = [&model.target.name, title].map(plain);
    let sheet = real.target.sheet.iter().map(|row| row.value.as_str());
    let told = [real.target.name.as_str(), real.target.title.as_str()].into_iter().chain(sheet);
    let mut told = told.map(plain);
    told.any(|told| drive.iter().any(|drive| !drive.is_empty() && told.contains(drive)))
}

/// Letters and digits of a name, in lower case: makers, kernels and files write it differently.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

fn deviation(load: &Comparison, model: usize, real: usize) -> Option<Deviation> {
    let of = |run: usize| load.entries.get(run)?.as_ref().map(|entry| &entry.summary);
    let (modelled, measured) = (of(model)?, of(real)?);
    let average = |it: &crate::Summary| it.latency.mean_ns();
    Some(Deviation {
        kind: load.kind,
        workload: load.workload.clone(),
        threads: load.threads,
        queue_per_thread: load.queue_per_thread,
        model,
        real,
        iops: ratio(modelled.iops, measured.iops)? - 1.0,
        latency: ratio(average(modelled)?, average(measured)?)? - 1.0,
    })
}

/// The median of the sizes of `values`, whatever their signs; absent without any.
pub fn median_size(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sizes: Vec<f64> = values.into_iter().map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let upper = *sizes.get(sizes.len() / 2)?;
    let lower = sizes[(sizes.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::example;

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert_eq!(median_size([]), None);
        assert_eq!(median_size([3.0, -1.0, 2.0]), Some(2.0));
        assert_eq!(median_size([4.0, 1.0, -2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn a_model_that_is_a_tenth_too_fast_is_said_to_be() {
        let mut real = example::run();
        real.target.kind = TargetKind::BlockDevice;
        for step in &mut real.steps {
            for summary in step.summary.iter_mut().chain(&mut step.settled) {
                summary.iops /= 1.1;
            }
        }
        let runs = [example::run(), real];
        let found = deviations(&runs, &compare(&runs));
        assert_eq!(found.len(), compare(&runs).len());
        assert!(found.iter().all(|it| (it.iops - 0.1).abs() < 1e-9 && it.latency.abs() < 1e-9));
        assert!(found.iter().all(|it| (it.model, it.real) == (0, 1)));
        assert_eq!(deviations(&runs[..1], &compare(&runs[..1])), []);
    }

    #[test]
    fn a_model_is_not_set_against_the_measurement_of_another_drive() {
        let measured = |name: &str, title: &str| {
            let mut real = example::run();
            real.target.kind = TargetKind::BlockDevice;
            (real.target.name, real.target.title) = (name.into(), title.into());
            real
        };
        let told = |model: Run, real: Run| {
            let runs = [model, real];
            !deviations(&runs, &compare(&runs)).is_empty()
        };
        assert!(!told(example::run(), measured("./w.img", "./w.img on ext4")));
        let named = measured("/dev/fioa", "Fusion-io ioDrive Duo 640GB");
        assert!(told(example::run(), named), "its title names the drive");
        let mut model = example::run();
        let file = measured("./w.img", "./w.img on ext4");
        model.target.sheet[0].source =
            format!("derived: t_read_us fitted to 9 figures in run {}", file.id);
        assert!(told(model, file), "fitted to that run");
    }

    #[test]
    fn a_median_of_sizes_forgets_signs() {
        assert_eq!(median_size([-0.3, 0.1, 0.2]), Some(0.2));
        assert_eq!(median_size([0.25, -0.75]), Some(0.5));
        assert_eq!(median_size([]), None);
    }
}
