//! `floatgate review`: a whole protocol on a drive, and the review of it.

use anyhow::{Context as _, Result};
use lab::driver::Drivers;
use lab::results::{Run, StepKind, Warning, WarningKind};
use lab::runner::Outcome;
use lab::runs::{Folder, Runs, one_page_of, write_text};
use lab::subject::Subject;
use lab::target::access::Access;
use lab::wanted::TargetSetup;
use lab::{Error, Kind, repeats};
use real::review::ReviewRun;

use super::summary;
use crate::args::Review;
use crate::progress::TerminalProgress;
use crate::setup::MadeFolder;
use crate::{Ending, output, setup, steps};

/// Runs the protocol, or goes on with interrupted runs, and prints the path of the review.
pub(crate) fn review(args: &Review) -> Result<Ending> {
    let (runs, made) = (Runs::new(&args.out), MadeFolder::look(&args.out));
    let folders = if args.resume.is_empty() { begin(args, &runs) } else { go_on(args, &runs) };
    let measured = folders.and_then(|folders| carried_out(&folders, args));
    let measured = measured.inspect_err(|_| made.remove_empty())?;
    let first = measured.first().context("nothing was measured")?;
    let title = first.target.heading();
    let path = runs.publish(&measured, &report::review(&measured, &title))?;
    let fits = measured.len() <= report::ONE_PAGE_RUNS_MAX;
    if args.one_page && !fits {
        let (count, limit) = (measured.len(), report::ONE_PAGE_RUNS_MAX);
        output::talk(&format!(
            "--one-page was not written: {count} runs, and a page holds at most {limit}; compare \
             some of them with --one-page"
        ));
    }
    let one_page = (args.one_page && fits).then(|| one_page_of(&path));
    if let Some(one_page) = &one_page {
        write_text(one_page, &report::one_page(&measured, &title))?;
    }
    if args.json {
        output::json(&measured)?;
    } else {
        output::talk(&summary::shown(&measured, output::columns()));
        output::data(&path.display().to_string())?;
        one_page.iter().try_for_each(|it| output::data(&it.display().to_string()))?;
    }
    ending(&measured, args)
}

fn begin(args: &Review, runs: &Runs) -> Result<Vec<Folder>> {
    let name = args.target.as_deref().unwrap_or_default();
    let subject = Subject::find(name)?;
    setup::tell_without_effect(&subject, &args.real, &args.data);
    let data = (&args.trace, &args.data);
    let order = setup::review_order(&args.protocol, args.model.seed, data, args.precondition);
    let plan = order.plan()?;
    let choice = setup::choice(Some(&args.format), &args.model);
    let choice = setup::placed(setup::on_clients(choice, &args.clients), &args.place);
    let choice = setup::sampled(choice, &args.sampling)?;
    let wanted = subject.setups(&choice.for_plan(&plan))?;
    let mut folders = Vec::new();
    for plan in plan.repeats(args.repeat.unwrap_or(1)) {
        for wanted in &wanted {
            let plan = subject.plan(plan.clone(), wanted);
            let plan = setup::for_reading(plan, &subject, &args.real)?;
            folders.push(runs.create(plan, wanted.clone())?);
        }
    }
    Ok(folders)
}

fn go_on(args: &Review, runs: &Runs) -> Result<Vec<Folder>> {
    args.resume.iter().map(|asked| Ok(runs.open(asked)?)).collect()
}

/// Carries the orders out; what fails before anything was finished leaves no folder.
fn carried_out(folders: &[Folder], args: &Review) -> Result<Vec<Run>> {
    finished(folders, args).inspect_err(|_| {
        let kept = folders.iter().filter(|folder| folder.give_up());
        let ids: Vec<&str> = kept.map(|folder| folder.order().id.as_str()).collect();
        if !ids.is_empty() {
            let hint = how_to_go_on(&ids, args, !are_models(folders));
            output::talk(&format!("finished steps are kept; {hint}"));
        }
    })
}

fn are_models(folders: &[Folder]) -> bool {
    folders.iter().all(|folder| folder.order().wanted.is_model())
}

/// Models all at once; real targets one run after the other, each taking hold of its target anew.
fn finished(folders: &[Folder], args: &Review) -> Result<Vec<Run>> {
    let subjects: Vec<Subject> = folders
        .iter()
        .map(|folder| Subject::find(&folder.order().wanted.target))
        .collect::<Result<_, _>>()?;
    let finish = |(folder, outcome): (&Folder, Outcome)| Ok(folder.finish(outcome)?);
    if are_models(folders) {
        // A resumed run has the seeds that are left to it.
        let seeds = match (args.repeat, subjects.first()) {
            (None, Some(subject)) if args.resume.is_empty() => {
                let orders = folders.iter().map(Folder::order);
                repeats::affordable(subject, orders.map(|it| (&it.wanted, &it.plan)))
            }
            _ => 1,
        };
        let outcomes = outcomes(folders, &subjects, args, args.real.destroy, seeds)?;
        return folders.iter().zip(outcomes).map(finish).collect();
    }
    let mut runs: Vec<Run> = Vec::new();
    for (at, folder) in folders.iter().enumerate() {
        // What an earlier repeat wrote may be destroyed by the next one.
        let ours = runs.iter().any(|run| run.target.name == folder.order().wanted.target);
        let one = at..=at;
        let destroy = args.real.destroy || ours;
        let outcome = outcomes(&folders[one.clone()], &subjects[one], args, destroy, 1)?.remove(0);
        let is_cut = outcome.interrupted;
        runs.push(finish((folder, outcome))?);
        if is_cut {
            break;
        }
    }
    for never_begun in &folders[runs.len()..] {
        never_begun.give_up();
    }
    Ok(runs)
}

/// Measures each run with so many consecutive `seeds`; all but the first are for its spread.
fn outcomes(
    folders: &[Folder],
    subjects: &[Subject],
    args: &Review,
    destroy: bool,
    seeds: u32,
) -> Result<Vec<Outcome>> {
    // Before the drivers, which may have tuned the machine when Ctrl-C is pressed.
    let progress = TerminalProgress::new()?;
    let labels = labels(folders);
    let runs: Vec<ReviewRun<'_>> = (folders.iter().zip(subjects).zip(&labels))
        .map(|((folder, subject), label)| ReviewRun { folder, subject, label })
        .collect();
    let access = |folder: &Folder| Access { destroy, ..args.real.access(folder.raw()) };
    let jobs = if are_models(folders) { setup::jobs(args.jobs) } else { 1 };
    let outcomes = real::review::measure(&runs, (seeds, jobs), access, announce, &progress);
    progress.clear();
    outcomes
}

/// Names of the runs in their progress: the format, and the host where they differ in it.
fn labels(folders: &[Folder]) -> Vec<String> {
    let wanted = || folders.iter().map(|folder| &folder.order().wanted);
    let differ = wanted().any(|other| wanted().next().is_some_and(|it| it.host != other.host));
    let label = |wanted: &TargetSetup| {
        let host = if differ { &*wanted.host } else { "" };
        format!("{} {host}", wanted.format).trim_end().to_owned()
    };
    wanted().map(label).collect()
}

/// Prints what will be done to a real target before it starts.
fn announce(run: &ReviewRun<'_>, drivers: &Drivers<'_>) -> Result<()> {
    if let Subject::Real { path } = run.subject {
        steps::announce(path, steps::capacity(&drivers()?.target()), &run.folder.order().plan);
    }
    Ok(())
}

fn how_to_go_on(ids: &[&str], args: &Review, is_real: bool) -> String {
    let resume: Vec<String> = ids.iter().map(|id| format!("--resume {id}")).collect();
    let out = setup::shell_word(&args.out.display().to_string());
    let real = if is_real { format!(" {}", args.real.to_go_on()) } else { String::new() };
    format!("continue with `floatgate review {} --out {out}{real}`", resume.join(" "))
}

fn ending(measured: &[Run], args: &Review) -> Result<Ending> {
    let is_cut = |run: &&Run| u32::try_from(run.steps.len()).is_ok_and(|it| it < run.steps_planned);
    let cut: Vec<&str> = measured.iter().filter(is_cut).map(|run| run.id.as_str()).collect();
    let is_real = measured.iter().any(|run| !run.target.kind.is_model());
    if !cut.is_empty() {
        return Err(Error::new(Kind::Program, "interrupted before the plan was done")
            .hint(how_to_go_on(&cut, args, is_real))
            .into());
    }
    let unsteady = if args.require_steady { Ending::NotSteady } else { Ending::Done };
    let mut ending = Ending::Done;
    for run in measured {
        let label = summary::label(run, measured);
        for warning in &run.warnings {
            match warning.kind {
                WarningKind::NotSteady => ending = unsteady,
                WarningKind::NotPreconditioned if is_judged(run, warning) => ending = unsteady,
                WarningKind::NotPreconditioned => {}
                _ => continue,
            }
            if measured.len() > 1 {
                let step = format!("{label}: {}", warning.step);
                output::warning(&Warning { step, ..warning.clone() });
            } else {
                output::warning(warning);
            }
        }
    }
    Ok(ending)
}

/// True if a preconditioning never met the rule; false where the protocol asked for none.
fn is_judged(run: &Run, warning: &Warning) -> bool {
    run.steps.iter().any(|step| step.id == warning.step && step.kind == StepKind::Precondition)
}
