//! Methods of sessions: Get, Set, Authenticate, GenKey, Activate, Revert, RevertSP, Random (Opal
//! SSC 2.02, 4.2 and 4.3, with its tables of access control).
//!
//! ```text
//!   call ──► object of the session's SP ──► authorities ──► next state ──► erased ──► stored
//! ```
//!
//! **Invariants**
//! - A call is carried out as a whole or not at all.
//! - No PIN is read but the MSID.

use zeroize::Zeroizing;

use crate::state::{
    LockingSp, OpalState, PIN_BYTES_MAX, PinDigest, Range, TERMS_MAX, TRY_LIMIT, Term, holds,
};
use crate::token::Value;
use crate::tper::{Backing, Call, Erasure, Outcome, Place, Session, Tper, authorities};
use crate::uid::{Ace, ByteTable, Method, MethodStatus, Object, ObjectId, RANGES};

const INVALID: MethodStatus = MethodStatus::InvalidParameter;
const REFUSED: MethodStatus = MethodStatus::NotAuthorized;
/// Names of parameters of Get (TCG Core 2.01, 5.3.3.6): rows and columns, first and last.
const START_ROW: u64 = 1;
const END_ROW: u64 = 2;
const START_COLUMN: u64 = 3;
const END_COLUMN: u64 = 4;
/// Name of the parameter of RevertSP that keeps the data of the global range (Opal SSC 2.02,
/// 5.1.3.1).
const KEEP_GLOBAL_RANGE: u64 = 0x0006_0000;
/// Half identifiers of the types of terms (TCG Core 2.01, 5.1.3).
const AUTHORITY_TERM: [u8; 4] = [0, 0, 0x0C, 0x05];
const BOOLEAN_TERM: [u8; 4] = [0, 0, 0x04, 0x0E];
/// States of SPs (Opal SSC 2.02, 5.3.2).
const MANUFACTURED_INACTIVE: u64 = 8;
const MANUFACTURED: u64 = 9;
/// Most bytes of Random.
const RANDOM_BYTES_MAX: u64 = 32;

/// Column of a row, and whether the session may read it.
struct Column {
    number: u64,
    value: Value,
    is_readable: bool,
}

const fn column(number: u64, value: Value, is_readable: bool) -> Column {
    Column { number, value, is_readable }
}

impl Tper {
    /// Carries out a method of the session.
    pub(crate) fn call(&mut self, call: &Call, backing: &mut dyn Backing) -> Outcome {
        let session = self.session.clone().expect("calls come in sessions");
        let object = call.invoking.object().filter(|it| is_of(session.sp, *it));
        let object = object.ok_or(REFUSED)?;
        let method = Method::of(call.method).ok_or(MethodStatus::InvalidFunction)?;
        let changes = !matches!(method, Method::Get | Method::Authenticate | Method::Random);
        if changes && !session.is_write {
            return Err(REFUSED);
        }
        let parameters = &*call.parameters;
        match (method, object) {
            (Method::Get, Object::Bytes(table)) => {
                self.get_bytes(&session, table, parameters, backing)
            }
            (Method::Get, _) => self.get(&session, object, parameters),
            (Method::Set, Object::Bytes(table)) => {
                self.set_bytes(&session, table, parameters, backing)
            }
            (Method::Set, _) => self.set(&session, object, parameters, backing),
            (Method::Authenticate, Object::ThisSp) => {
                self.authenticated(&session, parameters, backing)
            }
            (Method::Random, Object::ThisSp) => random(parameters, backing),
            (Method::GenKey, Object::Key(range)) => self.gen_key(&session, range, backing),
            (Method::Activate, Object::Sp(ObjectId::LOCKING_SP)) => {
                self.activate(&session, parameters, backing)
            }
            (Method::Revert, Object::Sp(sp)) => self.revert(&session, sp, parameters, backing),
            (Method::RevertSp, Object::ThisSp) => self.revert_sp(&session, parameters, backing),
            _ => Err(MethodStatus::InvalidFunction),
        }
    }

    /// True if an authority, or a member of a class, is authenticated.
    fn has(session: &Session, authority: ObjectId) -> bool {
        session.authorities.iter().any(|it| {
            let class = match it.object() {
                Some(Object::Authority(of))
                    if (1..=4).any(|number| ObjectId::admin(number) == of) =>
                {
                    Some(ObjectId::ADMIN_CLASS)
                }
                Some(Object::Authority(of))
                    if authorities(ObjectId::LOCKING_SP).any(|it| it == of) =>
                {
                    Some(ObjectId::USER_CLASS)
                }
                _ => None,
            };
            *it == authority || class == Some(authority) || authority == ObjectId::PUBLIC
        })
    }

    /// True if the session has what an access control element asks for.
    fn allows(&self, session: &Session, ace: Ace) -> bool {
        let expression = self.state.locking.as_ref().map(|it| it.expression(ace));
        let value = expression.and_then(|it| holds(&it, |of| Self::has(session, of)));
        session.sp == ObjectId::LOCKING_SP && value == Some(true)
    }

    /// Stores the next state, and has it in force then.
    fn commit(&mut self, next: OpalState, backing: &mut dyn Backing) -> Result<(), MethodStatus> {
        if next != self.state {
            backing.keep(&next).map_err(|_| MethodStatus::TperMalfunction)?;
            self.state = next;
        }
        Ok(())
    }

    /// Columns of an object (TCG Core 2.01, 5.3.2 and 5.7.2; Opal SSC 2.02, 4.2 and 4.3).
    fn columns(&self, session: &Session, object: Object) -> Vec<Column> {
        let is_admin = Self::has(
            session,
            if session.sp == ObjectId::ADMIN_SP { ObjectId::SID } else { ObjectId::ADMIN_CLASS },
        );
        match object {
            Object::Sp(sp) => {
                let is_inactive = sp == ObjectId::LOCKING_SP && self.state.locking.is_none();
                let life = if is_inactive { MANUFACTURED_INACTIVE } else { MANUFACTURED };
                let name = if sp == ObjectId::LOCKING_SP { "Locking" } else { "Admin" };
                vec![
                    column(0, sp.into(), true),
                    column(1, name.into(), true),
                    column(6, life.into(), true),
                    column(7, false.into(), true),
                ]
            }
            Object::Authority(authority) => {
                let is_class = matches!(authority, ObjectId::ADMIN_CLASS | ObjectId::USER_CLASS);
                vec![
                    column(0, authority.into(), true),
                    column(3, is_class.into(), is_admin),
                    column(5, self.is_enabled(authority).into(), is_admin),
                ]
            }
            Object::Msid => vec![
                column(0, ObjectId::PIN_MSID.into(), true),
                column(3, self.state.msid().into(), true),
            ],
            Object::Pin(authority) => {
                let tries = self.state.credential(authority).map_or(0, |it| it.tries);
                let limit = if authority == ObjectId::PSID { 0 } else { TRY_LIMIT };
                vec![
                    column(0, ObjectId::pin(authority).into(), true),
                    column(5, u64::from(limit).into(), is_admin),
                    column(6, u64::from(tries).into(), is_admin),
                    column(7, true.into(), is_admin),
                ]
            }
            Object::LockingInfo => self.locking_info(),
            Object::Range(number) => self.range_columns(session, number),
            Object::Key(number) => vec![column(0, ObjectId::key(number).into(), true)],
            Object::MbrControl => self.mbr_columns(),
            Object::Table(table) => vec![
                column(7, table.size().into(), true),
                column(13, 1.into(), true),
                column(14, 4096.into(), true),
            ],
            Object::Ace(ace) => {
                let expression = self.state.locking.as_ref().map(|it| it.expression(ace));
                let terms = expression.unwrap_or_default().into_iter().map(value_of).collect();
                vec![column(0, ace.uid().into(), true), column(3, Value::List(terms), is_admin)]
            }
            Object::ThisSp | Object::Bytes(_) => Vec::new(),
        }
    }

    /// LockingInfo (TCG Core 2.01, 5.7.2.1; Opal SSC 2.02, 4.3.5.1).
    fn locking_info(&self) -> Vec<Column> {
        let geometry = self.geometry;
        vec![
            column(0, ObjectId::LOCKING_INFO.into(), true),
            column(2, 1.into(), true),
            column(3, geometry.is_encrypted.into(), true),
            column(4, u64::from(RANGES).into(), true),
            column(7, (geometry.granularity_blocks > 1).into(), true),
            column(8, u64::from(geometry.block_bytes).into(), true),
            column(9, geometry.granularity_blocks.into(), true),
            column(10, 0.into(), true),
        ]
    }

    fn range_columns(&self, session: &Session, number: u16) -> Vec<Column> {
        let is_readable = self.allows(session, Ace::GetRange(number));
        let range = self.range(number).cloned().unwrap_or_default();
        let resets = range.lock_on_reset.iter().map(|it| u64::from(*it).into()).collect();
        vec![
            column(0, ObjectId::range(number).into(), true),
            column(3, range.start.into(), is_readable),
            column(4, range.length.into(), is_readable),
            column(5, range.is_read_lock_enabled.into(), is_readable),
            column(6, range.is_write_lock_enabled.into(), is_readable),
            column(7, range.is_read_locked.into(), is_readable),
            column(8, range.is_write_locked.into(), is_readable),
            column(9, Value::List(resets), is_readable),
            column(10, ObjectId::key(number).into(), is_readable),
        ]
    }

    fn mbr_columns(&self) -> Vec<Column> {
        let mbr = self.state.locking.as_ref().map(|it| it.mbr.clone()).unwrap_or_default();
        let resets = mbr.done_on_reset.iter().map(|it| u64::from(*it).into()).collect();
        vec![
            column(0, ObjectId::MBR_CONTROL.into(), true),
            column(1, mbr.is_enabled.into(), true),
            column(2, mbr.is_done.into(), true),
            column(3, Value::List(resets), true),
        ]
    }

    fn range(&self, number: u16) -> Option<&Range> {
        self.state.locking.as_ref()?.ranges.get(usize::from(number))
    }

    /// Get of a row: the columns that the session may read.
    fn get(&self, session: &Session, object: Object, parameters: &[Value]) -> Outcome {
        let (first, last) = cells(parameters, (START_COLUMN, END_COLUMN))?;
        let columns = self.columns(session, object).into_iter();
        let asked: Vec<Column> = columns
            .filter(|it| (first.unwrap_or(0)..=last.unwrap_or(u64::MAX)).contains(&it.number))
            .collect();
        if !asked.is_empty() && asked.iter().all(|it| !it.is_readable) {
            return Err(REFUSED);
        }
        let readable = asked.into_iter().filter(|it| it.is_readable);
        let named = readable.map(|it| Value::named(it.number, it.value));
        Ok(vec![Value::List(named.collect())])
    }

    /// Get of a table of bytes.
    fn get_bytes(
        &self,
        session: &Session,
        table: ByteTable,
        parameters: &[Value],
        backing: &mut dyn Backing,
    ) -> Outcome {
        let may = match table {
            ByteTable::Mbr => true,
            ByteTable::DataStore => self.allows(session, Ace::GetDataStore),
        };
        if !may {
            return Err(REFUSED);
        }
        let (first, last) = cells(parameters, (START_ROW, END_ROW))?;
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(table.size() - 1));
        if first > last || last >= table.size() {
            return Err(INVALID);
        }
        // More than any host takes.
        let length = usize::try_from(last - first + 1).ok().filter(|it| *it <= 1 << 16);
        let mut bytes = vec![0; length.ok_or(MethodStatus::ResponseOverflow)?];
        let place = Place { table, offset: first };
        backing.read(place, &mut bytes).map_err(|_| MethodStatus::TperMalfunction)?;
        Ok(vec![Value::Bytes(bytes)])
    }

    /// Set of a table of bytes.
    fn set_bytes(
        &self,
        session: &Session,
        table: ByteTable,
        parameters: &[Value],
        backing: &mut dyn Backing,
    ) -> Outcome {
        let may = match table {
            ByteTable::Mbr => Self::has(session, ObjectId::ADMIN_CLASS),
            ByteTable::DataStore => self.allows(session, Ace::SetDataStore),
        };
        if !may {
            return Err(REFUSED);
        }
        let (place, values) = set_parameters(parameters)?;
        let offset = place.map_or(Some(0), Value::unsigned).ok_or(INVALID)?;
        let bytes = values.and_then(Value::bytes).ok_or(INVALID)?;
        let end = offset.checked_add(bytes.len() as u64).ok_or(INVALID)?;
        if end > table.size() {
            return Err(MethodStatus::InsufficientRows);
        }
        let written = backing.write(Place { table, offset }, bytes);
        written.map(|()| Vec::new()).map_err(|_| MethodStatus::TperMalfunction)
    }

    /// Set of columns of a row.
    fn set(
        &mut self,
        session: &Session,
        object: Object,
        parameters: &[Value],
        backing: &mut dyn Backing,
    ) -> Outcome {
        let (place, values) = set_parameters(parameters)?;
        if place.is_some() {
            return Err(INVALID);
        }
        let values = values.and_then(Value::list).ok_or(INVALID)?;
        let mut next = self.state.clone();
        let mut seen = Vec::new();
        for value in values {
            let Value::Named(named) = value else { return Err(INVALID) };
            let number = named.0.unsigned().ok_or(INVALID)?;
            if seen.contains(&number) {
                return Err(INVALID);
            }
            seen.push(number);
            self.set_column((session, object), (number, &named.1), &mut next, backing)?;
        }
        if let Object::Range(number) = object {
            self.check_range(&next, number)?;
        }
        self.commit(next, backing)?;
        Ok(Vec::new())
    }

    /// Sets a column in the next state.
    fn set_column(
        &self,
        (session, object): (&Session, Object),
        (number, value): (u64, &Value),
        next: &mut OpalState,
        backing: &mut dyn Backing,
    ) -> Result<(), MethodStatus> {
        let is_admin = Self::has(session, ObjectId::ADMIN_CLASS);
        if !self.may_set(session, object, number) {
            return Err(REFUSED);
        }
        if let (Object::Pin(authority), 3) = (object, number) {
            let pin = value.bytes().filter(|it| it.len() <= PIN_BYTES_MAX).ok_or(INVALID)?;
            let mut salt = [0; 16];
            backing.random(&mut salt).map_err(|_| MethodStatus::TperMalfunction)?;
            let digest = PinDigest::new(pin, salt, next.cost);
            let credential = next.credential_mut(authority).ok_or(REFUSED)?;
            (credential.digest, credential.tries) = (Some(digest), 0);
            return Ok(());
        }
        let locking = next.locking.as_mut().ok_or(REFUSED)?;
        match object {
            Object::Authority(authority) if is_admin => {
                if flag(value)? {
                    locking.enabled.insert(authority);
                } else {
                    locking.enabled.remove(&authority);
                }
            }
            Object::Range(range) => set_range(locking, range, number, value)?,
            Object::MbrControl => match number {
                1 => locking.mbr.is_enabled = flag(value)?,
                2 => locking.mbr.is_done = flag(value)?,
                _ => locking.mbr.done_on_reset = resets(value)?,
            },
            Object::Ace(ace) => {
                let terms = terms(value)?;
                locking.expressions.retain(|(of, _)| *of != ace);
                locking.expressions.push((ace, terms));
            }
            _ => return Err(INVALID),
        }
        Ok(())
    }

    /// True if the session may set a column of an object.
    fn may_set(&self, session: &Session, object: Object, number: u64) -> bool {
        let is_admin = Self::has(session, ObjectId::ADMIN_CLASS);
        match (object, number) {
            (Object::Pin(ObjectId::SID), 3) => Self::has(session, ObjectId::SID),
            (Object::Pin(ObjectId::PSID), _) | (Object::Range(0), 3 | 4) => false,
            (Object::Pin(authority), 3) => {
                let users = (1..=crate::uid::USERS).find(|it| ObjectId::user(*it) == authority);
                users.map_or(is_admin, |user| self.allows(session, Ace::SetPin(user)))
            }
            // That of Admin1 is always enabled, and classes have none.
            (Object::Authority(authority), 5) => {
                let mut own =
                    authorities(ObjectId::LOCKING_SP).filter(|it| *it != ObjectId::admin(1));
                is_admin && own.any(|it| it == authority)
            }
            (Object::Range(range), 7) => {
                is_admin || self.allows(session, Ace::SetReadLocked(range))
            }
            (Object::Range(range), 8) => {
                is_admin || self.allows(session, Ace::SetWriteLocked(range))
            }
            (Object::MbrControl, 2 | 3) => is_admin || self.allows(session, Ace::SetMbrDone),
            (Object::Range(_), 3..=9) | (Object::MbrControl, 1) | (Object::Ace(_), 3) => is_admin,
            _ => false,
        }
    }

    /// Checks the place of a range in the next state (Opal SSC 2.02, 4.3.5.2.1.1).
    fn check_range(&self, next: &OpalState, number: u16) -> Result<(), MethodStatus> {
        let ranges = next.locking.as_ref().map_or(&[][..], |it| &*it.ranges);
        let range = ranges.get(usize::from(number)).ok_or(INVALID)?;
        if self.range(number).is_some_and(|it| (it.start, it.length) == (range.start, range.length))
        {
            return Ok(());
        }
        let granularity = self.geometry.granularity_blocks.max(1);
        let is_aligned =
            range.start.is_multiple_of(granularity) && range.length.is_multiple_of(granularity);
        let end = range.start.checked_add(range.length);
        if !is_aligned || end.is_none_or(|end| end > self.geometry.blocks) {
            return Err(INVALID);
        }
        let end = range.start + range.length;
        let overlaps = ranges.iter().enumerate().skip(1).any(|(index, other)| {
            let is_other = index != usize::from(number) && other.length > 0 && range.length > 0;
            is_other && range.start < other.start + other.length && other.start < end
        });
        if overlaps { Err(INVALID) } else { Ok(()) }
    }

    /// Authenticate (TCG Core 2.01, 5.3.3.12).
    fn authenticated(
        &mut self,
        session: &Session,
        parameters: &[Value],
        backing: &mut dyn Backing,
    ) -> Outcome {
        let (authority, proof) = match parameters {
            [authority] => (authority, None),
            [authority, Value::Named(named)] if named.0 == Value::Unsigned(0) => {
                (authority, Some(named.1.bytes().ok_or(INVALID)?))
            }
            _ => return Err(INVALID),
        };
        let authority = ObjectId::try_from(authority).map_err(|()| INVALID)?;
        let is_right = authority == ObjectId::PUBLIC
            || self.authenticate(session.sp, authority, proof.unwrap_or(&[]), backing)?;
        if is_right && let Some(session) = &mut self.session {
            session.authorities.retain(|it| *it != authority);
            session.authorities.push(authority);
        }
        Ok(vec![is_right.into()])
    }

    /// GenKey: what the range held is gone (TCG Core 2.01, 5.3.3.16).
    fn gen_key(&self, session: &Session, range: u16, backing: &mut dyn Backing) -> Outcome {
        if !self.allows(session, Ace::GenKey(range)) {
            return Err(REFUSED);
        }
        let blocks = self.blocks_of(range);
        let is_all = blocks == [(0, self.geometry.blocks)];
        let erasure = if is_all { Erasure::Drive } else { Erasure::Blocks(blocks) };
        backing.erase(&erasure).map(|()| Vec::new()).map_err(|_| MethodStatus::Fail)
    }

    /// Blocks of a range; those of the global one are what the others leave.
    fn blocks_of(&self, number: u16) -> Vec<(u64, u64)> {
        let ranges = self.state.locking.as_ref().map_or(&[][..], |it| &*it.ranges);
        let others = ranges.iter().skip(1).filter(|it| it.length > 0);
        if number > 0 {
            let own = ranges.get(usize::from(number)).filter(|it| it.length > 0);
            return own.map(|it| (it.start, it.length)).into_iter().collect();
        }
        let mut others: Vec<(u64, u64)> = others.map(|it| (it.start, it.length)).collect();
        others.sort_unstable();
        others.push((self.geometry.blocks, 0));
        let (mut at, mut left) = (0, Vec::new());
        for (start, length) in others {
            if start > at {
                left.push((at, start - at));
            }
            at = at.max(start + length);
        }
        left
    }

    /// Activate of the Locking SP (Opal SSC 2.02, 5.1.1).
    fn activate(
        &mut self,
        session: &Session,
        parameters: &[Value],
        backing: &mut dyn Backing,
    ) -> Outcome {
        if !Self::has(session, ObjectId::SID) {
            return Err(REFUSED);
        }
        // Single user mode, which the drive does not announce.
        if !parameters.is_empty() {
            return Err(INVALID);
        }
        // Ranges are of one namespace.
        if self.geometry.blocks == 0 {
            return Err(MethodStatus::Fail);
        }
        if self.state.locking.is_none() {
            let mut next = self.state.clone();
            next.locking =
                Some(LockingSp::activated(next.owner.clone(), self.geometry.block_bytes));
            self.commit(next, backing)?;
        }
        Ok(Vec::new())
    }

    /// Revert of an SP in a session of the Admin SP (Opal SSC 2.02, 5.1.2).
    fn revert(
        &mut self,
        session: &Session,
        sp: ObjectId,
        parameters: &[Value],
        backing: &mut dyn Backing,
    ) -> Outcome {
        let is_psid = Self::has(session, ObjectId::PSID) && sp == ObjectId::ADMIN_SP;
        if session.sp != ObjectId::ADMIN_SP || !(Self::has(session, ObjectId::SID) || is_psid) {
            return Err(REFUSED);
        }
        if !parameters.is_empty() {
            return Err(INVALID);
        }
        let next = match sp {
            ObjectId::ADMIN_SP => self.state.reverted(),
            _ => self.state.deactivated(),
        };
        if is_psid || self.state.locking.is_some() {
            Self::forget(&Erasure::Drive, backing)?;
        }
        self.commit(next, backing)?;
        if sp == ObjectId::ADMIN_SP {
            self.session = None;
            self.is_sid_blocked = false;
        }
        Ok(Vec::new())
    }

    /// RevertSP of the session's SP (Opal SSC 2.02, 5.1.3).
    fn revert_sp(
        &mut self,
        session: &Session,
        parameters: &[Value],
        backing: &mut dyn Backing,
    ) -> Outcome {
        let keeps_global = match parameters {
            [] => false,
            [Value::Named(named)] if named.0 == Value::Unsigned(KEEP_GLOBAL_RANGE) => {
                flag(&named.1)?
            }
            _ => return Err(INVALID),
        };
        if session.sp == ObjectId::ADMIN_SP {
            if keeps_global {
                return Err(INVALID);
            }
            return self.revert(session, ObjectId::ADMIN_SP, &[], backing);
        }
        if !Self::has(session, ObjectId::ADMIN_CLASS) {
            return Err(REFUSED);
        }
        let erasure = if keeps_global {
            if self.range(0).is_some_and(|it| it.refuses_reads() && it.refuses_writes()) {
                return Err(MethodStatus::Fail);
            }
            Erasure::Blocks((1..=RANGES).flat_map(|it| self.blocks_of(it)).collect())
        } else {
            Erasure::Drive
        };
        Self::forget(&erasure, backing)?;
        self.commit(self.state.deactivated(), backing)?;
        self.session = None;
        Ok(Vec::new())
    }

    /// Erases data, and the tables of bytes, before a revert: a crash in between leaves locks.
    fn forget(erasure: &Erasure, backing: &mut dyn Backing) -> Result<(), MethodStatus> {
        let mut erase = || {
            backing.erase(erasure)?;
            ByteTable::ALL.into_iter().try_for_each(|it| backing.clear(it))
        };
        erase().map_err(|_| MethodStatus::Fail)
    }
}

/// True if an SP has an object (Opal SSC 2.02, 4.2 and 4.3).
fn is_of(sp: ObjectId, object: Object) -> bool {
    match object {
        Object::ThisSp | Object::Authority(ObjectId::PUBLIC | ObjectId::ADMIN_CLASS) => true,
        Object::Sp(_) | Object::Msid => sp == ObjectId::ADMIN_SP,
        Object::Authority(ObjectId::USER_CLASS) => sp == ObjectId::LOCKING_SP,
        Object::Authority(of) | Object::Pin(of) => authorities(sp).any(|it| it == of),
        _ => sp == ObjectId::LOCKING_SP,
    }
}

/// First and last cell of a Get (TCG Core 2.01, 5.1.4.2.3).
fn cells(
    parameters: &[Value],
    (first, last): (u64, u64),
) -> Result<(Option<u64>, Option<u64>), MethodStatus> {
    let [Value::List(block)] = parameters else { return Err(INVALID) };
    let mut found = (None, None);
    for cell in block {
        let Value::Named(named) = cell else { return Err(INVALID) };
        let (name, value) =
            (named.0.unsigned().ok_or(INVALID)?, named.1.unsigned().ok_or(INVALID)?);
        match name {
            _ if name == first => found.0 = Some(value),
            _ if name == last => found.1 = Some(value),
            _ => return Err(INVALID),
        }
    }
    if found.0.unwrap_or(0) > found.1.unwrap_or(u64::MAX) {
        return Err(INVALID);
    }
    Ok(found)
}

/// Parameters of Set: Where, and Values (TCG Core 2.01, 5.3.3.7).
fn set_parameters(parameters: &[Value]) -> Result<(Option<&Value>, Option<&Value>), MethodStatus> {
    let (mut place, mut values) = (None, None);
    for parameter in parameters {
        let Value::Named(named) = parameter else { return Err(INVALID) };
        let found = match named.0.unsigned() {
            Some(0) => &mut place,
            Some(1) => &mut values,
            _ => return Err(INVALID),
        };
        if found.replace(&named.1).is_some() {
            return Err(INVALID);
        }
    }
    Ok((place, values))
}

fn flag(value: &Value) -> Result<bool, MethodStatus> {
    match value.unsigned() {
        Some(flag @ 0..=1) => Ok(flag == 1),
        _ => Err(INVALID),
    }
}

/// Resets: power cycles (0) and nothing else, since the drive locks at no other (Opal SSC 2.02,
/// 4.3.5.2.2, has the programmatic one optional).
fn resets(value: &Value) -> Result<std::collections::BTreeSet<u8>, MethodStatus> {
    let of = |it: &Value| if it.unsigned() == Some(0) { Ok(0) } else { Err(INVALID) };
    let resets: std::collections::BTreeSet<u8> =
        value.list().ok_or(INVALID)?.iter().map(of).collect::<Result<_, _>>()?;
    if resets.is_empty() { Err(INVALID) } else { Ok(resets) }
}

fn set_range(
    locking: &mut LockingSp,
    number: u16,
    column: u64,
    value: &Value,
) -> Result<(), MethodStatus> {
    let range = locking.ranges.get_mut(usize::from(number)).ok_or(INVALID)?;
    match column {
        3 => range.start = value.unsigned().ok_or(INVALID)?,
        4 => range.length = value.unsigned().ok_or(INVALID)?,
        5 => range.is_read_lock_enabled = flag(value)?,
        6 => range.is_write_lock_enabled = flag(value)?,
        7 => range.is_read_locked = flag(value)?,
        8 => range.is_write_locked = flag(value)?,
        _ => range.lock_on_reset = resets(value)?,
    }
    Ok(())
}

/// A term as hosts write it: named by the half identifier of its type.
fn value_of(term: Term) -> Value {
    match term {
        Term::Authority(uid) => Value::named(&AUTHORITY_TERM[..], uid),
        Term::And => Value::named(&BOOLEAN_TERM[..], 0),
        Term::Or => Value::named(&BOOLEAN_TERM[..], 1),
    }
}

/// The terms of an expression, whose authorities have to be of the Locking SP.
fn terms(value: &Value) -> Result<Vec<Term>, MethodStatus> {
    let list = value.list().filter(|it| it.len() <= TERMS_MAX).ok_or(INVALID)?;
    let term = |it: &Value| {
        let Value::Named(named) = it else { return Err(INVALID) };
        match (named.0.bytes(), &named.1) {
            (Some(name), value) if name == AUTHORITY_TERM => {
                let uid = ObjectId::try_from(value).map_err(|()| INVALID)?;
                let is_known = uid == ObjectId::PUBLIC
                    || matches!(uid, ObjectId::ADMIN_CLASS | ObjectId::USER_CLASS)
                    || authorities(ObjectId::LOCKING_SP).any(|it| it == uid);
                if is_known { Ok(Term::Authority(uid)) } else { Err(INVALID) }
            }
            (Some(name), Value::Unsigned(0)) if name == BOOLEAN_TERM => Ok(Term::And),
            (Some(name), Value::Unsigned(1)) if name == BOOLEAN_TERM => Ok(Term::Or),
            _ => Err(INVALID),
        }
    };
    let terms: Vec<Term> = list.iter().map(term).collect::<Result<_, _>>()?;
    holds(&terms, |_| true).map(|_| terms).ok_or(INVALID)
}

/// Random (TCG Core 2.01, 5.6.4.1).
fn random(parameters: &[Value], backing: &mut dyn Backing) -> Outcome {
    let [count] = parameters else { return Err(INVALID) };
    let count = count.unsigned().filter(|it| *it <= RANDOM_BYTES_MAX).ok_or(INVALID)?;
    let mut bytes = Zeroizing::new([0; 32]);
    let bytes = &mut bytes[..usize::try_from(count).expect("at most 32")];
    backing.random(bytes).map_err(|_| MethodStatus::TperMalfunction)?;
    Ok(vec![(&*bytes).into()])
}
