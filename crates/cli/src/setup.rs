//! Interpretation of arguments that several commands share.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use anyhow::Result;
use blockio::Nanos;
use lab::order::ReviewOrder;
use lab::plan::Plan;
use lab::results::{Warning, WarningKind};
use lab::ssd::{DieFailure, DriveSpec, Surroundings};
use lab::subject::{Choice, Subject};
use lab::wanted::Precision;
use lab::{Error, Kind};

use crate::args::{ClientArgs, DataArgs, ModelArgs, PlaceArgs, RealArgs, SamplingArgs, TraceArgs};
use crate::output;

/// Hint for a file of figures that cannot be parsed.
pub(crate) const FIGURES: &str =
    "`floatgate drives iodrive-duo --figures` prints a table in the expected form";

/// Refuses the first option that was given of `options`, which are about `what`.
///
/// # Errors
/// Fails if one was given; `hint` is the remedy.
pub(crate) fn refuse_given(
    options: &[(&str, bool)],
    what: &str,
    hint: &'static str,
) -> Result<(), Error> {
    let given = options.iter().find(|(_, is_given)| *is_given);
    given.map_or(Ok(()), |(option, _)| {
        Err(Error::new(Kind::Input, format!("{option} applies to {what}")).hint(hint))
    })
}

/// Returns the setup of a target that the arguments select.
pub(crate) fn choice(format: Option<&str>, model: &ModelArgs) -> Choice {
    Choice {
        time_lapse_max: None,
        format: format.map(str::to_owned),
        host: model.host.clone(),
        clients: None,
        time_lapse: if model.full_scale { Some(1) } else { model.time_lapse },
        surroundings: Surroundings::default(),
        precision: None,
    }
}

/// `choice` sampled to the precision in percent that the arguments name.
///
/// # Errors
/// Refuses a precision that is out of range.
pub(crate) fn sampled(choice: Choice, args: &SamplingArgs) -> Result<Choice, Error> {
    let precision = args.precision.map(|percent| Precision::of_share(percent / 100.0));
    Ok(Choice { precision: precision.transpose()?, ..choice })
}

/// `choice` on the machines that the arguments name.
pub(crate) fn on_clients(choice: Choice, args: &ClientArgs) -> Choice {
    Choice { clients: args.client.clone(), ..choice }
}

/// `choice` where the arguments put it.
pub(crate) fn placed(choice: Choice, place: &PlaceArgs) -> Choice {
    let surroundings = place.around.with(place.fail_die.clone());
    Choice { surroundings, ..choice }
}

/// The order of a protocol that the arguments make.
pub(crate) fn review_order(
    protocol: &str,
    seed: u64,
    (trace, data): (&TraceArgs, &DataArgs),
    precondition: Option<Duration>,
) -> ReviewOrder {
    ReviewOrder {
        protocol: protocol.to_owned(),
        seed,
        trace: trace.trace.clone(),
        compressible_percent: data.compressible,
        precondition_s: precondition.map(|span| span.as_secs_f64()),
    }
}

/// The measurements of `plan` alone where nothing may be written to a real target.
pub(crate) fn for_reading(plan: Plan, subject: &Subject, real: &RealArgs) -> Result<Plan> {
    let is_kept = real.read_only && matches!(subject, Subject::Real { .. });
    Ok(if is_kept { plan.for_reading()? } else { plan })
}

/// Tells that data compresses in vain on the drive of `spec`.
pub(crate) fn tell_no_compression(spec: &DriveSpec, data: &DataArgs) {
    if data.compressible.is_some() && !spec.compresses() {
        let name = &spec.name;
        output::talk(&format!("warning: --compressible has no effect: {name} does not compress"));
    }
}

/// Tells options that were given and change nothing on a modelled drive; nothing of a real one.
pub(crate) fn tell_without_effect(subject: &Subject, real: &RealArgs, data: &DataArgs) {
    let Subject::Model { spec, .. } = subject else { return };
    for option in real.without_effect_on_models() {
        output::talk(&format!("warning: {option} has no effect on a model"));
    }
    tell_no_compression(spec, data);
}

/// Tells which of the dies that were to fail did not within a load of `lasted`.
pub(crate) fn tell_intact(place: &PlaceArgs, warnings: &[&Warning], lasted: Nanos) {
    let failed = warnings.iter().filter(|it| it.kind == WarningKind::DieFailure).count();
    let mut to_fail = place.fail_die.clone();
    to_fail.sort_by_key(|failure| failure.after_s);
    for DieFailure { die, .. } in to_fail.iter().skip(failed) {
        output::talk(&format!(
            "warning: die {die} never failed: the load ended at {lasted}, before its time"
        ));
    }
}

/// A folder for results, and whether it was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MadeFolder {
    path: PathBuf,
    is_new: bool,
}

impl MadeFolder {
    /// Looks whether a folder is there, before anything is made in it.
    pub(crate) fn look(path: &Path) -> Self {
        Self { path: path.to_owned(), is_new: !path.exists() }
    }

    /// Removes the folder if it was not there before and is empty: a command that failed leaves
    /// nothing.
    pub(crate) fn remove_empty(&self) {
        if self.is_new {
            // One that holds something, or was never made, is not removed.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Reads a file that the user named.
///
/// # Errors
/// Names the file.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| {
        Error::new(Kind::Input, format!("reading {}", path.display())).source(source)
    })
}

/// Refuses to write over a file that is there, for a command that has no option to overwrite it.
pub(crate) fn check_new(path: &Path) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let text = format!("{} already exists", path.display());
    Err(Error::new(Kind::Refused, text).hint("name another file").into())
}

/// Refuses to write over a file that is there, before any work is done for it.
pub(crate) fn check_output(path: &Path, overwrite: bool) -> Result<()> {
    if overwrite || !path.exists() {
        return Ok(());
    }
    let text = format!("{} already exists", path.display());
    let hint = "name another file, or add --overwrite to replace it";
    Err(Error::new(Kind::Refused, text).hint(hint).into())
}

/// Refuses a file that cannot be written, before any work is done for it.
pub(crate) fn check_writable(path: &Path) -> Result<()> {
    let is_new = !path.exists();
    // Not truncated: the file is replaced at the end, and whole.
    let opened = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
    opened.map_err(|source| {
        let text = format!("writing {}", path.display());
        let hint = "name a file in a folder that exists and may be written to";
        Error::new(Kind::Io, text).source(source).hint(hint)
    })?;
    if is_new {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// `name`, or what stands before its ending with the first number from 2 of which there is no file.
pub(crate) fn free_name(name: &str) -> PathBuf {
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let numbered = (2..).map(|number| PathBuf::from(format!("{stem}-{number}.{ending}")));
    let mut names = std::iter::once(PathBuf::from(name)).chain(numbered);
    names.find(|path| !path.exists()).expect("some number is free")
}

/// `text` as a shell takes it for one word.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=+,@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Simulations at once: as many as were asked for, or as there are processors.
pub(crate) fn jobs(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}
