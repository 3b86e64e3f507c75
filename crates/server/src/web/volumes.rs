//! Several drives on one page, each asked over its management socket, and the runs of a folder.
//!
//! ```text
//!   places ──► folders of drives ──► entries ──► one question each, all at once ──► overview
//!                  each second         └─► routes: the page of the drive, once it has answered
//! ```
//!
//! Drives come and go: places are searched at each look, and there are no looks without a viewer. A
//! drive whose server does not answer delays no other: it is shown as last known. A place that
//! cannot be read, and a drive that is neither served nor closed, is a fault.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lab::runs::RunsSnapshot;
use live::{is_volume, locate, unserved};
use serde::Serialize;
use status::management::{Answer, Connection, Request as ManagementRequest};
use status::{History, HistorySpan, Status};
use toml::Table;

use super::drive_card::{DriveCard, Summary};
use super::drive_routes::{DriveRoutes, STREAM, ShownDrive, UNSERVED};
use super::page;
use super::reply::Reply;
use super::reports::Reports;
use super::stream::Stream;
use super::visit::Visit;
use crate::chain_text;

/// Path prefix of the page of a drive, before its number.
const DRIVES: &str = "/drives/";
/// Path prefix of a review, before its name.
const REVIEWS: &str = "/reviews/";
/// Longest wait of a look for the answers of drives.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time for which the result of checking whether an unserved drive was closed is kept. The check
/// takes its dies for a moment, during which a server that starts has to wait.
const CLOSED_KNOWN: Duration = Duration::from_secs(10);
/// Fault of an unserved drive that was not closed.
const UNCLOSED: &str = "Not served since an unclean shutdown: its server or its machine failed; \
                        `floatgate volume serve` recovers everything that was flushed.";
/// The socket that may stand for the folder that it lies in.
const SOCKET: &str = "manage.sock";

/// Drives, and runs.
#[derive(Debug)]
pub struct Volumes {
    places: Vec<PathBuf>,
    /// By folder.
    entries: Mutex<BTreeMap<PathBuf, Arc<VolumeEntry>>>,
    reports: Option<Reports>,
    stream: Stream,
}

/// State of all drives and runs, as told each second.
#[derive(Debug, Serialize)]
struct Overview {
    drives: Vec<DriveCard>,
    /// Places that were named and cannot be looked at, and why.
    faults: Vec<String>,
    #[serde(flatten)]
    sight: Option<RunsSnapshot>,
}

/// Folder of a drive, whether it is served or not, and its last known state.
#[derive(Debug)]
struct VolumeEntry {
    volume: PathBuf,
    seen: Mutex<VolumeState>,
}

/// Last known state of a drive.
#[derive(Debug)]
struct VolumeState {
    card: DriveCard,
    /// The drive's page, and its number.
    routes: Option<(String, Arc<DriveRoutes>)>,
    is_being_asked: bool,
    /// Fault of a drive that no process serves, none if it was closed, and the time of that check.
    unserved: Option<(Instant, Option<String>)>,
}

/// A drive that is asked over its management socket.
#[derive(Debug)]
struct Distant {
    volume: PathBuf,
    number: String,
}

impl Volumes {
    /// The drives at some places: folders of drives, folders of such folders, management sockets,
    /// configurations of servers; and, in another folder, runs.
    ///
    /// # Errors
    /// Fails if a place is none of these now.
    pub fn new(places: &[PathBuf], runs: Option<&Path>) -> Result<Self> {
        for place in places {
            volumes(place)?;
        }
        let (entries, stream, reports) =
            (Mutex::default(), Stream::default(), runs.map(Reports::new));
        Ok(Self { places: places.to_vec(), entries, reports, stream })
    }

    /// Answers what is asked at any path.
    pub(super) fn answer(&self, visit: &Visit<'_>) -> io::Result<()> {
        let path = visit.request.path.as_str();
        if let Some((number, path)) = drive_path(path) {
            return match self.routes(number) {
                Some(routes) => routes.answer(visit, path),
                None => visit.send(&Reply::text(404, "no volume with this ID was found here")),
            };
        }
        match path {
            STREAM if !visit.is_head() => self.stream.serve(visit, || Some(self.look())),
            _ => visit.send(&self.shown(path)),
        }
    }

    /// Disconnects all viewers.
    pub(super) fn end(&self) {
        self.stream.end();
        let all_routes: Vec<_> = self.entries().values().filter_map(|it| it.routes()).collect();
        for routes in all_routes {
            routes.end();
        }
    }

    fn shown(&self, path: &str) -> Reply {
        if let Some(name) = path.strip_prefix(REVIEWS) {
            let page = self.reports.as_ref().and_then(|reports| reports.review(name));
            return page.map_or_else(|| Reply::text(404, "unknown review"), Reply::foreign);
        }
        match path {
            "/" => page::of_fleet(),
            "/overview.json" => Reply::json(&self.look()),
            _ => page::part(path).unwrap_or_else(|| {
                Reply::text(404, "unknown path; use /, /overview.json, /stream or /drives/ID/")
            }),
        }
    }

    /// The page of a drive by its number.
    fn routes(&self, number: &str) -> Option<Arc<DriveRoutes>> {
        let find = || {
            let entries = self.entries();
            entries.values().find_map(|entry| entry.routes_of(number))
        };
        find().or_else(|| {
            // A viewer who comes by a bookmark may be the first to look.
            self.look();
            find()
        })
    }

    /// Asks all drives, and returns the state of those that answer in time, and of the others as
    /// last known.
    fn look(&self) -> Overview {
        let (entries, faults) = self.discover();
        let (answered, answers) = mpsc::channel();
        for entry in &entries {
            entry.ask(answered.clone());
        }
        drop(answered);
        let deadline = Instant::now() + PATIENCE;
        while answers.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {}
        let drives = entries.iter().map(|entry| entry.card()).collect();
        Overview { drives, faults, sight: self.reports.as_ref().map(Reports::look) }
    }

    /// The drives that are there now, and places where that is not known; what is known of others
    /// is forgotten.
    fn discover(&self) -> (Vec<Arc<VolumeEntry>>, Vec<String>) {
        let (mut found, mut faults) = (Vec::new(), Vec::new());
        // The lock is not held while file systems are asked, which may take as long as they like.
        for place in &self.places {
            match volumes(place) {
                Ok(volumes) => found.extend(volumes),
                // It may come back.
                Err(error) => {
                    faults.push(format!(
                        "Cannot read a path given to the dashboard: {}.",
                        chain_text(&error)
                    ));
                }
            }
        }
        let mut entries = self.entries();
        let mut known = std::mem::take(&mut *entries);
        for volume in found {
            let entry =
                known.remove(&volume).unwrap_or_else(|| Arc::new(VolumeEntry::new(&volume)));
            entries.entry(volume).or_insert(entry);
        }
        (entries.values().cloned().collect(), faults)
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<VolumeEntry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fault of a drive that was closed without some of its dies; none without such.
fn without(lost_dies: &[usize]) -> Option<String> {
    let shown: Vec<String> = lost_dies.iter().map(ToString::to_string).collect();
    let (which, have) = match shown.as_slice() {
        [] => return None,
        [one] => (format!("die {one}"), "has"),
        several => (format!("dies {}", several.join(", ")), "have"),
    };
    Some(format!(
        "Not served; closed cleanly without {which}, which {have} failed or cannot be found: serve \
         it, and replace what is missing."
    ))
}

/// The number of a drive, and the path below its page.
fn drive_path(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix(DRIVES)?;
    Some(rest.split_at(rest.find('/')?))
}

/// Returns the folders of the drives at a place: itself, those in it, or the one that a socket or a
/// configuration belongs to.
fn volumes(place: &Path) -> Result<Vec<PathBuf>> {
    let shown = place.display();
    let real = |path: &Path| fs::canonicalize(path).with_context(|| format!("looking at {shown}"));
    let path = real(place)?;
    if path.file_name().is_some_and(|name| name == SOCKET) {
        return Ok(path.parent().map(Path::to_owned).into_iter().collect());
    }
    if path.is_dir() {
        if is_volume(&path) {
            return Ok(vec![path]);
        }
        let entries = fs::read_dir(&path).with_context(|| format!("looking into {shown}"))?;
        let folders = entries.flatten().map(|entry| entry.path()).filter(|path| is_volume(path));
        // One that goes meanwhile is gone.
        return Ok(folders.filter_map(|folder| real(&folder).ok()).collect());
    }
    let text = fs::read_to_string(&path).with_context(|| format!("reading {shown}"))?;
    let configured = text.parse::<Table>().ok();
    match configured.as_ref().and_then(|table| table.get("volume")?.as_str()) {
        Some(volume) => Ok(vec![real(Path::new(volume))?]),
        None => bail!(
            "{shown} is neither the folder of a volume, nor a folder that contains volumes, nor a \
             {SOCKET}, nor a server configuration that names a volume"
        ),
    }
}

impl VolumeEntry {
    fn new(volume: &Path) -> Self {
        let card = DriveCard::of_folder(volume);
        let seen =
            Mutex::new(VolumeState { card, routes: None, is_being_asked: false, unserved: None });
        Self { volume: volume.to_owned(), seen }
    }

    /// Asks the drive's server, if it is not still being asked.
    fn ask(self: &Arc<Self>, answered: Sender<()>) {
        if std::mem::replace(&mut self.seen().is_being_asked, true) {
            return;
        }
        let own = Arc::clone(self);
        let look = move || {
            own.note(asked(&own.volume));
            // The thread that waited may have gone on.
            let _ = answered.send(());
        };
        if thread::Builder::new().name("ask".to_owned()).spawn(look).is_err() {
            self.seen().is_being_asked = false;
        }
    }

    fn note(&self, answer: io::Result<Option<Status>>) {
        let is_locate_led_on = locate::is_lit(&self.volume);
        let fault = match &answer {
            Ok(Some(_)) => None,
            Ok(None) => self.unserved(),
            Err(error) => Some(error.to_string()),
        };
        let mut seen = self.seen();
        seen.is_being_asked = false;
        let card = &mut seen.card;
        card.is_locate_led_on = is_locate_led_on;
        card.fault = fault;
        let summary = answer.ok().flatten().and_then(Summary::of);
        card.is_served = summary.is_some();
        let Some(summary) = summary else { return };
        let number = summary.drive.clone();
        card.drive = Some(summary);
        seen.unserved = None;
        if seen.routes.as_ref().is_none_or(|(known, _)| *known != number) {
            let distant = Distant { volume: self.volume.clone(), number: number.clone() };
            seen.routes = Some((number, Arc::new(DriveRoutes::new(distant))));
        }
    }

    /// Returns the fault of an unserved drive, from the last check or a new one; none if it was
    /// closed.
    fn unserved(&self) -> Option<String> {
        let known = self.seen().unserved.clone();
        if let Some((_, fault)) = known.filter(|(at, _)| at.elapsed() < CLOSED_KNOWN) {
            return fault;
        }
        // A process that serves it now, or checks it, is seen at the next look.
        let fault = match unserved(&self.volume) {
            Ok(found) if !found.is_closed => Some(UNCLOSED.to_owned()),
            Ok(found) => without(&found.lost_dies),
            Err(error) => Some(format!("Not served, and its dies cannot be read: {error}.")),
        };
        self.seen().unserved = Some((Instant::now(), fault.clone()));
        fault
    }

    /// Returns the card of the drive as last known, with a fault if its server has yet to answer.
    fn card(&self) -> DriveCard {
        let seen = self.seen();
        let mut card = seen.card.clone();
        if seen.is_being_asked {
            card.is_served = false;
            card.fault = Some("its server does not answer".to_owned());
        }
        card
    }

    /// The drive's page, once it has answered.
    fn routes(&self) -> Option<Arc<DriveRoutes>> {
        self.seen().routes.as_ref().map(|(_, routes)| Arc::clone(routes))
    }

    /// Returns the drive's page, if the drive has this number.
    fn routes_of(&self, number: &str) -> Option<Arc<DriveRoutes>> {
        let seen = self.seen();
        seen.routes.as_ref().filter(|(own, _)| own == number).map(|(_, routes)| Arc::clone(routes))
    }

    fn seen(&self) -> MutexGuard<'_, VolumeState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the status of a folder's drive; none if it is not served.
fn asked(volume: &Path) -> io::Result<Option<Status>> {
    Connection::open(volume)?.map(|mut connection| connection.status()).transpose()
}

impl ShownDrive for Distant {
    fn number(&self) -> Option<String> {
        Some(self.status()?.drive)
    }

    fn status(&self) -> Option<Status> {
        asked(&self.volume).ok()?.filter(|status| status.drive == self.number)
    }

    fn history(&self, span: HistorySpan) -> Option<History> {
        let mut connection = Connection::open(&self.volume).ok()??;
        match connection.ask(&ManagementRequest::History { span }).ok()? {
            Answer::History { history } => Some(*history),
            _ => None,
        }
    }

    fn carry_out(&self, request: &ManagementRequest) -> Answer {
        let answer = || -> io::Result<Answer> {
            match Connection::open(&self.volume)? {
                Some(mut connection) => connection.ask(request),
                None => Err(io::Error::other(UNSERVED)),
            }
        };
        answer().unwrap_or_else(|error| Answer::Refused { reason: error.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A folder that looks like that of a drive.
    fn volume(folder: &Path, name: &str) -> PathBuf {
        let volume = folder.join(name);
        fs::create_dir(&volume).unwrap();
        fs::write(volume.join("volume.toml"), "").unwrap();
        fs::canonicalize(volume).unwrap()
    }

    fn names(overview: &Overview) -> Vec<&str> {
        overview.drives.iter().map(DriveCard::name).collect()
    }

    #[test]
    fn a_place_is_a_drive_a_folder_of_drives_a_socket_or_a_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (volume(folder.path(), "a"), volume(folder.path(), "b"));
        fs::create_dir(folder.path().join("none")).unwrap();
        let mut found = volumes(folder.path()).unwrap();
        found.sort();
        assert_eq!(found, [a.clone(), b.clone()]);
        assert_eq!(volumes(&a).unwrap(), std::slice::from_ref(&a));
        let _listener = UnixListener::bind(b.join(SOCKET)).unwrap();
        assert_eq!(volumes(&b.join(SOCKET)).unwrap(), [b]);
        let config = folder.path().join("serve.toml");
        fs::write(&config, format!("volume = {:?}\nnbd = \"unix:s\"", a.display())).unwrap();
        assert_eq!(volumes(&config).unwrap(), [a]);
        fs::write(&config, "nbd = \"unix:s\"").unwrap();
        let refused = volumes(&config).unwrap_err().to_string();
        assert!(refused.contains("is neither the folder of a volume"), "{refused}");
        assert!(volumes(&folder.path().join("nothing")).is_err());
    }

    #[test]
    fn drives_come_and_go_and_one_that_is_named_twice_is_shown_once() {
        let folder = tempfile::tempdir().unwrap();
        let first = volume(folder.path(), "first");
        let shown = Volumes::new(&[folder.path().to_owned(), first.clone()], None).unwrap();
        assert_eq!(names(&shown.look()), ["first"]);
        volume(folder.path(), "second");
        assert_eq!(names(&shown.look()), ["first", "second"]);
        assert!(shown.look().faults.is_empty());
        fs::remove_dir_all(first).unwrap();
        let overview = shown.look();
        assert_eq!(names(&overview), ["second"]);
        // It was named, so that it is missed.
        assert_eq!(overview.faults.len(), 1, "{:?}", overview.faults);
        assert!(overview.faults[0].contains("No such file"), "{:?}", overview.faults);
    }

    #[test]
    fn a_server_that_does_not_answer_keeps_no_viewer_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let stuck = volume(folder.path(), "stuck");
        let listener = UnixListener::bind(stuck.join(SOCKET)).unwrap();
        let shown = Volumes::new(&[stuck], None).unwrap();
        for _ in 0..2 {
            let begun = Instant::now();
            let overview = shown.look();
            assert!(begun.elapsed() < Duration::from_mins(1), "it waited for the answer");
            let fault = overview.drives[0].fault.as_deref();
            assert_eq!(fault, Some("its server does not answer"));
        }
        // What was asked is answered by no server.
        drop(listener);
    }

    #[test]
    fn the_address_of_a_drive_is_its_number_and_a_path() {
        assert_eq!(drive_path("/drives/0f/"), Some(("0f", "/")));
        assert_eq!(drive_path("/drives/0f/a/b"), Some(("0f", "/a/b")));
        assert_eq!(drive_path("/drives/0f"), None);
        assert_eq!(drive_path("/stream"), None);
    }
}
