//! Opening a drive with what the server that died had acknowledged and neither rows nor the journal
//! hold: the records of the write buffer, replayed as if the journal had them.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use status::{LeftBuffer, Promise};
use zerocopy::IntoBytes as _;

use super::open;
use crate::engine::core::write_buffer::{self, BufferContents, WriteBuffer};
use crate::engine::dies::gathering::{GatheredDies, UnusedMedium, gather_proven};
use crate::engine::dies::witness::Witness;
use crate::engine::drive::Drive;
use crate::engine::log::replay::Replay;
use crate::engine::store::Store;
use crate::format::encoding::U32;
use crate::format::header::{FORMAT_VERSION, Header};
use crate::format::journal::{self, RangeRecord, TRIM, Trim, add_extent};
use crate::format::write_buffer::Record;
use crate::mutants::{self, Mutant};
use crate::{BufferMemory, Medium, OpenError, UnlockingKey};

/// Treatment of a drive of an earlier format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upgrade {
    /// Its headers are written in the format of this version of the program: earlier ones refuse
    /// it from then on.
    #[default]
    Now,
    /// Headers stay as they are.
    Later,
}

impl Drive {
    /// Opens a drive from its media, in any order; what a crash left is brought back first.
    ///
    /// A die may be missing where the drive is protected.
    ///
    /// # Errors
    /// Fails if the media are not the dies of one drive, or it is damaged; then nothing was
    /// changed.
    pub fn open_media(media: Vec<Box<dyn Medium>>) -> Result<Self, OpenError> {
        Self::open_proven(media, None)
    }

    /// As [`Drive::open_media`], unless `witness` proves that the media cannot include all that was
    /// written.
    ///
    /// # Errors
    /// As [`Drive::open_media`], and [`OpenError::Stale`].
    pub(crate) fn open_proven(
        media: Vec<Box<dyn Medium>>,
        witness: Option<Arc<dyn Witness>>,
    ) -> Result<Self, OpenError> {
        Self::replay_buffer(media, witness, None, Upgrade::Now, None)
    }

    /// As [`Drive::open_media`], with a write buffer: what the death of a server left there is
    /// brought back too, and from now on everything that is acknowledged survives another one.
    ///
    /// # Errors
    /// As [`Drive::open_media`], and if the buffer cannot be had.
    pub fn open_with_buffer(
        media: Vec<Box<dyn Medium>>,
        memory: Option<Arc<dyn BufferMemory>>,
    ) -> Result<Self, OpenError> {
        Self::open_unlocked(media, memory, None)
    }

    /// As [`Drive::open_with_buffer`], of a drive that is encrypted if a key is given.
    ///
    /// # Errors
    /// As [`Drive::open_with_buffer`], and [`OpenError::Locked`] unless it is the key.
    pub fn open_unlocked(
        media: Vec<Box<dyn Medium>>,
        memory: Option<Arc<dyn BufferMemory>>,
        key: Option<&UnlockingKey>,
    ) -> Result<Self, OpenError> {
        let drive = Self::replay_buffer(media, None, memory.as_deref(), Upgrade::Now, key)?;
        if let Some(memory) = memory {
            drive.make_promise(Promise::ServerDeath);
            drive.begin_buffer(memory).map_err(|source| {
                OpenError::medium("taking memory for the write buffer", source)
            })?;
        }
        Ok(drive)
    }

    /// Opens a drive with what is left in its write buffer, and begins no new one. `key` is that of
    /// an encrypted drive.
    pub(crate) fn replay_buffer(
        media: Vec<Box<dyn Medium>>,
        witness: Option<Arc<dyn Witness>>,
        memory: Option<&dyn BufferMemory>,
        upgrade: Upgrade,
        key: Option<&UnlockingKey>,
    ) -> Result<Self, OpenError> {
        let GatheredDies { mut store, header, mut unused } = gather_proven(media, witness)?;
        store.unlock(&header, key)?;
        let mut ignored = memory.and_then(|memory| take_up(&mut store, &header, memory));
        let format = match upgrade {
            Upgrade::Now => FORMAT_VERSION.max(header.format),
            Upgrade::Later => header.format,
        };
        let (mut drive, outdated) = open(store, header, &mut ignored, format)?;
        drive.take_up_stale_start();
        unused.extend(outdated);
        unused.extend(ignored.map(|text| UnusedMedium { die: None, text }));
        drive.set_unused_media(unused);
        Ok(drive)
    }

    /// Begins the write buffer anew.
    pub(crate) fn begin_buffer(&self, memory: Arc<dyn BufferMemory>) -> io::Result<()> {
        let store = self.store();
        let (session, end) = (self.session(), self.journal_end());
        let buffer = WriteBuffer::begin(memory, &store.layout, (store.drive, session), end)?;
        self.set_buffer(buffer);
        Ok(())
    }
}

/// Reads what the death of a server left in the write buffer of a drive, for recovery to replay.
/// Returns the reason why it does not count, if there is one.
pub(crate) fn take_up(
    store: &mut Store,
    header: &Header,
    memory: &dyn BufferMemory,
) -> Option<String> {
    if !header.is_open {
        return None;
    }
    match write_buffer::read(memory, store.drive) {
        Ok(buffered) => {
            store.buffered = buffered;
            None
        }
        Err(why) => Some(why),
    }
}

/// Outcome of looking at the write buffer.
#[derive(Debug, Default)]
pub(crate) struct BufferReplay {
    /// True if it counts.
    is_replayed: bool,
    /// Reason why it does not count, or not all of it, if there is one.
    pub(crate) unused: Option<String>,
    /// Trims that the journal does not have: the batch of the checkpoint that ends recovery has to.
    pub(crate) trims: Vec<Trim>,
    /// Records as a batch has them, and their number.
    pub(super) body: Vec<u8>,
    pub(super) records: u32,
}

impl BufferReplay {
    /// Returns what recovery makes of a write buffer.
    pub(crate) fn of(&self, buffered: &BufferContents) -> LeftBuffer {
        let is_replayed = Some(self.is_replayed);
        LeftBuffer { is_replayed, reason: self.unused.clone(), ..buffered.contents() }
    }
}

/// Adds what the write buffer holds, from an event on, to what the journal holds.
///
/// What came before the checkpoint is not needed: the batch that a checkpoint begins with holds
/// what open rows had. Nor can it be told from an earlier life of its place.
pub(super) fn add_buffered(store: &Store, since: u64, replay: &mut Replay) -> BufferReplay {
    let Some(buffered) = &store.buffered else { return BufferReplay::default() };
    let BufferContents { session, journal_end, records, name, is_damaged } = buffered;
    let unused = |why: String| BufferReplay { unused: Some(why), ..BufferReplay::default() };
    if !replay.ends_at(*journal_end, *session) && !is_any() {
        return unused(format!(
            "the write buffer {name} was left by session {session} of the volume, and the dies \
             hold another state, such as a later or an earlier one: it is not used"
        ));
    }
    let (mut body, mut count) = (Vec::new(), 0);
    for (index, (record, payload)) in (0..).zip(records) {
        if record.seq() < since && !is_any() {
            continue;
        }
        count += 1;
        add(&mut body, record, payload, if is_any() { Some(u64::MAX / 2 + index) } else { None });
    }
    let trims = trims_lacking(records, since, replay);
    if !replay.add(body.clone(), &store.layout) {
        return unused(format!("the write buffer {name} holds what cannot be, and is not used"));
    }
    let damage = is_damaged.then(|| {
        format!(
            "the write buffer {name} is damaged: some of what was acknowledged and not flushed \
             before the last server died may be missing"
        )
    });
    BufferReplay { is_replayed: true, unused: damage, trims, body, records: count }
}

/// The trims from an event on that the journal does not have. One of everything says what earlier
/// ones do.
fn trims_lacking(records: &[(Record, Vec<u8>)], since: u64, replay: &Replay) -> Vec<Trim> {
    let told = replay.records.iter().filter_map(|record| match record {
        journal::Record::Trim(trim) => Some(trim.seq),
        _ => None,
    });
    let told: BTreeSet<u64> = told.collect();
    let mut trims: Vec<Trim> = Vec::new();
    for (record, _) in records {
        let Record::Trim(trim) = *record else { continue };
        if trim.seq < since || told.contains(&trim.seq) {
            continue;
        }
        if trim.first.0 == 0 {
            trims.retain(|earlier| earlier.first.0 + earlier.pages > trim.pages);
        }
        trims.push(trim);
    }
    trims
}

/// True if a mutant takes whatever is there as new.
fn is_any() -> bool {
    mutants::is(Mutant::BufferStale) || mutants::is(Mutant::BufferTwice)
}

/// Adds a record as the journal would have it; `seq` takes the place of its sequence number.
fn add(body: &mut Vec<u8>, record: &Record, payload: &[u8], seq: Option<u64>) {
    match *record {
        Record::Extent { mut extent, row_seq, ppn } => {
            extent.seq = seq.unwrap_or(extent.seq);
            let row_seq = if seq.is_some() { u64::MAX } else { row_seq };
            add_extent(body, extent, payload, row_seq, ppn);
        }
        Record::Trim(trim) => {
            let record = RangeRecord {
                kind: TRIM,
                zeroes: [0; 3],
                first: trim.first.0.into(),
                seq: seq.unwrap_or(trim.seq).into(),
                pages: U32::new(trim.pages),
                rest: [0; 12],
            };
            body.extend_from_slice(record.as_bytes());
        }
    }
}
