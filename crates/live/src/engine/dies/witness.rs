//! Proof, outside of the dies, of what they must hold: the newest header that every die in use
//! had, the journal up to some batch, by die when it last took part, and where dies are bad.
//!
//! ```text
//!   header ─► both copies of every die in use ─► witness ─► the first write that relies on it
//! ```
//!
//! **Invariant**: whatever a witness says reached all dies before it was noted. So dies that have
//! only earlier headers cannot include what was written since; a crash in between leaves a witness
//! that says less than the dies, and never more.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};
use status::{Member, StaleStart};

use crate::engine::core::bad_places::BadPlace;
use crate::format::header::Header;
use crate::format::key_area::KeyArea;
use crate::format::page_set::PageSet;

/// Proof of what the dies of a drive must hold, kept outside of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// The newest header; what it says was everywhere is its first copy, which every die has.
    pub(crate) header: Header,
    /// Batches of the journal with a lower number were durable.
    pub(crate) batches: u64,
    /// By die, the last part that it had.
    pub(crate) members: Vec<Member>,
    /// The start without what had been written last that an operator has allowed, until everything
    /// was written anew.
    pub(crate) stale_start: Option<StaleStart>,
    /// Dies that went away while the others went on, and have not come back.
    pub(crate) departures: Vec<Departure>,
    /// Erase blocks that are bad, or watched.
    pub(crate) bad_places: Vec<BadPlace>,
}

/// Departure of a die: the state that it had, for when it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Departure {
    /// Index of the die.
    pub(crate) die: usize,
    /// Fingerprint of the last header that it and all others had.
    pub(crate) header_crc: u32,
}

/// Holder of a [`Proof`]. Where it cannot be kept, the one before stays, which proves less.
pub(crate) trait Witness: Debug + Send + Sync {
    /// Notes a header that both copies of every die in use have, and by die the time of the last
    /// write to it in seconds since 1970; 0: none.
    fn note_header(&self, header: &Header, written_at: &[u64]);

    /// Notes that batches of the journal with a lower number are durable.
    fn note_batches(&self, number: u64);

    /// Notes the pages that were not written since the start from an earlier state, as a
    /// checkpoint found them.
    fn note_older(&self, pages: &PageSet);

    /// The pages that were noted last of this start; none where none were, and any page may be
    /// older.
    fn older(&self, start: &StaleStart) -> Option<PageSet>;

    /// Notes that everything was written since the start from an earlier state, or erased.
    fn note_renewed(&self);

    /// Notes the bad places of the dies, all of them.
    fn note_bad_places(&self, places: Vec<BadPlace>);

    /// Returns what is proven; none where nothing was kept, or what was kept is damaged.
    fn proof(&self) -> Option<Proof>;

    /// Reason why the last change could not be kept; none if it was.
    fn failure(&self) -> Option<String>;
}

impl Proof {
    /// The proof that a header alone gives.
    pub(crate) fn of(header: &Header) -> Self {
        let members = vec![Member::default(); header.shape.dies as usize];
        let (departures, bad_places) = (Vec::new(), Vec::new());
        let stale_start = None;
        let mut proof =
            Self { header: *header, batches: 0, members, stale_start, departures, bad_places };
        proof.note(header, &[]);
        proof
    }

    /// As [`Witness::note_header`].
    pub(crate) fn note(&mut self, header: &Header, written_at: &[u64]) {
        self.departures.retain(|it| header.lost.has(it.die));
        let header_crc = self.header.fingerprint();
        let gone = header.lost.iter().filter(|die| !self.header.lost.has(*die));
        self.departures.extend(gone.map(|die| Departure { die, header_crc }));
        // The file that keeps it may leave copies behind, which no purge reaches.
        self.header = Header { keys: KeyArea::default(), ..*header };
        // A die whose second copy is damaged still has the first one.
        self.header.version_everywhere = header.version.saturating_sub(1);
        if header.closing.checkpoint > 0 {
            self.batches = self.batches.max(header.closing.journal.number);
        }
        for (die, member) in self.members.iter_mut().enumerate() {
            let at = written_at.get(die).copied().filter(|at| *at > 0);
            member.last_written_unix_s = at.or(member.last_written_unix_s);
            member.is_current = !header.lost.has(die);
            if member.is_current {
                (member.session, member.events) = (header.session, header.version);
            } else if member.events == 0 {
                member.events = header.lost_since[die];
            }
        }
    }

    /// True if dies of which this is the newest header cannot include all that was written.
    pub(crate) const fn is_ahead_of(&self, newest: &Header) -> bool {
        self.header.drive == newest.drive && newest.version < self.header.version_everywhere
    }

    /// The proof of a drive that goes on from `newest`, an earlier state, as an operator has
    /// allowed.
    pub(crate) fn given_up(&self, newest: &Header, at_unix_s: u64) -> Self {
        let mut proof = Self::of(newest);
        let known = proof.members.iter_mut().zip(&self.members);
        known.filter(|(now, before)| now.events < before.events).for_each(|(now, before)| {
            *now = Member { is_current: false, ..*before };
        });
        proof.bad_places.clone_from(&self.bad_places);
        let session = self.header.session;
        proof.stale_start = Some(StaleStart { at_unix_s, session, pages_older: None });
        // What the headers of the dies say of themselves is all that is relied on.
        proof.header.version_everywhere = newest.version_everywhere;
        proof
    }
}
