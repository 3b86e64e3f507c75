//! Health: the one verdict on a drive that status, top, pages, metrics, alerts, events and exit
//! codes are made from.
//!
//! ```text
//!   status ──► problems, each a sentence with its next step ──► ok, degraded or critical
//!         └──► critical warning, bits as in the NVMe SMART log
//! ```
//!
//! **Invariant**: [`Health::of`] is the only place that decides; it looks at the status alone.
//!
//! Source: NVM Express Base Specification 2.0, figure 207 (critical warning).

use blockio::text::counted;
use serde::{Deserialize, Serialize};

use crate::{
    AbsenceCause, AbsentDie, Die, DieState, HostShortage, MaintenanceStatus, Refusal, State,
    Status, Supply,
};

/// Bits of a critical warning, as the NVMe SMART log has them.
const WARNS_OF_SPARE: u8 = 1;
const WARNS_OF_TEMPERATURE: u8 = 1 << 1;
const WARNS_OF_RELIABILITY: u8 = 1 << 2;
const WARNS_OF_READ_ONLY: u8 = 1 << 3;
const WARNS_OF_MEMORY_BACKUP: u8 = 1 << 4;
/// The bits that may be set, by the names that nvme-cli gives them.
const WARNINGS: [(u8, &str); 5] = [
    (WARNS_OF_SPARE, "available spare"),
    (WARNS_OF_TEMPERATURE, "temperature threshold"),
    (WARNS_OF_RELIABILITY, "NVM subsystem reliability"),
    (WARNS_OF_READ_ONLY, "read-only"),
    (WARNS_OF_MEMORY_BACKUP, "volatile memory backup"),
];
/// Sectors that the sentence about lost pages names; the status names more.
const LBAS_NAMED_MAX: usize = 4;
/// Percent of the rated erases from which on wear is a problem.
const WORN_OUT_PERCENT: u8 = 100;

/// Health of a drive, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The worst of what its problems are.
    pub state: HealthState,
    /// Problems of the drive, the worst first.
    pub problems: Vec<Problem>,
}

/// Health in one word; of two the worse is the greater.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum HealthState {
    /// No action is needed.
    #[default]
    Ok,
    /// All data is there and is served, and the owner has to act so that it stays so.
    Degraded,
    /// Data is lost, or writes are refused.
    Critical,
}

impl HealthState {
    /// The word, as JSON has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Critical => "critical",
        }
    }
}

/// Problem of a drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// Health of the drive that the problem alone makes.
    pub severity: HealthState,
    /// Index of the die that it is about, where it is about one.
    pub die: Option<u32>,
    /// Number of what is counted, such as pages lost; 1 where nothing is.
    pub count: u64,
    /// Description of the problem, a sentence.
    pub text: String,
    /// Instruction for the operator, a sentence.
    pub remedy: String,
}

/// Kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// The drive takes no more writes, or namespaces refuse them.
    ReadOnly,
    /// Reads fail now, since a die does not respond.
    ReadsFail,
    /// Pages cannot be read back.
    PagesLost,
    /// The volume was started without what had been written last.
    StaleStart,
    /// A purge or a format was interrupted.
    PurgeUnfinished,
    /// No physical space is left, or little.
    Space,
    /// A die has failed or is missing.
    DieFailed,
    /// A die is being filled with what belongs there.
    DieRebuilding,
    /// A die failed requests.
    DieErrors,
    /// A scrub found units that it could not write again, or did not end.
    Scrub,
    /// The drive had an unclean shutdown, so that little is known of it.
    NotClosed,
    /// The folder does not say what the dies hold now.
    Folder,
    /// Few spare superblocks are left.
    SpareLow,
    /// The rated erases are used up.
    WornOut,
    /// The modelled drive is too warm.
    Temperature,
    /// Memory that acknowledged writes wait in does not survive, so that they are durable first.
    WriteThrough,
}

impl ProblemKind {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::ReadOnly,
        Self::ReadsFail,
        Self::PagesLost,
        Self::StaleStart,
        Self::PurgeUnfinished,
        Self::Space,
        Self::DieFailed,
        Self::DieRebuilding,
        Self::DieErrors,
        Self::Scrub,
        Self::NotClosed,
        Self::Folder,
        Self::SpareLow,
        Self::WornOut,
        Self::Temperature,
        Self::WriteThrough,
    ];

    /// The word, as JSON has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::ReadsFail => "reads-fail",
            Self::PagesLost => "pages-lost",
            Self::StaleStart => "stale-start",
            Self::PurgeUnfinished => "purge-unfinished",
            Self::Space => "space",
            Self::DieFailed => "die-failed",
            Self::DieRebuilding => "die-rebuilding",
            Self::DieErrors => "die-errors",
            Self::Scrub => "scrub",
            Self::NotClosed => "not-closed",
            Self::Folder => "folder",
            Self::SpareLow => "spare-low",
            Self::WornOut => "worn-out",
            Self::Temperature => "temperature",
            Self::WriteThrough => "write-through",
        }
    }
}

/// Names of the bits of a critical warning that are set, as nvme-cli shows them.
pub fn warning_names(critical_warning: u8) -> impl Iterator<Item = &'static str> {
    let is_set = move |(bit, _): &&(u8, &str)| critical_warning & bit != 0;
    WARNINGS.iter().filter(is_set).map(|(_, name)| *name)
}

impl Health {
    /// The health of the drive of a status.
    pub(crate) fn of(status: &Status) -> Self {
        let mut problems: Vec<Problem> = [
            read_only(status),
            pages_lost(status),
            stale_start(status),
            purge_unfinished(status),
            space(status),
            scrub(status),
            unverified(status),
            not_closed(status),
            folder(status),
            spare_low(status),
            worn_out(status),
            temperature(status),
            write_through(status),
        ]
        .into_iter()
        .flatten()
        .collect();
        problems.extend((0..).zip(&status.dies).filter_map(|(index, it)| die(status, index, it)));
        problems.extend(status.dies.iter().enumerate().filter_map(|(index, it)| heat(index, it)));
        problems.sort_by_key(|it| (std::cmp::Reverse(it.severity), it.kind, it.die));
        let state = problems.iter().map(|it| it.severity).max().unwrap_or_default();
        Self { state, problems }
    }

    fn has(&self, kinds: &[ProblemKind]) -> bool {
        self.problems.iter().any(|it| kinds.contains(&it.kind))
    }

    /// The critical warning of the drive of a status, whose health this is.
    pub(crate) fn critical_warning(&self, status: &Status) -> u8 {
        let warns = |bit, is_so| if is_so { bit } else { 0 };
        let is_unreliable = self.has(&[
            ProblemKind::PagesLost,
            ProblemKind::ReadsFail,
            ProblemKind::StaleStart,
            ProblemKind::Scrub,
        ]) || status.dies.iter().any(|die| die.has_degraded_rows);
        warns(WARNS_OF_SPARE, self.has(&[ProblemKind::SpareLow]))
            | warns(WARNS_OF_TEMPERATURE, self.has(&[ProblemKind::Temperature]))
            | warns(WARNS_OF_RELIABILITY, is_unreliable)
            | warns(WARNS_OF_READ_ONLY, self.has(&[ProblemKind::ReadOnly]))
            | warns(WARNS_OF_MEMORY_BACKUP, self.has(&[ProblemKind::WriteThrough]))
    }
}

fn problem(kind: ProblemKind, severity: HealthState, text: String, remedy: String) -> Problem {
    Problem { kind, severity, die: None, count: 1, text, remedy }
}

fn read_only(status: &Status) -> Option<Problem> {
    let Some(reason) = &status.reason else {
        return will_be_refused(status).or_else(|| refused(status));
    };
    let folder = &status.folder;
    Some(problem(
        ProblemKind::ReadOnly,
        HealthState::Critical,
        format!("The volume accepts no more writes: {reason}."),
        format!(
            "Look for the cause in the log of the host, then stop the server, run `floatgate \
             volume check {folder}`, and serve the volume again: everything that was flushed is \
             kept."
        ),
    ))
}

/// Returns the problem that a closed drive carries out no commands when it is served.
fn will_be_refused(status: &Status) -> Option<Problem> {
    let (text, remedy) = match status.refusal? {
        Refusal::WritesFail => return None,
        Refusal::SanitizeUnfinished => (
            "A sanitize has not ended, and all reads and writes are refused until it has.",
            "Serve the volume without --read-only: the server goes on with the sanitize.",
        ),
        Refusal::SanitizeFailed => (
            "The last sanitize failed, and all reads and writes will be refused.",
            "Look for the reason in the events, then serve the volume and repeat the sanitize, or \
             leave the failure mode with `nvme sanitize -a exit-failure`, if the sanitize was \
             begun with --ause.",
        ),
    };
    let (kind, severity) = (ProblemKind::ReadOnly, HealthState::Critical);
    Some(problem(kind, severity, text.to_owned(), remedy.to_owned()))
}

/// Returns the problem that namespaces refuse commands of a drive that could carry them out.
fn refused(status: &Status) -> Option<Problem> {
    let namespaces = &status.server.as_ref()?.namespaces;
    let refusal = namespaces.iter().filter_map(|it| it.refusal).max()?;
    let ids = namespaces.iter().filter(|it| it.refusal == Some(refusal)).map(|it| it.id);
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    let (text, remedy) = match refusal {
        Refusal::WritesFail => (
            format!("An injected fault has namespace {} refuse writes.", ids.join(", ")),
            "Restart the server, which ends the fault.",
        ),
        Refusal::SanitizeUnfinished => (
            "A sanitize has not ended, and all reads and writes are refused until it has."
                .to_owned(),
            "Serve the volume without --read-only: the server goes on with the sanitize.",
        ),
        Refusal::SanitizeFailed => (
            "A sanitize failed, and all reads and writes are refused.".to_owned(),
            "Look for the reason in the events, then repeat the sanitize, or leave the failure \
             mode with `nvme sanitize -a exit-failure`, if the sanitize was begun with --ause.",
        ),
    };
    let (kind, severity) = (ProblemKind::ReadOnly, HealthState::Critical);
    Some(problem(kind, severity, text, remedy.to_owned()))
}

fn write_through(status: &Status) -> Option<Problem> {
    let reason = status.write_through_reason.as_ref()?;
    Some(problem(
        ProblemKind::WriteThrough,
        HealthState::Degraded,
        format!("Writes are acknowledged once they are durable, which takes longer: {reason}."),
        "Remove the cause, then restart the server.".to_owned(),
    ))
}

fn pages_lost(status: &Status) -> Option<Problem> {
    let pages = status.pages_lost.filter(|pages| *pages > 0)?;
    let folder = &status.folder;
    let mut named = Vec::new();
    for lba in status.lost_lbas.iter().take(LBAS_NAMED_MAX) {
        named.push(lba.to_string());
    }
    let more = if pages > named.len() as u64 { " and more" } else { "" };
    let sectors = if named.is_empty() {
        String::new()
    } else {
        format!(" (8 sectors each, from sector {}{more})", named.join(", "))
    };
    let which = if pages == 1 { "reading it fails" } else { "reading them fails" };
    let text =
        format!("{} of 4 KiB cannot be read back{sectors}: {which}.", counted(pages, "page"));
    let remedy = format!(
        "Write them again from a backup, or trim them; `floatgate volume status {folder} --all` \
         lists their sectors."
    );
    let (kind, severity) = (ProblemKind::PagesLost, HealthState::Critical);
    Some(Problem { count: pages, ..problem(kind, severity, text, remedy) })
}

fn stale_start(status: &Status) -> Option<Problem> {
    let start = status.maintenance.stale_start?;
    let left = start.pages_older.map_or_else(String::new, |pages| {
        format!(" Not written since: {}.", counted(pages, "page"))
    });
    let text = format!(
        "The volume was started with --force-stale, without all that was written up to its session \
         {}: data may be older than what was flushed.{left}",
        start.session
    );
    let remedy = "Compare the data with a backup. This message ends once every page was written \
                  anew or trimmed (copy the data over itself, trim the rest), or all is purged."
        .to_owned();
    Some(problem(ProblemKind::StaleStart, HealthState::Critical, text, remedy))
}

fn folder(status: &Status) -> Option<Problem> {
    let failure = status.maintenance.witness_failure.as_ref()?;
    let text = format!(
        "The folder of the volume does not say what its dies hold now ({failure}): an earlier \
         state of them might be served unnoticed."
    );
    let remedy = format!(
        "Free space in {}, or allow this user to write there, and serve the volume again.",
        status.folder
    );
    Some(problem(ProblemKind::Folder, HealthState::Degraded, text, remedy))
}

/// Returns the problem that an interrupted purge left; one that is under way is none.
fn purge_unfinished(status: &Status) -> Option<Problem> {
    let Status { folder, drive, maintenance, .. } = status;
    let is_running = maintenance.purge.as_ref().is_some_and(|it| it.is_running);
    (maintenance.is_purge_unfinished && !is_running).then(|| {
        let text = "A purge or a format has not ended: data that it was to erase may be left on \
                    the dies and the hot spares.";
        let (kind, severity) = (ProblemKind::PurgeUnfinished, HealthState::Critical);
        let served = if status.state == State::Open { " --while-served" } else { "" };
        let remedy = format!(
            "Repeat a format with `floatgate volume format`, since the capacity may still be the \
             former one, and a purge with `floatgate volume purge {folder} --destroy \
             {drive}{served}`."
        );
        problem(kind, severity, text.to_owned(), remedy)
    })
}

fn space(status: &Status) -> Option<Problem> {
    let space = status.space.as_ref()?;
    if let Some(HostShortage { needed_bytes, free_bytes }) = space.host_shortage {
        let [needed, free] = [needed_bytes, free_bytes].map(blockio::text::bytes);
        let text = format!(
            "The file system beneath the dies is full, and writes fail with ENOSPC: {free} are \
             free, {needed} are needed."
        );
        let (kind, severity) = (ProblemKind::Space, HealthState::Critical);
        return Some(problem(kind, severity, text, "Free space there.".to_owned()));
    }
    let (severity, what) = match space.supply {
        Supply::Ample | Supply::Low => return None,
        Supply::Short => (HealthState::Degraded, "Less than 5 % of the physical space is left"),
        Supply::Gone => {
            (HealthState::Critical, "No physical space is left, and writes fail with ENOSPC")
        }
    };
    let [stored, most, data] =
        [space.stored_bytes, space.stored_bytes_max, space.logical_bytes].map(blockio::text::bytes);
    let text = format!("{what}: {data} of data take {stored} of {most}.");
    Some(problem(ProblemKind::Space, severity, text, "Trim or delete data.".to_owned()))
}

/// Returns the problem that the last scrub left; one that is under way removes nothing.
fn scrub(status: &Status) -> Option<Problem> {
    let scrubs = &status.maintenance.scrubs;
    let (left, copies_left) = (scrubs.units_left, scrubs.copies_left);
    let text = match &scrubs.failure {
        Some(failure) => format!("The last scrub failed: {failure}."),
        None if left > 0 => format!(
            "The last scrub found {} that it could not repair.",
            counted(left, "corrupt unit")
        ),
        None if copies_left > 0 => format!(
            "The last scrub could not write {} of headers, checkpoint or journal again: another \
             failure may make the volume unreadable.",
            if copies_left == 1 { "1 copy".to_owned() } else { format!("{copies_left} copies") }
        ),
        None => return None,
    };
    let folder = &status.folder;
    let remedy = format!(
        "Run `floatgate volume scrub {folder}` again; if that does not help, stop the server and \
         run `floatgate volume check {folder}`, which names the dies."
    );
    let problem = problem(ProblemKind::Scrub, HealthState::Degraded, text, remedy);
    Some(Problem { count: left.max(copies_left).max(1), ..problem })
}

/// Returns the problem that rows may lack units which no scrub has looked for yet.
fn unverified(status: &Status) -> Option<Problem> {
    let MaintenanceStatus { batches_lacking, units_lost, .. } = status.maintenance;
    let text = if units_lost > 0 {
        let units = counted(units_lost, "unit");
        format!("A rebuild could not restore {units} from the rest of their rows.")
    } else if batches_lacking > 0 {
        let records = counted(batches_lacking, "journal record");
        format!(
            "When the volume was opened a die lacked {records} that had been synced: it may have \
             lost more of what was written to it."
        )
    } else {
        return None;
    };
    let folder = &status.folder;
    let remedy = format!("Run `floatgate volume scrub {folder}`, which restores whatever it can.");
    let problem = problem(ProblemKind::Scrub, HealthState::Degraded, text, remedy);
    Some(Problem { count: units_lost.max(batches_lacking), ..problem })
}

fn not_closed(status: &Status) -> Option<Problem> {
    (status.state == State::Unclosed).then(|| {
        let folder = &status.folder;
        problem(
            ProblemKind::NotClosed,
            HealthState::Degraded,
            "Unclean shutdown: the volume is not served, and its spare space and lost pages are \
             unknown until it is served again."
                .to_owned(),
            format!(
                "Run `floatgate volume check {folder}`, then serve the volume, which recovers it."
            ),
        )
    })
}

fn spare_low(status: &Status) -> Option<Problem> {
    let (left, least) = (status.smart.available_spare?, status.smart.available_spare_threshold);
    (left < least).then(|| {
        problem(
            ProblemKind::SpareLow,
            HealthState::Degraded,
            format!("The available spare is {left} %, below the threshold of {least} %."),
            "Plan to move the data to a new volume, or resize the volume to a smaller size."
                .to_owned(),
        )
    })
}

fn worn_out(status: &Status) -> Option<Problem> {
    let used = status.smart.percentage_used.filter(|used| *used >= WORN_OUT_PERCENT)?;
    Some(problem(
        ProblemKind::WornOut,
        HealthState::Degraded,
        format!("{used} % of the rated erase cycles are used, on average over the superblocks."),
        "Plan to move the data to a new volume on new dies. Replacing dies one by one does not \
         reset the count, which is kept for superblocks, not for dies."
            .to_owned(),
    ))
}

fn temperature(status: &Status) -> Option<Problem> {
    let climate = status.server.as_ref()?.model.as_ref()?.climate?;
    let (now, limit) = (climate.temperature_c, climate.throttle_c);
    (now >= limit).then(|| {
        problem(
            ProblemKind::Temperature,
            HealthState::Degraded,
            format!(
                "The modelled drive is at {now:.1} °C and throttles writes from {limit} °C on."
            ),
            "Reduce the write load; the model throttles until it has cooled.".to_owned(),
        )
    })
}

fn heat(index: usize, die: &Die) -> Option<Problem> {
    let (now, limit) = die.temperature_c.zip(die.temperature_warning_c)?;
    (now >= limit).then(|| {
        let named = die.named(index);
        problem(
            ProblemKind::Temperature,
            HealthState::Degraded,
            format!("{named} is on a disk at {now} °C, which warns from {limit} °C on."),
            "See to its air flow: a disk that grows hotter slows down, and then switches itself \
             off."
                .to_owned(),
        )
    })
}

fn die(status: &Status, index: u32, die: &Die) -> Option<Problem> {
    let named = die.named(index as usize);
    // One die whose rows are degraded is enough for another failure to lose data.
    let redundancy = if status.dies.iter().any(|die| die.has_degraded_rows) {
        "no redundancy left: another failure loses data"
    } else {
        "redundancy is restored: the volume tolerates 1 more failure"
    };
    let (kind, text, remedy) = match die.state {
        DieState::Failed => {
            let (why, remedy) = failed(status, index, die);
            (ProblemKind::DieFailed, format!("{why}; {redundancy}."), remedy)
        }
        DieState::Rebuilding => {
            let rebuild = status.maintenance.rebuild.as_ref().filter(|it| it.die == index);
            let done = rebuild.map_or(0.0, |it| it.rows_done as f64 / it.rows.max(1) as f64);
            let percent = 100.0 * done;
            let text = format!("{named} is being rebuilt, {percent:.1} % done; {redundancy}.");
            (ProblemKind::DieRebuilding, text, "Wait for the rebuild.".to_owned())
        }
        DieState::Good if die.is_silent => {
            let why = die.failure.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
            let text =
                format!("{named} does not respond{why}: reads of data that lies on it fail.");
            (ProblemKind::ReadsFail, text, silent_remedy(status))
        }
        DieState::Good => {
            let text = format!("{named} {}.", errors_of(die)?);
            (ProblemKind::DieErrors, text, errors_remedy(status, index, die))
        }
    };
    let is_silent = kind == ProblemKind::ReadsFail;
    let is_counted = kind == ProblemKind::DieErrors;
    let found = die.failures + die.damaged_places + die.bad_places_in_use;
    let count = if is_counted { found } else { 1 };
    let severity = if is_silent { HealthState::Critical } else { HealthState::Degraded };
    Some(Problem { die: Some(index), count, ..problem(kind, severity, text, remedy) })
}

/// Errors of a die in service, as the rest of a sentence; none if there are none to be told.
fn errors_of(die: &Die) -> Option<String> {
    let why = die.failure.as_ref().map_or_else(String::new, |why| format!(", last {why}"));
    let damaged = counted(die.damaged_places, "damaged place");
    let limit = die.damaged_places_limit;
    if die.damaged_places_hour > limit {
        return Some(format!(
            "had {} in the last hour, more than {limit}: parity gave their data back",
            counted(die.damaged_places_hour, "damaged place")
        ));
    }
    if die.bad_places_in_use > 0 {
        return Some(format!(
            "has {}, and {} still used, since too little spare space is left to do without them",
            counted(die.bad_places, "bad place"),
            if die.bad_places_in_use == 1 {
                "1 is".into()
            } else {
                format!("{} are", die.bad_places_in_use)
            }
        ));
    }
    if die.rows_suspect > 0 {
        return Some(format!("has {damaged}, and parity gives their data back"));
    }
    (die.failures > 0).then(|| {
        let requests = counted(die.failures, "request");
        format!("failed {requests} since the volume was opened{why}")
    })
}

/// Instruction for the operator about a die in service that has errors, one that is possible.
fn errors_remedy(status: &Status, index: u32, die: &Die) -> String {
    let folder = &status.folder;
    if !status.format.is_protected {
        return "Look for the cause in the log of the host, and copy the data to a new volume while \
                it can be read: without parity no die can be replaced."
            .to_owned();
    }
    if let Some(index) = status.dies.iter().position(|die| die.has_degraded_rows) {
        return format!(
            "Look for the cause in the log of the host, and replace die {index} first: until then \
             this one cannot be replaced."
        );
    }
    if die.bad_places_in_use > 0 {
        return format!(
            "Replace the die: `floatgate volume fail-die {folder} {index}`, then `floatgate volume \
             replace-die {folder} {index} --with PATH`."
        );
    }
    format!(
        "Look for the cause in the log of the host, run `floatgate volume scrub {folder}`, and \
         replace the die if it fails again."
    )
}

/// Instruction for the operator about a die without which reads fail.
fn silent_remedy(status: &Status) -> String {
    let respond = "Look for the cause in the log of the host, and have it respond again: nothing \
                   of it counts as lost until then.";
    match status.dies.iter().position(|die| die.has_degraded_rows) {
        Some(index) => {
            format!("{respond} It cannot be replaced before die {index}, which has failed.")
        }
        None => format!(
            "{respond} If it is gone for good, restore the data from a backup to a new volume."
        ),
    }
}

/// Returns the sentence about a die that has failed, without its end, and the remedy.
fn failed(status: &Status, index: u32, die: &Die) -> (String, String) {
    let (folder, named) = (&status.folder, die.named(index as usize));
    let path = die.path.as_deref().unwrap_or("its path");
    let maintenance = &status.maintenance;
    let absent = maintenance.absent_dies.iter().find(|it| it.die == index);
    let rebuild = maintenance.rebuild.as_ref().filter(|it| it.die == index && !it.is_running);
    let replace = format!("`floatgate volume replace-die {folder} {index} --with");
    let correct = match status.state {
        State::Closed | State::Unclosed => format!(
            "Correct its path in {folder}/volume.toml, or mount its file system, before serving. \
             If the die is gone for good, replace it: {replace} PATH`."
        ),
        State::Open | State::Failed => format!(
            "Mount its file system or find its right path, and give that or a new medium: \
             {replace} PATH`. Before serving, its path can be corrected in {folder}/volume.toml."
        ),
    };
    let new = format!("Replace it: {replace} PATH`.");
    if die.is_missing {
        return (format!("Die {index} is missing: nothing is at {path}"), correct);
    }
    match (&die.failure, rebuild.and_then(|it| it.failure.as_ref()), absent) {
        (Some(why), _, _) => (format!("{named} failed: {why}"), new),
        (None, Some(why), _) => (
            format!("{named} is not complete: the rebuild onto it ended: {why}"),
            format!("Repeat the rebuild: {replace} {path}`."),
        ),
        (None, None, Some(AbsentDie { cause, reason, .. })) => {
            let remedy = match cause {
                AbsenceCause::NotFound | AbsenceCause::OtherVolume => correct,
                AbsenceCause::NotOpened => format!(
                    "Check the device, its cabling and the kernel log before serving. {new}"
                ),
                AbsenceCause::Outdated => {
                    format!("Rebuild it: {replace} PATH`; {path} may be given.")
                }
                AbsenceCause::RebuildInterrupted => {
                    format!("Repeat the rebuild: {replace} {path}`.")
                }
            };
            (format!("Die {index} {reason}"), remedy)
        }
        (None, None, None) => (format!("{named} has failed"), new),
    }
}

#[cfg(test)]
pub(crate) mod tests;
