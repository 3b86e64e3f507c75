//! Witness of a folder: the state that the dies of its drive must hold at least.
//!
//! ```text
//!   dies.witness: one line of JSON, then its CRC-32C as 8 hexadecimal digits
//! ```
//!
//! The file is replaced whole whenever headers change, after they did and before anything is
//! written that relies on them. Dies that know less than it says are not served, unless an operator
//! allows it. Without it, or where it is damaged, the dies are taken for what they prove
//! themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use status::{Member, StaleStart};

use super::folder::replace_file;
use super::listed_dies::open_dies;
use crate::engine::core::bad_places::BadPlace;
use crate::engine::dies::gathering::gather;
use crate::engine::dies::now_unix_s;
use crate::engine::dies::witness::{Departure, Proof, Witness};
use crate::format::encoding::seal;
use crate::format::header::Header;
use crate::format::page_set::PageSet;
use crate::lock::lock;
use crate::{FileMedium, OpenError};

const NAME: &str = "dies.witness";
/// Pages that were not written since a start from an earlier state: time and session of the start,
/// a bit a page, and a CRC-32C of all, little-endian.
const OLDER_NAME: &str = "older.pages";
const SCHEMA: u32 = 1;

/// Contents of the file, without its checksum.
#[derive(Debug, Serialize, Deserialize)]
struct KeptProof {
    schema: u32,
    /// The header as dies have it, in hexadecimal digits, without what follows its last byte that
    /// is not zero.
    header: String,
    batches: u64,
    members: Vec<Member>,
    #[serde(default)]
    stale_start: Option<StaleStart>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    departures: Vec<Departure>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bad_places: Vec<BadPlace>,
}

/// The witness of a folder.
#[derive(Debug)]
pub(crate) struct FolderWitness {
    path: PathBuf,
    state: Mutex<WitnessState>,
}

#[derive(Debug, Default)]
struct WitnessState {
    proof: Option<Proof>,
    failure: Option<String>,
}

impl FolderWitness {
    /// The witness of the drive of a folder, with what was kept there.
    pub(crate) fn of(volume: &Path) -> Self {
        let path = volume.join(NAME);
        let proof = fs::read_to_string(&path).ok().and_then(|text| parse(&text));
        Self { path, state: Mutex::new(WitnessState { proof, failure: None }) }
    }

    /// As [`FolderWitness::of`], to be attached to dies.
    pub(crate) fn attached(volume: &Path) -> Arc<dyn Witness> {
        Arc::new(Self::of(volume))
    }

    /// Keeps what `change` makes of what was proven.
    fn change(&self, change: impl FnOnce(Option<Proof>) -> Option<Proof>) {
        let mut noted = lock(&self.state);
        let Some(proof) = change(noted.proof.clone()) else { return };
        let kept = replace_file(&self.path, print(&proof).as_bytes());
        let shown = self.path.display();
        noted.failure = kept.err().map(|error| format!("writing {shown}: {error}"));
        noted.proof = Some(proof);
    }
}

impl Witness for FolderWitness {
    fn note_header(&self, header: &Header, written_at: &[u64]) {
        self.change(|known| {
            let own = known.filter(|it| it.header.drive == header.drive);
            let mut proof = own.unwrap_or_else(|| Proof::of(header));
            proof.note(header, written_at);
            Some(proof)
        });
    }

    fn note_batches(&self, number: u64) {
        self.change(|known| {
            let known = known.filter(|it| it.batches < number);
            known.map(|proof| Proof { batches: number, ..proof })
        });
    }

    fn note_older(&self, pages: &PageSet) {
        let start = lock(&self.state).proof.as_ref().and_then(|proof| proof.stale_start);
        let Some(start) = start else { return };
        let mut bytes = [start.at_unix_s.to_le_bytes(), start.session.to_le_bytes()].concat();
        bytes.extend(pages.bytes());
        let crc = crc32c::crc32c(&bytes);
        bytes.extend(crc.to_le_bytes());
        // An earlier file has all of these pages, and more.
        let _ = replace_file(&self.path.with_file_name(OLDER_NAME), &bytes);
    }

    fn older(&self, start: &StaleStart) -> Option<PageSet> {
        let bytes = fs::read(self.path.with_file_name(OLDER_NAME)).ok()?;
        let (bytes, crc) = bytes.split_last_chunk::<4>()?;
        let (at, bitmap) = bytes.split_first_chunk::<16>()?;
        let is_of_it =
            *at == *[start.at_unix_s.to_le_bytes(), start.session.to_le_bytes()].concat();
        let is_whole = u32::from_le_bytes(*crc) == crc32c::crc32c(bytes);
        (is_whole && is_of_it).then(|| PageSet::of_bytes(bitmap))
    }

    fn note_renewed(&self) {
        self.change(|known| {
            let known = known.filter(|it| it.stale_start.is_some());
            known.map(|proof| Proof { stale_start: None, ..proof })
        });
        if lock(&self.state).failure.is_none() {
            let _ = fs::remove_file(self.path.with_file_name(OLDER_NAME));
        }
    }

    fn note_bad_places(&self, places: Vec<BadPlace>) {
        self.change(|known| Some(Proof { bad_places: places, ..known? }));
    }

    fn proof(&self) -> Option<Proof> {
        lock(&self.state).proof.clone()
    }

    fn failure(&self) -> Option<String> {
        lock(&self.state).failure.clone()
    }
}

/// Allows the drive of a folder to go on from the state that its dies have, though the folder
/// proves that there was a later one; says whether that was so. Its health tells it until
/// everything was written anew, or erased.
///
/// # Errors
/// Fails if there is no drive, it is in use, cannot be opened from any state, or the folder cannot
/// be changed.
pub fn allow_stale(volume: &Path) -> Result<bool, OpenError> {
    let (media, listing) = open_dies(volume, FileMedium::view)?;
    let (gathered, _) = listing.explained(gather(media))?;
    let witness = FolderWitness::of(volume);
    let known = witness.proof().filter(|it| it.is_ahead_of(&gathered.header));
    let Some(known) = known else { return Ok(false) };
    witness.change(|_| Some(known.given_up(&gathered.header, now_unix_s())));
    match witness.failure() {
        Some(failure) => Err(OpenError::refused(failure)),
        None => Ok(true),
    }
}

fn print(proof: &Proof) -> String {
    let encoded = proof.header.encode();
    let end = encoded.len() - size_of::<u32>();
    let used = encoded[..end].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut header = String::with_capacity(2 * used);
    for byte in &encoded[..used] {
        let digit = |digit: u8| char::from_digit(digit.into(), 16).expect("below 16");
        header.extend([digit(byte >> 4), digit(byte & 0xf)]);
    }
    let Proof { batches, stale_start, .. } = *proof;
    let Proof { members, departures, bad_places, .. } = proof.clone();
    let schema = SCHEMA;
    let kept = KeptProof { schema, header, batches, members, stale_start, departures, bad_places };
    let line = serde_json::to_string(&kept).expect("numbers and texts have a form");
    format!("{line}\n{:08x}\n", crc32c::crc32c(line.as_bytes()))
}

fn parse(text: &str) -> Option<Proof> {
    let (line, crc) = text.split_once('\n')?;
    let crc = u32::from_str_radix(crc.trim_end(), 16).ok()?;
    (crc == crc32c::crc32c(line.as_bytes())).then_some(())?;
    let kept: KeptProof =
        serde_json::from_str(line).ok().filter(|it: &KeptProof| it.schema == SCHEMA)?;
    let digit = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let mut bytes: Vec<u8> = kept.header.as_bytes().chunks(2).map(digit).collect::<Option<_>>()?;
    let length = usize::try_from(crate::format::layout::HEADER_BYTES).ok()?;
    (bytes.len() < length).then(|| bytes.resize(length, 0))?;
    seal(&mut bytes);
    let header = Header::parse(&bytes).ok()??;
    let KeptProof { batches, members, stale_start, departures, bad_places, .. } = kept;
    let is_of_all = members.len() == header.shape.dies as usize;
    let proof = Proof { header, batches, members, stale_start, departures, bad_places };
    is_of_all.then_some(proof)
}
