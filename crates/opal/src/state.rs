//! State of a drive with Opal that outlasts its power: credentials, authorities, ranges, control of
//! the MBR shadow, access control (Opal SSC 2.02, 4.2 and 4.3).
//!
//! ```text
//!   made ──► SID has the MSID, the Locking SP is inactive ──► Activate ──► ranges are enforced
//!     ▲                                                                        │
//!     └──────────────────────────── Revert, RevertSP ◄─────────────────────────┘
//! ```
//!
//! **Invariants**
//! - No PIN is stored that a host set, but its digest.
//! - Tries are counted across restarts.
//! - Ranges do not overlap.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::uid::{Ace, ObjectId, RANGES, USERS};

/// Failed tries after which an authority is locked out. That of the PSID never is: nothing else
/// could bring back a drive.
pub const TRY_LIMIT: u32 = 10;
/// Longest PIN in bytes (Opal SSC 2.02, 4.2.1.8).
pub const PIN_BYTES_MAX: usize = 32;
/// Number of a reset that is a power cycle, in LockOnReset and DoneOnReset.
pub(crate) const POWER_CYCLE: u8 = 0;
/// Version of the stored form.
const VERSION: u32 = 1;
/// Letters of MSIDs and PSIDs: 32, none that is taken for another.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// Cost of the digest of a PIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinCost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
}

impl Default for PinCost {
    /// 19 MiB and two passes, some 30 ms.
    fn default() -> Self {
        Self { memory_kib: 19 << 10, passes: 2 }
    }
}

/// Digest of a PIN by Argon2id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinDigest {
    salt: [u8; 16],
    cost: PinCost,
    digest: [u8; 32],
}

impl PinDigest {
    /// The digest of a PIN with a salt.
    pub fn new(pin: &[u8], salt: [u8; 16], cost: PinCost) -> Self {
        Self { salt, cost, digest: *digest(pin, &salt, cost) }
    }

    /// True if this is its PIN.
    pub fn is_of(&self, pin: &[u8]) -> bool {
        is_same(&*digest(pin, &self.salt, self.cost), &self.digest)
    }
}

fn digest(pin: &[u8], salt: &[u8], cost: PinCost) -> Zeroizing<[u8; 32]> {
    let mut digest = Zeroizing::new([0; 32]);
    let params = Params::new(cost.memory_kib, cost.passes, 1, Some(digest.len()));
    let params = params.expect("costs are checked where states are read");
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon.hash_password_into(pin, salt, &mut *digest).expect("salt and digest have fixed lengths");
    digest
}

/// Compares in a time that does not tell where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differs == 0
}

/// Credential of an authority, a row of `C_PIN` (TCG Core 2.01, 5.3.2.12).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// Digest of its PIN; none as long as it has its first one.
    pub digest: Option<PinDigest>,
    /// Failed tries since it was authenticated last.
    pub tries: u32,
}

/// Range of blocks that can be locked, a row of the Locking table (TCG Core 2.01, 5.7.2.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// First block; 0 of the global range.
    pub start: u64,
    /// Blocks; 0 if it has none, as the global range, which has what the others leave.
    pub length: u64,
    /// True if its read lock counts.
    pub is_read_lock_enabled: bool,
    /// True if its write lock counts.
    pub is_write_lock_enabled: bool,
    /// Read lock.
    pub is_read_locked: bool,
    /// Write lock.
    pub is_write_locked: bool,
    /// Resets that lock it.
    pub lock_on_reset: BTreeSet<u8>,
}

impl Default for Range {
    fn default() -> Self {
        Self {
            start: 0,
            length: 0,
            is_read_lock_enabled: false,
            is_write_lock_enabled: false,
            is_read_locked: false,
            is_write_locked: false,
            lock_on_reset: BTreeSet::from([POWER_CYCLE]),
        }
    }
}

impl Range {
    /// True if reads are refused.
    pub const fn refuses_reads(&self) -> bool {
        self.is_read_lock_enabled && self.is_read_locked
    }

    /// True if writes are refused.
    pub const fn refuses_writes(&self) -> bool {
        self.is_write_lock_enabled && self.is_write_locked
    }
}

/// Control of the MBR shadow (TCG Core 2.01, 5.7.2.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MbrControl {
    /// True if the shadow stands before the first blocks after a power cycle.
    pub is_enabled: bool,
    /// True if it stands there no more.
    pub is_done: bool,
    /// Resets that bring it back.
    pub done_on_reset: BTreeSet<u8>,
}

impl Default for MbrControl {
    fn default() -> Self {
        Self { is_enabled: false, is_done: false, done_on_reset: BTreeSet::from([POWER_CYCLE]) }
    }
}

/// Term of the expression of an access control element, after its operands (TCG Core 2.01,
/// 5.1.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Term {
    /// The authority is authenticated.
    Authority(ObjectId),
    /// Both terms before it hold.
    And,
    /// One of them holds.
    Or,
}

/// Most terms of an expression: all authorities, and what joins them.
pub(crate) const TERMS_MAX: usize = 32;

/// True if an expression holds; none if it has no value.
pub(crate) fn holds(expression: &[Term], has: impl Fn(ObjectId) -> bool) -> Option<bool> {
    let mut operands = Vec::new();
    for term in expression {
        let value = match term {
            Term::Authority(authority) => has(*authority),
            Term::And | Term::Or => {
                let (second, first) = (operands.pop()?, operands.pop()?);
                if *term == Term::And { first && second } else { first || second }
            }
        };
        operands.push(value);
    }
    let value = operands.pop()?;
    operands.is_empty().then_some(value)
}

/// State of the Locking SP as long as it is active (Opal SSC 2.02, 4.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockingSp {
    /// Bytes of the blocks that ranges are counted in.
    pub block_bytes: u32,
    /// Credentials of its authorities.
    pub credentials: BTreeMap<ObjectId, Credential>,
    /// Authorities that are enabled.
    pub enabled: BTreeSet<ObjectId>,
    /// The global range, then the others.
    pub ranges: Vec<Range>,
    /// Control of the MBR shadow.
    pub mbr: MbrControl,
    /// Expressions that a host set, of access control elements.
    pub expressions: Vec<(Ace, Vec<Term>)>,
}

impl LockingSp {
    /// The state right after Activate, with ranges in blocks of so many bytes: Admin1 has the PIN
    /// of the owner (Opal SSC 2.02, 5.1.1.2).
    pub fn activated(owner: Credential, block_bytes: u32) -> Self {
        let admin = ObjectId::admin(1);
        Self {
            block_bytes,
            credentials: BTreeMap::from([(admin, Credential { tries: 0, ..owner })]),
            enabled: BTreeSet::from([admin]),
            ranges: vec![Range::default(); usize::from(RANGES) + 1],
            mbr: MbrControl::default(),
            expressions: Vec::new(),
        }
    }

    /// The expression of an access control element: as the host set it, or administrators, and for
    /// the PIN of a user that user, too.
    pub fn expression(&self, ace: Ace) -> Vec<Term> {
        let set = self.expressions.iter().find(|(of, _)| *of == ace);
        let admins = Term::Authority(ObjectId::ADMIN_CLASS);
        match (set, ace) {
            (Some((_, expression)), _) => expression.clone(),
            (None, Ace::SetPin(user)) => {
                vec![admins, Term::Authority(ObjectId::user(user)), Term::Or]
            }
            (None, _) => vec![admins],
        }
    }

    /// True if reads or writes of any block are refused.
    pub fn is_locked(&self) -> bool {
        self.ranges.iter().any(|it| it.refuses_reads() || it.refuses_writes())
    }

    /// True if the MBR shadow stands before the first blocks.
    pub const fn is_shadowed(&self) -> bool {
        self.mbr.is_enabled && !self.mbr.is_done
    }

    /// Changes what a power cycle does.
    fn power_on(&mut self) {
        for range in &mut self.ranges {
            if range.lock_on_reset.contains(&POWER_CYCLE) {
                range.is_read_locked |= range.is_read_lock_enabled;
                range.is_write_locked |= range.is_write_lock_enabled;
            }
        }
        self.mbr.is_done &= !self.mbr.done_on_reset.contains(&POWER_CYCLE);
    }

    fn check(&self) -> Result<(), String> {
        let ranges = usize::from(RANGES) + 1;
        if self.ranges.len() != ranges {
            return Err(format!("{} ranges, must be {ranges}", self.ranges.len()));
        }
        for (index, range) in self.ranges.iter().enumerate() {
            if range.start.checked_add(range.length).is_none() {
                return Err(format!("range {index} ends beyond all blocks"));
            }
            let overlaps = |other: &Range| {
                let (end, other_end) = (range.start + range.length, other.start + other.length);
                range.length > 0 && other.length > 0 && range.start < other_end && other.start < end
            };
            if self.ranges[..index].iter().any(overlaps) {
                return Err(format!("range {index} overlaps another one"));
            }
        }
        let known =
            (1..=crate::uid::ADMINS).map(ObjectId::admin).chain((1..=USERS).map(ObjectId::user));
        let known: BTreeSet<ObjectId> = known.collect();
        let mut used = self.credentials.keys().chain(&self.enabled);
        if let Some(unknown) = used.find(|it| !known.contains(it)) {
            return Err(format!("authority {:#x} is not known", unknown.0));
        }
        let wrong = |(_, terms): &&(Ace, Vec<Term>)| holds(terms, |_| true).is_none();
        match self.expressions.iter().find(wrong) {
            Some((ace, _)) => Err(format!("the expression of {ace:?} has no value")),
            None => Ok(()),
        }
    }
}

/// State of a drive with Opal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpalState {
    version: u32,
    /// Credential that the owner has at first, which all hosts may read.
    msid: String,
    /// Credential of who holds the drive.
    psid: String,
    /// Cost of digests from now on.
    pub cost: PinCost,
    /// Credential of the owner.
    pub owner: Credential,
    /// The Locking SP; none as long as it is inactive.
    pub locking: Option<LockingSp>,
}

impl fmt::Debug for OpalState {
    /// Without credentials.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.locking.as_ref().map(|it| &it.ranges);
        out.debug_struct("OpalState").field("ranges", &ranges).finish_non_exhaustive()
    }
}

impl OpalState {
    /// The state of a new drive, from 64 bytes of a random generator for secrets.
    pub fn new(random: &[u8; 64], cost: PinCost) -> Self {
        let letters = |bytes: &[u8]| {
            bytes.iter().map(|it| char::from(LETTERS[usize::from(it & 31)])).collect()
        };
        Self {
            version: VERSION,
            msid: letters(&random[..32]),
            psid: letters(&random[32..]),
            cost,
            owner: Credential::default(),
            locking: None,
        }
    }

    /// The state after a revert of the drive (Opal SSC 2.02, 5.1.2.2).
    #[must_use]
    pub fn reverted(&self) -> Self {
        Self { owner: Credential::default(), locking: None, ..self.clone() }
    }

    /// The state after a revert of the Locking SP alone (Opal SSC 2.02, 5.1.3.3).
    #[must_use]
    pub fn deactivated(&self) -> Self {
        Self { locking: None, ..self.clone() }
    }

    /// Credential that the owner has at first.
    pub fn msid(&self) -> &str {
        &self.msid
    }

    /// Credential of who holds the drive.
    pub fn psid(&self) -> &str {
        &self.psid
    }

    /// True if the owner has another PIN than at first.
    pub const fn is_owned(&self) -> bool {
        self.owner.digest.is_some()
    }

    /// The state at power-on: ranges are locked and the shadow is back where resets say so.
    #[must_use]
    pub fn powered_on(mut self) -> Self {
        self.locking.iter_mut().for_each(LockingSp::power_on);
        self
    }

    /// True if a PIN is that of an authority.
    pub fn is_pin(&self, authority: ObjectId, pin: &[u8]) -> bool {
        let first: &[u8] = match authority {
            ObjectId::PSID => return is_same(pin, self.psid.as_bytes()),
            ObjectId::SID => self.msid.as_bytes(),
            // Admin1 of an owner who kept the first PIN.
            _ if authority == ObjectId::admin(1) => self.msid.as_bytes(),
            _ => b"",
        };
        match self.credential(authority).and_then(|it| it.digest) {
            Some(digest) => digest.is_of(pin),
            None => is_same(pin, first),
        }
    }

    /// The credential of an authority; none of that which has its first one.
    pub fn credential(&self, authority: ObjectId) -> Option<Credential> {
        match authority {
            ObjectId::SID => Some(self.owner.clone()),
            _ => self.locking.as_ref()?.credentials.get(&authority).cloned(),
        }
    }

    /// The credential of an authority, to be changed; none if it has none.
    pub fn credential_mut(&mut self, authority: ObjectId) -> Option<&mut Credential> {
        match authority {
            ObjectId::SID => Some(&mut self.owner),
            ObjectId::PSID => None,
            _ => Some(self.locking.as_mut()?.credentials.entry(authority).or_default()),
        }
    }

    /// Its bytes, to be stored.
    ///
    /// # Panics
    /// Never: numbers, texts and lists become JSON.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(serde_json::to_vec_pretty(self).expect("numbers and texts become JSON"))
    }

    /// The state that was stored. What is not known is refused: the drive would be open.
    ///
    /// # Errors
    /// The reason, as text.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let state: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if state.version != VERSION {
            return Err(format!("version {}, must be {VERSION}", state.version));
        }
        let locking = state.locking.iter().flat_map(|it| it.credentials.values());
        let digests = locking.chain([&state.owner]).filter_map(|it| it.digest.as_ref());
        for cost in digests.map(|it| it.cost).chain([state.cost]) {
            let PinCost { memory_kib, passes } = cost;
            if !(8..=1 << 20).contains(&memory_kib) || !(1..=64).contains(&passes) {
                return Err(format!(
                    "a PIN costs {memory_kib} KiB and {passes} passes, must be 8 to 1048576 and 1 \
                     to 64"
                ));
            }
        }
        let is_id = |text: &str| text.len() == 32 && text.bytes().all(|it| LETTERS.contains(&it));
        if !is_id(&state.msid) || !is_id(&state.psid) {
            return Err("the MSID or PSID has not 32 of its letters".to_owned());
        }
        state.locking.as_ref().map_or(Ok(()), LockingSp::check)?;
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: PinCost = PinCost { memory_kib: 8, passes: 1 };

    fn active() -> OpalState {
        let mut state = OpalState::new(&[9; 64], CHEAP);
        state.owner.digest = Some(PinDigest::new(b"secret", [1; 16], CHEAP));
        state.locking = Some(LockingSp::activated(state.owner.clone(), 512));
        state
    }

    #[test]
    fn a_state_is_read_as_it_was_stored_and_what_is_unknown_is_refused() {
        let mut state = active();
        let locking = state.locking.as_mut().unwrap();
        locking.expressions.push((Ace::GetRange(3), vec![Term::Authority(ObjectId::user(2))]));
        locking.ranges[2].length = 8;
        let bytes = state.to_bytes();
        assert_eq!(OpalState::from_bytes(&bytes), Ok(state));
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(!text.contains("secret"));
        for (of, by) in [
            ("\"version\": 1", "\"version\": 2"),
            ("\"psid\"", "\"unknown\": 1, \"psid\""),
            ("\"memory_kib\": 8", "\"memory_kib\": 7"),
            ("\"length\": 8", "\"length\": 18446744073709551615, \"x\": 1"),
            ("\"get-range\"", "\"get-rang\""),
        ] {
            assert!(text.contains(of), "{of}");
            assert!(OpalState::from_bytes(text.replacen(of, by, 1).as_bytes()).is_err(), "{by}");
        }
        for end in 0..bytes.len() {
            assert!(OpalState::from_bytes(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn power_on_locks_what_is_enabled_and_locked_on_reset() {
        let mut state = active();
        let locking = state.locking.as_mut().unwrap();
        locking.ranges[0].is_read_lock_enabled = true;
        locking.ranges[1].is_write_lock_enabled = true;
        locking.ranges[2].is_write_lock_enabled = true;
        locking.ranges[2].lock_on_reset.clear();
        locking.mbr = MbrControl { is_enabled: true, is_done: true, ..MbrControl::default() };
        assert!(!locking.is_locked() && !locking.is_shadowed());
        let locking = state.powered_on().locking.unwrap();
        assert!(locking.is_shadowed());
        let locked: Vec<_> =
            locking.ranges.iter().map(|it| (it.refuses_reads(), it.refuses_writes())).collect();
        assert_eq!(locked[..4], [(true, false), (false, true), (false, false), (false, false)]);
    }

    #[test]
    fn expressions_are_evaluated_after_their_operands() {
        let (one, two) = (Term::Authority(ObjectId::user(1)), Term::Authority(ObjectId::user(2)));
        let has = |uid| uid == ObjectId::user(1);
        assert_eq!(holds(&[one], has), Some(true));
        assert_eq!(holds(&[one, two, Term::Or], has), Some(true));
        assert_eq!(holds(&[one, two, Term::And], has), Some(false));
        assert_eq!(holds(&[], has), None);
        assert_eq!(holds(&[one, two], has), None);
        assert_eq!(holds(&[one, Term::Or], has), None);
    }

    #[test]
    fn pins_are_those_of_their_authorities() {
        let mut state = active();
        assert!(state.is_pin(ObjectId::SID, b"secret") && !state.is_pin(ObjectId::SID, b"secre"));
        assert!(state.is_pin(ObjectId::admin(1), b"secret"));
        assert!(state.is_pin(ObjectId::PSID, state.psid().as_bytes()));
        assert!(
            !state.is_pin(ObjectId::PSID, state.msid().as_bytes()) || state.msid() == state.psid()
        );
        state = state.reverted();
        assert!(state.is_pin(ObjectId::SID, state.msid().as_bytes()));
        assert!(!state.is_pin(ObjectId::SID, b"secret") && !state.is_pin(ObjectId::SID, b""));
    }
}
