//! `floatgate volume scrub`, `fail-die`, `replace-die`, `add-spare`, `remove-spare`, `inject`:
//! maintenance of a volume, and faults, through its server where it has one.

use std::io;
use std::path::{Path, absolute};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use blockio::text::counted;
use live::fault_injection::Fault;
use live::{Contents, Replacement};
use status::management::{Connection, Request};
use status::{MaintenanceStatus, Rebuild, Scrub};

use super::unanswered::UnansweredRequest;
use crate::args::{self, AddSpare, FailDie, Inject, RemoveSpare, ReplaceDie, Scrub as ScrubArgs};
use crate::failure::Opening;
use crate::progress::Rows;
use crate::{Ending, output};

/// Time between two looks at work that a server does.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Longest wait for a server to end after its power was cut.
const POWER_CUT_PATIENCE: Duration = Duration::from_secs(10);

/// Scrubs a served drive and prints the result.
pub(crate) fn scrub(args: &ScrubArgs) -> Result<Ending> {
    let shown = args.volume.display();
    let mut server = needed_server(&args.volume, || {
        format!("`floatgate volume check --repair {shown}` checks a closed volume")
    })?;
    let attempted = || format!("scrubbing {shown}");
    let unanswered = UnansweredRequest {
        state: "the scrub did not come to its end",
        next: format!(
            "serve the volume and run `floatgate volume scrub {shown}` again, or run `floatgate \
             volume check --repair {shown}` while it is closed"
        ),
    };
    let ordered = server.order(&Request::Scrub).map_err(|error| unanswered.of_order(error));
    ordered.with_context(attempted)?;
    if args.no_wait {
        return Ok(Ending::Done);
    }
    let is_running = |scrub: &Scrub| scrub.is_running;
    let progress = |scrub: &Scrub| (scrub.rows_done, scrub.rows);
    let scrub = awaited("scrubbing", &mut server, |it| it.scrub, is_running, progress);
    let scrub = scrub.map_err(|error| unanswered.of_wait(error)).with_context(attempted)?;
    scrubbed(&shown.to_string(), scrub)
}

/// Prints the result of a scrub, and fails if damage is left.
fn scrubbed(shown: &str, scrub: Scrub) -> Result<Ending> {
    let Scrub { rows, units_bad, units_restored, units_vacated, pages_moved, .. } = scrub;
    output::data(&format!(
        "{} read: {} found, {units_restored} repaired",
        counted(rows, "row"),
        counted(units_bad, "corrupt unit"),
    ))?;
    if scrub.copies_bad > 0 {
        output::data(&format!(
            "{} of headers, checkpoint and journal found, {} repaired",
            counted_copies(scrub.copies_bad),
            scrub.copies_restored,
        ))?;
    }
    if units_vacated > 0 {
        output::data(&format!(
            "{} cannot be restored; {} of their rows moved to other rows",
            counted(units_vacated, "unit"),
            counted(pages_moved, "readable page"),
        ))?;
    }
    for lba in &scrub.lost_lbas {
        output::data(&format!("sectors {lba} to {} are lost", lba + 7))?;
    }
    let (pages_lost, told) = (scrub.pages_lost, scrub.lost_lbas.len() as u64);
    if pages_lost > told {
        output::data(&format!("{} more pages are lost", pages_lost - told))?;
    }
    let units_left = units_bad - units_restored - units_vacated;
    let copies_left = scrub.copies_left();
    match scrub.failure {
        Some(failure) => bail!("scrubbing {shown}: {failure}"),
        None if units_left > 0 => {
            bail!("{} of {shown} could not be repaired", counted(units_left, "corrupt unit"))
        }
        None if copies_left > 0 => bail!(
            "{} of headers, checkpoint and journal of {shown} could not be repaired",
            counted_copies(copies_left)
        ),
        None if pages_lost > 0 => {
            let lost = counted(pages_lost, "page");
            bail!("{lost} of {shown} cannot be read: write them again from a backup, or trim them")
        }
        None => Ok(Ending::Done),
    }
}

fn counted_copies(copies: u64) -> String {
    if copies == 1 { "1 damaged copy".to_owned() } else { format!("{copies} damaged copies") }
}

/// Takes a die offline.
pub(crate) fn fail_die(args: &FailDie) -> Result<Ending> {
    let (shown, die) = (args.volume.display(), args.die);
    let attempted = || format!("failing die {die} of {shown}");
    if let Some(mut server) = server(&args.volume)? {
        let unanswered = UnansweredRequest {
            state: "the die may be offline or not",
            next: format!(
                "`floatgate volume status {shown} --all` says which; then run this again"
            ),
        };
        let ordered = server.order(&Request::FailDie { die });
        ordered.map_err(|error| unanswered.of_order(error)).with_context(attempted)?;
    } else {
        let drive = args.key.open(&args.volume)?;
        let failed = live::check_die(&drive, die).and_then(|()| Ok(drive.fail_die(die)?));
        let restored = failed.and_then(|()| {
            let pages = Rows::new("restoring redundancy");
            let restored = drive.restore_redundancy_while(|done, all| {
                pages.moved(done, all);
                true
            });
            pages.clear();
            Ok(restored?)
        });
        drive.close().with_context(|| format!("closing {shown}"))?;
        let redundancy = if restored? {
            "redundancy is restored: it tolerates 1 more failure"
        } else {
            "no redundancy left: another failure loses data"
        };
        output::talk(&format!("{shown}: {redundancy}"));
    }
    output::talk(&format!(
        "die {die} of {shown} is offline; `floatgate volume replace-die` replaces it"
    ));
    Ok(Ending::Done)
}

/// Puts another die in the place of one that has failed.
pub(crate) fn replace_die(args: &ReplaceDie) -> Result<Ending> {
    let (shown, die, destroy) = (args.volume.display(), args.die, args.destroy);
    let path = absolute(&args.with).context("finding the new die")?;
    let attempted = || format!("replacing die {die} of {shown}");
    if let Some(mut server) = server(&args.volume)? {
        let unanswered = UnansweredRequest {
            state: "the rebuild did not come to its end, and the volume tolerates no failure of a \
                    die until one has",
            next: format!(
                "`floatgate volume status {shown}` says how far it is; `floatgate volume \
                 replace-die {shown} {die} --with {}` begins it again, whether the volume is \
                 served or not",
                args.with.display()
            ),
        };
        let ordered = server.order(&Request::ReplaceDie { die, path, destroy });
        ordered.map_err(|error| unanswered.of_order(error)).with_context(attempted)?;
        if args.no_wait {
            return Ok(Ending::Done);
        }
        let is_running = |rebuild: &Rebuild| rebuild.is_running;
        let progress = |rebuild: &Rebuild| (rebuild.rows_done, rebuild.rows);
        let rebuild = awaited("rebuilding", &mut server, |it| it.rebuild, is_running, progress);
        let rebuild = rebuild.map_err(|error| unanswered.of_wait(error)).with_context(attempted)?;
        if let Some(failure) = rebuild.failure {
            bail!("{}: {failure}", attempted());
        }
        if rebuild.units_lost > 0 {
            let lost = rebuild.units_lost;
            let lost = counted(lost, "unit");
            output::talk(&format!(
                "warning: {lost} could not be restored; run `floatgate volume scrub {shown}`"
            ));
        }
    } else {
        let drive = args.key.open(&args.volume)?;
        let rows = Rows::new("rebuilding");
        let contents = Contents::lost_if(destroy);
        let prepared = Replacement::prepare(&args.volume, &drive, die, &path, contents);
        let replaced = prepared.and_then(|it| {
            Ok(it.carry_out(&drive, |done, all| {
                rows.moved(done, all);
                true
            })?)
        });
        rows.clear();
        drive.close().with_context(|| format!("closing {shown}"))?;
        replaced.with_context(attempted)?;
    }
    output::talk(&format!("die {die} of {shown} is rebuilt on {}", args.with.display()));
    Ok(Ending::Done)
}

/// Gives a drive another hot spare.
pub(crate) fn add_spare(args: &AddSpare) -> Result<Ending> {
    let shown = args.volume.display();
    let path = absolute(&args.spare).context("finding the hot spare")?;
    let attempted = || format!("adding a hot spare to {shown}");
    if let Some(mut server) = server(&args.volume)? {
        let ordered = server.order(&Request::AddSpare { path, destroy: args.destroy });
        let unanswered = spare_unanswered(&args.volume);
        ordered.map_err(|error| unanswered.of_order(error)).with_context(attempted)?;
    } else {
        let drive = args.key.open(&args.volume)?;
        let added = live::add_spare(&args.volume, &drive, &path, Contents::lost_if(args.destroy));
        drive.close().with_context(|| format!("closing {shown}"))?;
        added.with_context(attempted)?;
    }
    let spare = args.spare.display();
    output::talk(&format!(
        "{spare} is a hot spare of {shown} and replaces the next die that fails"
    ));
    Ok(Ending::Done)
}

/// Removes a hot spare of a drive.
pub(crate) fn remove_spare(args: &RemoveSpare) -> Result<Ending> {
    let shown = args.volume.display();
    let path = absolute(&args.spare).context("finding the hot spare")?;
    let attempted = || format!("removing a hot spare from {shown}");
    match server(&args.volume)? {
        Some(mut server) => {
            let ordered = server.order(&Request::RemoveSpare { path });
            let unanswered = spare_unanswered(&args.volume);
            ordered.map_err(|error| unanswered.of_order(error)).with_context(attempted)?;
        }
        None => {
            live::remove_spare(&args.volume, &path).with_context(attempted)?;
        }
    }
    let spare = args.spare.display();
    output::talk(&format!("{spare} is no hot spare of {shown} any more; it was not changed"));
    Ok(Ending::Done)
}

/// State of a volume whose server did not say what it made of a hot spare.
fn spare_unanswered(volume: &Path) -> UnansweredRequest {
    let shown = volume.display();
    UnansweredRequest {
        state: "the hot spares may be those of before or not",
        next: format!("`floatgate volume status {shown}` counts them; then run this again"),
    }
}

/// Injects a fault into a served drive.
pub(crate) fn inject(args: &Inject) -> Result<Ending> {
    let shown = args.volume.display();
    let mut server = needed_server(&args.volume, || {
        format!("start `floatgate volume serve {shown} --fault-injection`")
    })?;
    let fault = match args.fault {
        args::Fault::CutPower => Fault::CutPower {},
        args::Fault::FailDie { die } => Fault::FailDie { die },
        args::Fault::FailRange { die, from, length } => {
            Fault::FailRange { die, from_bytes: from, length_bytes: length }
        }
        args::Fault::FlipBits { die, bits } => Fault::FlipBits { die, bits },
        args::Fault::Stall { time } => {
            let stall_ms = u64::try_from(time.as_millis()).context("the stall is too long")?;
            Fault::Stall { stall_ms }
        }
        args::Fault::Fill => Fault::Fill { left_bytes: 0 },
        args::Fault::FailReads { commands } => Fault::FailReads { commands },
        args::Fault::ResetControllers => Fault::ResetControllers {},
        args::Fault::FailControllers => Fault::FailControllers {},
        args::Fault::FailPlp => Fault::FailPlp {},
        args::Fault::Remove { time } => {
            let for_ms = u64::try_from(time.as_millis()).context("the removal is too long")?;
            Fault::Remove { for_ms }
        }
        args::Fault::FailWrites { namespace } => Fault::FailWrites { namespace },
        args::Fault::Heat { celsius } => Fault::Heat { celsius },
        args::Fault::Wear { used, spare } => {
            Fault::Wear { used_percent: used, spare_percent: spare }
        }
    };
    match server.order(&Request::InjectFault { fault }) {
        // A server without power does not answer.
        Err(error) if matches!(fault, Fault::CutPower {}) && is_gone(&error) => {
            drop(server);
            await_end(&args.volume).with_context(|| format!("cutting the power of {shown}"))?;
        }
        done => {
            let unanswered = UnansweredRequest {
                state: "the fault may have come or not",
                next: format!(
                    "`floatgate volume status {shown}` says whether the volume is served"
                ),
            };
            let attempted = || format!("injecting a fault into {shown}");
            done.map_err(|error| unanswered.of_order(error)).with_context(attempted)?;
        }
    }
    Ok(Ending::Done)
}

/// Waits until the process of a server that hung up has ended.
fn await_end(volume: &Path) -> Result<()> {
    let deadline = Instant::now() + POWER_CUT_PATIENCE;
    while server(volume)?.is_some() {
        if Instant::now() > deadline {
            bail!("the server closed the connection but did not exit; see its log");
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

/// The server of a drive, if it has one.
///
/// # Errors
/// Fails if a folder without a server is not that of a drive, too.
pub(crate) fn server(volume: &Path) -> Result<Option<Connection>> {
    let attempted = || format!("asking the server of {}", volume.display());
    let found =
        if volume.is_dir() { Connection::open(volume).with_context(attempted)? } else { None };
    if found.is_none() && !live::is_volume(volume) {
        live::check_volume(volume).with_context(|| Opening::to_find(volume))?;
    }
    Ok(found)
}

/// The server of a drive that must have one; `remedy` says what to do otherwise.
pub(crate) fn needed_server(volume: &Path, remedy: impl FnOnce() -> String) -> Result<Connection> {
    match server(volume)? {
        Some(server) => Ok(server),
        None => bail!("{} is not served; {}", volume.display(), remedy()),
    }
}

/// Watches what a server does until it has ended.
pub(super) fn awaited<T>(
    name: &str,
    server: &mut Connection,
    work: impl Fn(MaintenanceStatus) -> Option<T>,
    is_running: impl Fn(&T) -> bool,
    progress: impl Fn(&T) -> (u64, u64),
) -> Result<T> {
    let rows = Rows::new(name);
    loop {
        let status = server.status().inspect_err(|_| rows.clear());
        let status = status.context("asking the server for the progress")?;
        let work = work(status.maintenance).context("the server no longer reports it")?;
        let (done, all) = progress(&work);
        rows.moved(done, all);
        if !is_running(&work) {
            rows.clear();
            return Ok(work);
        }
        thread::sleep(LOOK_EVERY);
    }
}
