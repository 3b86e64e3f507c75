//! Changes of a drive from one look to the next: sentences for its events and log, and alerts for
//! the monitor.
//!
//! ```text
//!   health then ─┐
//!                ├──► a problem that is new, grew twofold or is over ──► event, log line, alert
//!   health now ──┘    a scrub or rebuild that ended                  ──► event, log line
//! ```
//!
//! **Invariant**: looks come from one thread, one after the other, so that nothing old is told as
//! news.

use blockio::text::{self, counted};
use status::{
    Die, DieState, HealthState, Problem, ProblemKind, Purge, Rebuild, Scrub, Scrubs, SpareFailure,
    Status, Supply,
};

use crate::monitor::Alert;

/// Severity of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Normal operation.
    Info,
    /// Attention is needed.
    Warning,
    /// Data is lost, or writes are refused.
    Error,
}

/// Something that happened to a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub severity: Severity,
    /// Description of the change, in whole sentences.
    pub text: String,
    /// Alert for the monitor; none if the change calls for none.
    pub alert: Option<Alert>,
}

/// State of a drive as of the previous looks.
#[derive(Debug, Default)]
pub(super) struct DriveSnapshot {
    /// The problems that were told, each as it was told.
    problems: Vec<Problem>,
    health: HealthState,
    scrubs_ended: u64,
    scrubs_for_damage: u64,
    rebuild: Option<Rebuild>,
    purge: Option<Purge>,
    hot_spares: Option<u32>,
    /// Paths of the dies.
    paths: Vec<Option<String>>,
    /// Hot spares that could not be used, as they were told.
    spare_failures: Vec<SpareFailure>,
    supply: Option<Supply>,
    /// Dies whose units rows lacked.
    degraded: Vec<u32>,
    /// By die the damaged places that reads had found when they were told, and how many looks ago.
    damaged: Vec<u64>,
    looks_since_damage: u32,
    /// By die the bad places at the last look; none before the first.
    bad_places: Option<Vec<u64>>,
}

/// Looks from one telling of damage that reads found to the next: one a minute.
const LOOKS_PER_DAMAGE: u32 = 60;

impl DriveSnapshot {
    /// Returns the changes since the previous look, and remembers the state for the next.
    pub(super) fn look(&mut self, status: &Status) -> Vec<Change> {
        let mut changes = Vec::new();
        changes.extend(self.scrubs(status));
        changes.extend(self.rebuild(status));
        changes.extend(self.purge(status));
        self.problems(status, &mut changes);
        changes.extend(self.spares(status));
        changes.extend(self.supply(status));
        changes.extend(self.redundancy(status));
        changes.extend(self.damage(status));
        changes.extend(self.bad_places(status));
        self.health = status.health.state;
        changes
    }

    fn problems(&mut self, status: &Status, changes: &mut Vec<Change>) {
        let health = status.health.state;
        let told = std::mem::take(&mut self.problems);
        for problem in &status.health.problems {
            let before = told.iter().find(|it| is_same(it, problem));
            let is_news = before.is_none_or(|before| {
                problem.severity > before.severity
                    // Writes are refused for another reason.
                    || problem.kind == ProblemKind::ReadOnly && problem.text != before.text
                    || problem.count >= before.count.saturating_mul(2)
                        && problem.count > before.count
            });
            if is_news {
                changes.push(begun(problem, health));
            }
            // What grew since it was told is held against that.
            let known = if is_news { Some(problem) } else { before };
            self.problems.extend(known.cloned());
        }
        let is_over = |it: &&Problem| !status.health.problems.iter().any(|now| is_same(now, it));
        changes.extend(told.iter().filter(is_over).filter_map(|it| ended(it, status)));
        if health == HealthState::Ok && self.health != HealthState::Ok {
            let text = "The health of the volume is ok again.".to_owned();
            let alert = Alert {
                event: "health-ok",
                health,
                die: None,
                detail: text.clone(),
                remedy: String::new(),
            };
            changes.push(Change { severity: Severity::Info, text, alert: Some(alert) });
        }
    }

    fn scrubs(&mut self, status: &Status) -> Vec<Change> {
        let Scrubs { ended, lately, for_damage, .. } = &status.maintenance.scrubs;
        let before = std::mem::replace(&mut self.scrubs_ended, *ended);
        let new = usize::try_from(ended.saturating_sub(before)).unwrap_or(usize::MAX);
        let begun_before = std::mem::replace(&mut self.scrubs_for_damage, *for_damage);
        let mut changes = Vec::new();
        if *for_damage > begun_before {
            changes.push(begun_for_damage(status));
        }
        // The next one may be under way already.
        changes.extend(lately.iter().skip(lately.len().saturating_sub(new)).map(scrubbed));
        changes
    }

    fn rebuild(&mut self, status: &Status) -> Option<Change> {
        let now = status.maintenance.rebuild.clone();
        let before = std::mem::replace(&mut self.rebuild, now.clone());
        let now = now.filter(|it| !it.is_running && before.as_ref() != Some(it))?;
        let name = named(status, now.die);
        let lost = counted(now.units_lost, "unit");
        match (&now.failure, now.units_lost) {
            (Some(why), _) => Some(warning(format!("{name} could not be rebuilt: {why}."))),
            (None, 0) => None,
            (None, _) => Some(warning(format!(
                "{name} is rebuilt, except {lost} that parity cannot restore."
            ))),
        }
    }

    /// A purge that ended, and the dies that it did not reach.
    fn purge(&mut self, status: &Status) -> Option<Change> {
        let now = status.maintenance.purge.clone();
        let before = std::mem::replace(&mut self.purge, now.clone());
        let now = now.filter(|it| !it.is_running && before.as_ref() != Some(it))?;
        Some(match (now.failure, status.not_erased()) {
            (Some(why), _) => warning(format!("A purge ended before it was complete: {why}.")),
            (None, Some(rest)) => warning(format!("A purge erased all other dies. {rest}.")),
            (None, None) => {
                let text = "A purge erased all data.".to_owned();
                Change { severity: Severity::Info, text, alert: None }
            }
        })
    }

    /// Redundancy that was restored without a failed die, which stays a problem of less weight.
    fn redundancy(&mut self, status: &Status) -> Vec<Change> {
        let dies = || (0..).zip(&status.dies);
        let is_degraded = |(_, die): &(u32, &Die)| die.has_degraded_rows;
        let now = dies().filter(is_degraded).map(|(index, _)| index).collect();
        let before = std::mem::replace(&mut self.degraded, now);
        let is_redundant = self.degraded.is_empty();
        let restored = dies().filter(|(index, die)| {
            is_redundant && before.contains(index) && die.state == DieState::Failed
        });
        let text = |index| {
            let die = named(status, index);
            format!(
                "{die} has failed; redundancy is restored: the volume tolerates 1 more failure."
            )
        };
        let change =
            |(index, _)| Change { severity: Severity::Info, text: text(index), alert: None };
        restored.map(change).collect()
    }

    /// Damage that reads found and parity hid, at once and then once a minute as long as there is
    /// more.
    fn damage(&mut self, status: &Status) -> Option<Change> {
        self.looks_since_damage = self.looks_since_damage.saturating_add(1);
        self.damaged.resize(status.dies.len(), 0);
        let pairs = self.damaged.iter_mut().zip(&status.dies);
        // A die that was replaced begins anew.
        pairs.for_each(|(told, die)| *told = (*told).min(die.damaged_places));
        let is_waiting = self.looks_since_damage < LOOKS_PER_DAMAGE;
        let has_told = self.damaged.iter().any(|told| *told > 0);
        let mut found = Vec::new();
        for (index, (told, die)) in (0_u32..).zip(self.damaged.iter().zip(&status.dies)) {
            let new = die.damaged_places - told;
            if new > 0 {
                found.push(format!(
                    "{} of {}",
                    counted(new, "damaged place"),
                    named(status, index)
                ));
            }
        }
        if found.is_empty() || is_waiting && has_told {
            return None;
        }
        self.looks_since_damage = 0;
        self.damaged = status.dies.iter().map(|die| die.damaged_places).collect();
        Some(warning(format!(
            "Reads found {}: parity gave the data back, and it is written again.",
            found.join(", ")
        )))
    }

    /// Places of dies where the medium failed, once each.
    fn bad_places(&mut self, status: &Status) -> Vec<Change> {
        let now: Vec<u64> = status.dies.iter().map(|die| die.bad_places).collect();
        let before = self.bad_places.replace(now.clone()).unwrap_or_else(|| now.clone());
        let grown = (0_u32..).zip(now.iter().zip(before)).filter(|(_, (now, was))| **now > *was);
        let told = grown.map(|(die, (count, was))| {
            let (places, named) = (counted(count - was, "bad place"), named(status, die));
            warning(format!(
                "Found {places} of {named}, where its medium failed: the data is moved, and \
                 nothing more is written there while spare superblocks are left."
            ))
        });
        told.collect()
    }

    /// Tells that physical space is low, which is no problem yet, once until there is plenty again.
    fn supply(&mut self, status: &Status) -> Option<Change> {
        let space = status.space.as_ref()?;
        let told = self.supply.unwrap_or(Supply::Ample);
        let is_plenty = space.supply == Supply::Ample;
        self.supply = Some(if is_plenty { Supply::Ample } else { told.max(space.supply) });
        let [stored, most, data] =
            [space.stored_bytes, space.stored_bytes_max, space.logical_bytes].map(text::bytes);
        (told == Supply::Ample && space.supply == Supply::Low).then(|| {
            warning(format!(
                "Physical space is low: {data} of data take {stored} of {most}. Trim or delete \
                 data."
            ))
        })
    }

    /// Hot spares that were taken, and those that could not be.
    fn spares(&mut self, status: &Status) -> Vec<Change> {
        let failures = &status.maintenance.spare_failures;
        let told = std::mem::replace(&mut self.spare_failures, failures.clone());
        let news: Vec<_> = failures.iter().filter(|it| !told.contains(it)).collect();
        let given_up = news.iter().filter(|it| !it.is_kept).count() as u64;
        let left = status.hot_spares;
        let before = self.hot_spares.replace(left).unwrap_or(left);
        let paths = status.dies.iter().map(|die| die.path.clone()).collect();
        let paths_before = std::mem::replace(&mut self.paths, paths);
        let mut changes: Vec<_> = news.iter().map(|it| warning(unused(status, it))).collect();
        // One that is given up is gone as well, and replaced nothing.
        let rebuild = status.maintenance.rebuild.as_ref();
        // One whose filling failed, and that is kept, is in the place of a die, and replaced none.
        let has_failed = rebuild.is_some_and(|it| it.failure.is_some());
        if u64::from(before.saturating_sub(left)) > given_up && !has_failed {
            let is_filling = rebuild.is_some_and(|it| it.is_running);
            let did = if is_filling { "is replacing" } else { "replaced" };
            let are = if left == 1 { "1 is".to_owned() } else { format!("{left} are") };
            // Within one look a die may fail and be replaced, so that nothing else names it.
            let places = paths_before.iter().zip(&self.paths).enumerate();
            let taken = places.filter_map(|(die, (old, new))| {
                let (old, new) =
                    (old.as_ref()?, new.as_ref().filter(|it| old.as_ref() != Some(*it))?);
                Some(format!("The hot spare {new} {did} die {die} ({old}), which failed"))
            });
            let taken: Vec<String> = taken.collect();
            let what = if taken.is_empty() {
                // It may have been removed by hand.
                format!("A hot spare {did} a failed die, or was removed")
            } else {
                taken.join("; ")
            };
            changes.push(warning(format!("{what}; {are} left.")));
        }
        changes
    }
}

/// The sentences about a hot spare that did not take the place of a failed die.
fn unused(status: &Status, failure: &SpareFailure) -> String {
    let SpareFailure { path, die, reason, is_kept } = failure;
    let (die, folder) = (named(status, *die), &status.folder);
    let add = format!("add another one with `floatgate volume add-spare {folder} PATH`");
    if *is_kept {
        format!(
            "The hot spare {path} could not replace {die}: {reason}. It stays a hot spare and is \
             tried again: remedy the cause, or {add}."
        )
    } else {
        format!(
            "The hot spare {path} failed while it was to replace {die}: {reason}. It was given \
             up: {add}."
        )
    }
}

/// True if two problems are one, seen twice.
fn is_same(one: &Problem, other: &Problem) -> bool {
    (one.kind, one.die) == (other.kind, other.die)
}

const fn warning(text: String) -> Change {
    Change { severity: Severity::Warning, text, alert: None }
}

fn named(status: &Status, die: u32) -> String {
    let index = die as usize;
    status.dies.get(index).map_or_else(|| format!("Die {die}"), |it| it.named(index))
}

/// A problem that there was not before, or that is worse.
fn begun(problem: &Problem, health: HealthState) -> Change {
    let Problem { kind, severity, die, text, remedy, .. } = problem;
    let severity = match severity {
        HealthState::Ok => Severity::Info,
        HealthState::Degraded => Severity::Warning,
        HealthState::Critical => Severity::Error,
    };
    let alert = Alert {
        event: kind.word(),
        health,
        die: *die,
        detail: text.clone(),
        remedy: remedy.clone(),
    };
    Change { severity, text: format!("{text} {remedy}"), alert: Some(alert) }
}

/// A problem that is over; none where something else tells of it.
fn ended(problem: &Problem, status: &Status) -> Option<Change> {
    let die = problem.die.and_then(|index| Some((index, status.dies.get(index as usize)?)));
    let text = match (problem.kind, die) {
        (ProblemKind::PagesLost, _) => {
            "No pages are lost any more: all lost pages were written or trimmed.".to_owned()
        }
        (ProblemKind::ReadOnly, _) => "The volume accepts reads and writes again.".to_owned(),
        (ProblemKind::Space, _) => "Space is available again.".to_owned(),
        (ProblemKind::Temperature, _) => "The modelled drive has cooled down.".to_owned(),
        (ProblemKind::DieFailed | ProblemKind::DieRebuilding, Some((index, die)))
            if die.state == DieState::Good =>
        {
            format!("{} is rebuilt.", die.named(index as usize))
        }
        _ => return None,
    };
    let alert = Alert {
        event: "resolved",
        health: status.health.state,
        die: problem.die,
        detail: text.clone(),
        remedy: String::new(),
    };
    Some(Change { severity: Severity::Info, text, alert: Some(alert) })
}

/// Returns the change that a scrub amounts to which the volume began by itself.
fn begun_for_damage(status: &Status) -> Change {
    let scrubs = status.maintenance.scrubs.lately.iter().chain(&status.maintenance.scrub);
    let on = scrubs.filter_map(|scrub| scrub.for_die).next_back();
    let on = on.map_or_else(String::new, |die| format!(" on {}", named(status, die)));
    warning(format!(
        "Reads found more damage{on} within an hour than --die-errors-per-hour allows: a scrub \
         has begun, which verifies what no read sees, too."
    ))
}

/// Returns the change that a finished scrub amounts to.
fn scrubbed(scrub: &Scrub) -> Change {
    let Scrub { rows_done, rows, units_bad, units_restored, pages_lost, .. } = scrub;
    let Scrub { copies_bad, copies_restored, .. } = *scrub;
    let far = match &scrub.failure {
        None => format!("A scrub read all {}", counted(*rows, "row")),
        Some(_) if scrub.was_stopped => {
            format!("A scrub was stopped after {rows_done} of {}", counted(*rows, "row"))
        }
        Some(why) => {
            format!("A scrub failed after {rows_done} of {} ({why})", counted(*rows, "row"))
        }
    };
    let found = match (*units_bad, *pages_lost) {
        (0, 0) => "no errors found".to_owned(),
        (bad, lost) => format!(
            "{} found, {units_restored} repaired, {} lost",
            counted(bad, "corrupt unit"),
            counted(lost, "page"),
        ),
    };
    let found = if copies_bad == 0 {
        found
    } else {
        format!(
            "{found}; damaged copies of headers, checkpoint and journal: {copies_bad}, written \
             again: {copies_restored}"
        )
    };
    let severity = match (*pages_lost, *units_bad + copies_bad, &scrub.failure) {
        (1.., ..) => Severity::Error,
        (0, 1.., _) => Severity::Warning,
        (0, 0, Some(_)) if !scrub.was_stopped => Severity::Warning,
        (0, 0, _) => Severity::Info,
    };
    Change { severity, text: format!("{far}: {found}."), alert: None }
}

#[cfg(test)]
mod tests;
