//! `floatgate volume purge`, `format`, `resize`: erasing all data and setting another size, through
//! the server of the volume where it has one and that is allowed.

use std::fmt::Display;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use blockio::Bytes;
use blockio::text::bytes;
use live::{Beyond, Namespaces, UserCapacity};
use server::drive_service::note_event;
use status::management::{Connection, Request};
use status::{self, Purge as Purged};

use super::maintenance::{awaited, server};
use super::unanswered::UnansweredRequest;
use crate::args::{Capacity, Format, FormatTarget, Purge, Resize};
use crate::progress::Rows;
use crate::{Ending, output};

/// Erases what a drive stores.
pub(crate) fn purge(args: &Purge) -> Result<Ending> {
    let shown = args.target.volume.display();
    let FoundDrive { drive, server } = FoundDrive::find(&args.target, "purging")?;
    let attempted = || format!("purging {shown}");
    let status = if let Some(mut server) = server {
        let unanswered = purge_unanswered("purge", &args.target.volume);
        let ordered = server.order(&Request::Purge { drive, while_served: true });
        ordered.map_err(|error| unanswered.of_order(error)).with_context(attempted)?;
        status_after_purge(&mut server, &unanswered).with_context(attempted)?
    } else {
        let drive = args.target.key.open(&args.target.volume)?;
        let purged = noted(&args.target.volume, "purge", || {
            with_progress("purging", |go_on| live::purge_volume(&args.target.volume, &drive, go_on))
        });
        let status = live::describe_status(drive.status(), &args.target.volume);
        drive.close().with_context(|| format!("closing {shown}"))?;
        purged.with_context(attempted)?;
        status
    };
    tell_unerased(&status);
    erased(&status).with_context(attempted)?;
    output::talk(&format!("{shown}: all data was erased"));
    Ok(Ending::Done)
}

/// Tells which media may hold data that no purge has reached.
fn tell_unerased(status: &status::Status) {
    if let Some(media) = status.unerased_media() {
        output::talk(&format!(
            "warning: {media} may hold data of earlier times and was not erased: destroy it, or \
             erase it by other means"
        ));
    }
}

/// Fails if a die was not erased.
fn erased(status: &status::Status) -> Result<()> {
    match status.not_erased() {
        Some(rest) => bail!("{rest}; all other dies were erased"),
        None => Ok(()),
    }
}

/// Erases what a drive stores, and gives it another capacity.
pub(crate) fn format(args: &Format) -> Result<Ending> {
    let (shown, Capacity { capacity, asked }) = (args.target.volume.display(), args.capacity);
    let FoundDrive { drive, server } = FoundDrive::find(&args.target, "formatting")?;
    let attempted = || format!("formatting {shown}");
    let status = if let Some(mut server) = server {
        let request = Request::Format { drive, capacity, while_served: true };
        let unanswered = purge_unanswered("format", &args.target.volume);
        let ordered = server.order(&request);
        ordered.map_err(|error| unanswered.of_order(error)).with_context(attempted)?;
        status_after_purge(&mut server, &unanswered).with_context(attempted)?
    } else {
        let drive = args.target.key.open(&args.target.volume)?;
        let done = Namespaces::allow(&args.target.volume, &drive, capacity).and_then(|()| {
            noted(&args.target.volume, "format", || {
                with_progress("formatting", |go_on| {
                    live::reformat_volume(&args.target.volume, &drive, capacity, go_on)
                })
            })
        });
        let status = live::describe_status(drive.status(), &args.target.volume);
        drive.close().with_context(|| format!("closing {shown}"))?;
        done.with_context(attempted)?;
        status
    };
    let size = status.format.capacity_bytes;
    let rounded = asked.map_or_else(String::new, |Bytes(asked)| {
        format!(" ({size} bytes, rounded down from {asked} to a multiple of 4096)")
    });
    let capacity = format!("{}{rounded}", bytes(size));
    tell_unerased(&status);
    erased(&status).with_context(|| format!("{}, capacity {capacity}", attempted()))?;
    output::talk(&format!("{shown}: all data was erased; capacity {capacity}"));
    Ok(Ending::Done)
}

/// Gives a drive another size.
pub(crate) fn resize(args: &Resize) -> Result<Ending> {
    let (shown, size) = (args.target.volume.display(), args.size);
    let (FoundDrive { drive, server }, status) = FoundDrive::look(&args.target)?;
    let discard = args.target.destroy.is_some();
    let attempted = || format!("resizing {shown}");
    if let Some(mut server) = server {
        let unanswered = UnansweredRequest {
            state: "the size may be that of before or not",
            next: format!("`floatgate volume status {shown}` says which; then run this again"),
        };
        let request = Request::Resize { drive, size_bytes: size.0, discard, while_served: true };
        let ordered = server.order(&request);
        ordered.map_err(|error| unanswered.of_order(error)).with_context(attempted)?;
    } else {
        let drive = args.target.key.open(&args.target.volume)?;
        let beyond = if discard { Beyond::Lost } else { Beyond::Kept };
        let capacity = UserCapacity::Bytes(size.0);
        let resized = Namespaces::allow(&args.target.volume, &drive, capacity)
            .and_then(|()| drive.resize(&drive.capacity_of(capacity), beyond));
        drive.close().with_context(|| format!("closing {shown}"))?;
        resized.with_context(attempted)?;
    }
    let thin = thin_after(&status.format, size).unwrap_or_default();
    output::talk(&format!("{shown}: capacity {size}{thin}"));
    Ok(Ending::Done)
}

/// Says what the physical space of a thin volume is after a resize; none of one that is not thin.
fn thin_after(before: &status::Format, size: Bytes) -> Option<String> {
    let physical = Bytes(before.physical_bytes);
    let after =
        if size > physical { "physical space" } else { "no longer thin: physical space was" };
    (physical.0 < before.capacity_bytes).then(|| format!(", {after} {physical}"))
}

/// The volume that is meant.
struct FoundDrive {
    /// Its volume ID.
    drive: String,
    /// Its server, if it has one.
    server: Option<Connection>,
}

impl FoundDrive {
    /// Finds a drive that may be destroyed.
    fn find(target: &FormatTarget, attempted: &str) -> Result<Self> {
        let (meant, status) = Self::look(target)?;
        if target.destroy.is_none() {
            let (shown, number) = (target.volume.display(), &meant.drive);
            let stored = match status.space {
                Some(space) => format!("{} of stored data", bytes(space.logical_bytes)),
                None => "all of its data".to_owned(),
            };
            bail!("{attempted} {shown} destroys {stored}; --destroy {number} allows that");
        }
        Ok(meant)
    }

    /// Finds a drive, which is the one that may be destroyed if any may, and returns its status
    /// too.
    fn look(target: &FormatTarget) -> Result<(Self, status::Status)> {
        let shown = target.volume.display();
        let mut server = server(&target.volume)?;
        let status = match &mut server {
            Some(server) if !target.while_served => {
                let by = server.pid();
                bail!("process {by} serves {shown}; stop it first, or add --while-served");
            }
            Some(server) => server.status().context("asking the server")?,
            None => live::inspect(&target.volume)?,
        };
        check_id(target, &status.drive)?;
        Ok((Self { drive: status.drive.clone(), server }, status))
    }
}

/// Checks that what may be destroyed is the volume of that ID.
fn check_id(target: &FormatTarget, id: &str) -> Result<()> {
    match &target.destroy {
        Some(other) if !other.eq_ignore_ascii_case(id) => {
            bail!("the volume ID of {} is {id}, not {other}", target.volume.display());
        }
        _ => Ok(()),
    }
}

/// State of a volume whose server did not say how a purge or a format ended.
fn purge_unanswered(command: &str, volume: &Path) -> UnansweredRequest {
    let shown = volume.display();
    UnansweredRequest {
        state: "data that was to be erased may be left on the dies",
        next: format!(
            "`floatgate volume status {shown}` says whether it is; run the same `floatgate \
             volume {command}` again, without --while-served as long as the volume is not served"
        ),
    }
}

/// Watches how far a server is with a purge, and returns the status of the volume after it.
fn status_after_purge(
    server: &mut Connection,
    unanswered: &UnansweredRequest,
) -> Result<status::Status> {
    let is_running = |purge: &Purged| purge.is_running;
    let progress = |purge: &Purged| (purge.superblocks_done, purge.superblocks);
    let purge = awaited("erasing", server, |it| it.purge, is_running, progress);
    let purge = purge.map_err(|error| unanswered.of_wait(error))?;
    if let Some(failure) = purge.failure {
        bail!(failure);
    }
    server.status().map_err(|error| unanswered.of_wait(error))
}

/// Erases a closed volume, with events of its begin and its end in the log of the volume.
fn noted<T, E: Display>(
    volume: &Path,
    name: &str,
    erase: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    note_event(volume, format!("A {name} of the closed volume has begun."));
    let erased = erase();
    note_event(
        volume,
        match &erased {
            Ok(_) => format!("A {name} of the closed volume has ended."),
            Err(why) => {
                format!("A {name} of the closed volume ended before it was complete: {why}.")
            }
        },
    );
    erased
}

/// Runs an operation and shows its progress.
fn with_progress<T>(name: &str, work: impl FnOnce(&dyn Fn(u64, u64) -> bool) -> T) -> T {
    let rows = Rows::new(name);
    let done = work(&|done, all| {
        rows.moved(done, all);
        true
    });
    rows.clear();
    done
}
