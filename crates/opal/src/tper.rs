//! The drive's side of the protocol: transport, session manager, sessions (TCG Core 2.01, 3.3;
//! Opal SSC 2.02, 3).
//!
//! **Invariants**
//! - One session at a time, of one channel; it ends when it is not used for [`IDLE`].
//! - An answer is given to the channel that asked.

mod methods;

use std::collections::BTreeMap;
use std::fmt;

use blockio::Nanos;

use crate::discovery::{COM_ID, Geometry, level_0};
use crate::packet::{self, HEADER_BYTES, Message, SessionNumbers};
use crate::state::{OpalState, TRY_LIMIT};
use crate::token::{Control, Token, Tokens, Value};
use crate::uid::{ADMINS, ByteTable, Method, MethodStatus, ObjectId, USERS};

/// Largest ComPacket that is taken.
const COM_PACKET_BYTES_MAX: u64 = 65536;
/// Largest ComPacket of a host that has said nothing of its properties.
const HOST_PACKET_BYTES: usize = 2048;
/// Time after which a session that is not used ends, in milliseconds.
const IDLE_MS: u64 = 30_000;
const IDLE: Nanos = Nanos::from_millis(IDLE_MS);
/// Channels whose answers are kept.
const ANSWERS_MAX: usize = 64;
/// ComID of Level 0 discovery, and of Block SID Authentication under protocol 02h.
const DISCOVERY: u16 = 0x0001;
const BLOCK_SID: u16 = 0x0005;

/// Reason why something did not succeed, as text.
pub type Failure = String;

/// Data to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Erasure {
    /// Everything that is or was stored, from the media too.
    Drive,
    /// Blocks of ranges: starts and lengths.
    Blocks(Vec<(u64, u64)>),
}

/// Services of a drive's owner.
pub trait Backing {
    /// Stores the state, and has its locks in force then.
    ///
    /// # Errors
    /// Fails if it is not stored; then nothing has changed.
    fn keep(&mut self, state: &OpalState) -> Result<(), Failure>;

    /// Erases. Once it returns no crash brings it back.
    ///
    /// # Errors
    /// Fails if not all of it is erased.
    fn erase(&mut self, erasure: &Erasure) -> Result<(), Failure>;

    /// Reads a table of bytes; what was never written is zeroes.
    ///
    /// # Errors
    /// Fails if the system does.
    fn read(&mut self, place: Place, buffer: &mut [u8]) -> Result<(), Failure>;

    /// Writes a table of bytes. Once it returns no crash undoes it.
    ///
    /// # Errors
    /// Fails if the system does.
    fn write(&mut self, place: Place, bytes: &[u8]) -> Result<(), Failure>;

    /// Fills a table of bytes with zeroes, durably.
    ///
    /// # Errors
    /// Fails if the system does.
    fn clear(&mut self, table: ByteTable) -> Result<(), Failure>;

    /// Fills a buffer with random bytes for secrets.
    ///
    /// # Errors
    /// Fails if the system has none.
    fn random(&mut self, buffer: &mut [u8]) -> Result<(), Failure>;
}

/// Place in a table of bytes, within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The table.
    pub table: ByteTable,
    /// First byte.
    pub offset: u64,
}

/// Way by which a command came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Number of the controller or so that has its own session and answers.
    pub id: u64,
    /// Security protocol.
    pub protocol: u8,
    /// ComID, or whatever else is specific to the protocol.
    pub specific: u16,
}

/// The answer of Security Receive while a message is worked on: it is to come (TCG Core 2.01,
/// 3.3.10.2.1); none of protocols that have no such answer.
pub fn not_yet(channel: Channel) -> Option<Vec<u8>> {
    let is_waiting = (channel.protocol, channel.specific) == (1, COM_ID);
    is_waiting.then(|| packet::write_empty(COM_ID, (1, 0)))
}

/// Reason why a command of the transport is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecurityError {
    /// The protocol, or the ComID, is not one of the drive's.
    #[error("security protocol or ComID is not supported")]
    Protocol,
    /// The SID cannot be blocked now.
    #[error("the owner's authority is blocked, or has another PIN than at first")]
    State,
}

/// Session (TCG Core 2.01, 3.3.7).
#[derive(Clone, Debug)]
pub(crate) struct Session {
    channel: u64,
    numbers: SessionNumbers,
    pub(crate) sp: ObjectId,
    pub(crate) is_write: bool,
    /// Authorities that are authenticated.
    pub(crate) authorities: Vec<ObjectId>,
    used_at: Nanos,
}

/// The drive's side.
pub struct Tper {
    pub(crate) state: OpalState,
    pub(crate) session: Option<Session>,
    pub(crate) geometry: Geometry,
    pub(crate) is_sid_blocked: bool,
    /// Answers that no host has taken, by channel.
    answers: BTreeMap<u64, Vec<u8>>,
    /// Requests of protocol 02h, by channel: the last one.
    requests: BTreeMap<u64, u32>,
    /// Channel, and the largest ComPacket of its host.
    host: (u64, usize),
    /// Sessions that were begun.
    begun: u32,
}

impl fmt::Debug for Tper {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tper").field("is_open", &self.session.is_some()).finish_non_exhaustive()
    }
}

/// Results of a method, or its status.
pub(crate) type Outcome = Result<Vec<Value>, MethodStatus>;

impl Tper {
    /// The drive after power-on. Returns it with locks as they have to be in force.
    pub fn power_on(state: OpalState, geometry: Geometry) -> Self {
        Self {
            state: state.powered_on(),
            session: None,
            geometry,
            is_sid_blocked: false,
            answers: BTreeMap::new(),
            requests: BTreeMap::new(),
            host: (0, HOST_PACKET_BYTES),
            begun: 0,
        }
    }

    /// Its state.
    pub const fn state(&self) -> &OpalState {
        &self.state
    }

    /// Sets where blocks are now.
    pub const fn set_geometry(&mut self, geometry: Geometry) {
        self.geometry = geometry;
    }

    /// Notes that a message was done with at `now`: what it took, such as for erasing, is no time
    /// in which its host did not use the session.
    pub fn touch(&mut self, now: Nanos) {
        self.session.iter_mut().for_each(|it| it.used_at = it.used_at.max(now));
    }

    /// Ends the session of a channel, whose host is gone, and forgets its answers.
    pub fn end_channel(&mut self, channel: u64) {
        self.answers.remove(&channel);
        self.requests.remove(&channel);
        if self.session.as_ref().is_some_and(|it| it.channel == channel) {
            self.session = None;
        }
    }

    /// Carries out Security Send. Its answer waits for Security Receive; the session counts as used
    /// from [`Tper::touch`] on.
    ///
    /// # Errors
    /// Fails if the protocol or ComID is not supported; nothing is done.
    pub fn send(
        &mut self,
        channel: Channel,
        data: &[u8],
        now: Nanos,
        backing: &mut dyn Backing,
    ) -> Result<(), SecurityError> {
        match (channel.protocol, channel.specific) {
            (1, COM_ID) => {
                let answer = self.message(channel.id, data, now, backing);
                self.expect(channel.id, answer);
                Ok(())
            }
            (2, COM_ID) => self.com_id_request(channel.id, data),
            (2, BLOCK_SID) => self.block_sid(),
            _ => Err(SecurityError::Protocol),
        }
    }

    /// Carries out Security Receive for at most `length` bytes; what it returns may be less.
    ///
    /// # Errors
    /// Fails if the protocol or ComID is not supported.
    pub fn receive(&mut self, channel: Channel, length: usize) -> Result<Vec<u8>, SecurityError> {
        let mut bytes = match (channel.protocol, channel.specific) {
            // Protocols 00h, 01h and 02h.
            (0, 0) => vec![0, 0, 0, 0, 0, 0, 0, 3, 0, 1, 2],
            // No certificates.
            (0, 1) => vec![0; 4],
            (1, DISCOVERY) => level_0(&self.state, self.is_sid_blocked, &self.geometry),
            (1, COM_ID) => return Ok(self.answer(channel.id, length)),
            (2, COM_ID) => self.com_id_answer(channel.id),
            _ => return Err(SecurityError::Protocol),
        };
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Keeps an answer for a channel.
    fn expect(&mut self, channel: u64, answer: Vec<u8>) {
        if self.answers.len() >= ANSWERS_MAX && !self.answers.contains_key(&channel) {
            // Of hosts that did not come back for them.
            self.answers.pop_first();
        }
        self.answers.insert(channel, answer);
    }

    fn answer(&mut self, channel: u64, length: usize) -> Vec<u8> {
        let waiting = self.answers.get(&channel).map_or(0, Vec::len);
        if waiting > length {
            let mut bytes = packet::write_empty(COM_ID, (waiting, waiting));
            bytes.truncate(length);
            return bytes;
        }
        self.answers.remove(&channel).unwrap_or_else(|| packet::write_empty(COM_ID, (0, 0)))
    }

    /// Requests of the ComID: whether it is valid, and a reset of its stack (TCG Core 2.01,
    /// 3.3.4.7).
    fn com_id_request(&mut self, channel: u64, data: &[u8]) -> Result<(), SecurityError> {
        let com_id = data.get(..2).map(|it| u16::from_be_bytes([it[0], it[1]]));
        let code = packet::u32_at(data, 4).filter(|_| com_id == Some(COM_ID));
        let code = code.ok_or(SecurityError::Protocol)?;
        if code == 2 {
            self.end_channel(channel);
        }
        if self.requests.len() >= ANSWERS_MAX {
            self.requests.pop_first();
        }
        self.requests.insert(channel, code);
        Ok(())
    }

    fn com_id_answer(&mut self, channel: u64) -> Vec<u8> {
        let mut bytes = COM_ID.to_be_bytes().to_vec();
        bytes.extend([0; 2]);
        let code = self.requests.remove(&channel).unwrap_or(0);
        bytes.extend(code.to_be_bytes());
        match code {
            // Issued, or associated with a session; times that are not known.
            1 => {
                bytes.extend([0, 0, 0, 34, 0, 0, 0, 2 + u8::from(self.session.is_some())]);
                bytes.extend([0; 30]);
            }
            // The stack is reset.
            2 => bytes.extend([0, 0, 0, 4, 0, 0, 0, 0]),
            _ => bytes.extend([0; 4]),
        }
        bytes
    }

    /// Blocks the owner's authority until the next power cycle (TCG Feature Set: Block SID
    /// Authentication 1.01).
    fn block_sid(&mut self) -> Result<(), SecurityError> {
        if self.is_sid_blocked || self.state.is_owned() {
            return Err(SecurityError::State);
        }
        self.is_sid_blocked = true;
        Ok(())
    }

    /// Carries out a message. Returns its answer.
    fn message(
        &mut self,
        channel: u64,
        data: &[u8],
        now: Nanos,
        backing: &mut dyn Backing,
    ) -> Vec<u8> {
        if self.session.as_ref().is_some_and(|it| now.saturating_sub(it.used_at) > IDLE) {
            self.session = None;
        }
        let empty = packet::write_empty(COM_ID, (0, 0));
        let Some(message) = packet::read(data).filter(|it| it.com_id == COM_ID) else {
            return empty;
        };
        let numbers = message.session;
        // What answers the manager's methods is of no session, whatever the header says: clients
        // leave that of their last session there.
        let payload = if is_of_manager(message.payload) {
            self.manage(channel, message.payload, now, backing)
        } else {
            let own = |it: &Session| it.channel == channel && it.numbers == numbers;
            if !self.session.as_ref().is_some_and(own) {
                return empty;
            }
            self.in_session(message.payload, backing)
        };
        let Some(payload) = payload else { return empty };
        let limit = if self.host.0 == channel { self.host.1 } else { HOST_PACKET_BYTES };
        let is_managed = is_of_manager(&payload);
        let session = if is_managed { SessionNumbers::default() } else { numbers };
        if payload.len() + HEADER_BYTES > limit && !is_managed {
            let payload = ended(Err(MethodStatus::ResponseOverflow));
            return packet::write(&Message { com_id: COM_ID, session, payload: &payload });
        }
        packet::write(&Message { com_id: COM_ID, session, payload: &payload })
    }

    /// Carries out a message of a session. Returns its answer; none if the session is aborted.
    fn in_session(&mut self, payload: &[u8], backing: &mut dyn Backing) -> Option<Vec<u8>> {
        let mut tokens = Tokens::new(payload);
        match tokens.token() {
            Ok(Some(Token::Control(Control::EndOfSession))) => {
                // Linux has a status follow.
                self.session = None;
                Some(vec![Control::EndOfSession as u8])
            }
            Ok(Some(Token::Control(Control::Call))) => {
                let Some(call) = Call::read(tokens) else {
                    self.session = None;
                    return None;
                };
                Some(ended(self.call(&call, backing)))
            }
            _ => {
                self.session = None;
                None
            }
        }
    }

    /// Carries out a method of the session manager (TCG Core 2.01, 5.2).
    fn manage(
        &mut self,
        channel: u64,
        payload: &[u8],
        now: Nanos,
        backing: &mut dyn Backing,
    ) -> Option<Vec<u8>> {
        let mut tokens = Tokens::new(payload);
        let _call = tokens.token();
        let call = Call::read(tokens)?;
        match Method::of(call.method)? {
            Method::Properties => Some(match self.properties(channel, &call.parameters) {
                Ok(results) => called(Method::Properties, results, None),
                Err(status) => called(Method::Properties, Vec::new(), Some(status)),
            }),
            Method::StartSession => {
                let host = call.parameters.first().and_then(Value::unsigned).unwrap_or(0);
                let refused = SessionNumbers { tper: 0, host: u32::try_from(host).unwrap_or(0) };
                let begun = self.start_session((channel, now), &call.parameters, backing);
                let (numbers, status) = match begun {
                    Ok(numbers) => (numbers, None),
                    Err(status) => (refused, Some(status)),
                };
                let results = vec![u64::from(numbers.host).into(), u64::from(numbers.tper).into()];
                Some(called(Method::SyncSession, results, status))
            }
            _ => None,
        }
    }

    /// Exchange of properties (TCG Core 2.01, 5.2.2): those of the drive, and what the host said.
    fn properties(&mut self, channel: u64, parameters: &[Value]) -> Outcome {
        let mut said = Vec::new();
        for parameter in parameters {
            let Value::Named(named) = parameter else {
                return Err(MethodStatus::InvalidParameter);
            };
            if named.0 != Value::Unsigned(0) {
                return Err(MethodStatus::InvalidParameter);
            }
            said = named.1.list().ok_or(MethodStatus::InvalidParameter)?.to_vec();
        }
        let packet = said.iter().find_map(|it| match it {
            Value::Named(it) if it.0 == "MaxComPacketSize".into() => it.1.unsigned(),
            _ => None,
        });
        let packet = packet.and_then(|it| usize::try_from(it).ok()).unwrap_or(HOST_PACKET_BYTES);
        self.host = (channel, packet.clamp(HOST_PACKET_BYTES, 1 << 16));
        let own: Vec<Value> = PROPERTIES.iter().map(|it| Value::named(it.0, it.1)).collect();
        let mut results = vec![Value::List(own)];
        if !parameters.is_empty() {
            results.push(Value::named(0, said));
        }
        Ok(results)
    }

    /// Begin of a session (TCG Core 2.01, 5.2.3.1).
    fn start_session(
        &mut self,
        (channel, now): (u64, Nanos),
        parameters: &[Value],
        backing: &mut dyn Backing,
    ) -> Result<SessionNumbers, MethodStatus> {
        const INVALID: MethodStatus = MethodStatus::InvalidParameter;
        let [host, sp, is_write, named @ ..] = parameters else { return Err(INVALID) };
        let host = host.unsigned().and_then(|it| u32::try_from(it).ok()).ok_or(INVALID)?;
        let sp = ObjectId::try_from(sp).map_err(|()| INVALID)?;
        let is_write = match is_write.unsigned() {
            Some(flag @ 0..=1) => flag == 1,
            _ => return Err(INVALID),
        };
        let (mut proof, mut authority): (&[u8], _) = (&[], ObjectId::PUBLIC);
        for parameter in named {
            let Value::Named(named) = parameter else { return Err(INVALID) };
            match (named.0.unsigned(), &named.1) {
                (Some(0), value) => proof = value.bytes().ok_or(INVALID)?,
                (Some(3), value) => authority = ObjectId::try_from(value).map_err(|()| INVALID)?,
                // Timeouts of sessions: the drive's own holds.
                (Some(5), Value::Unsigned(_)) => {}
                _ => return Err(INVALID),
            }
        }
        let is_known =
            sp == ObjectId::ADMIN_SP || sp == ObjectId::LOCKING_SP && self.state.locking.is_some();
        if !is_known {
            return Err(INVALID);
        }
        if let Some(open) = &self.session {
            let is_busy = open.sp == sp && open.is_write;
            return Err(if is_busy {
                MethodStatus::SpBusy
            } else {
                MethodStatus::NoSessionsAvailable
            });
        }
        if authority != ObjectId::PUBLIC && !self.authenticate(sp, authority, proof, backing)? {
            return Err(MethodStatus::NotAuthorized);
        }
        self.begun = self.begun.wrapping_add(1);
        let numbers = SessionNumbers { tper: 0x1000_u32.wrapping_add(self.begun).max(1), host };
        let authorities = vec![authority];
        let used_at = now;
        self.session = Some(Session { channel, numbers, sp, is_write, authorities, used_at });
        Ok(numbers)
    }

    /// Authenticates an authority by its PIN. Returns whether it is the right one; a wrong one is
    /// counted, and the count stored, before the host hears of it.
    pub(crate) fn authenticate(
        &mut self,
        sp: ObjectId,
        authority: ObjectId,
        proof: &[u8],
        backing: &mut dyn Backing,
    ) -> Result<bool, MethodStatus> {
        if !authorities(sp).any(|it| it == authority) {
            return Err(MethodStatus::InvalidParameter);
        }
        if !self.is_enabled(authority) || authority == ObjectId::SID && self.is_sid_blocked {
            return Ok(false);
        }
        let tries = self.state.credential(authority).map_or(0, |it| it.tries);
        if tries >= TRY_LIMIT {
            return Err(MethodStatus::AuthorityLockedOut);
        }
        let is_right = self.state.is_pin(authority, proof);
        let now = if is_right { 0 } else { tries + 1 };
        let mut next = self.state.clone();
        match next.credential_mut(authority) {
            Some(credential) if credential.tries != now => credential.tries = now,
            _ => return Ok(is_right),
        }
        let kept = backing.keep(&next);
        // A failed try counts even where it cannot be stored.
        if kept.is_ok() || !is_right {
            self.state = next;
        }
        kept.map(|()| is_right).map_err(|_| MethodStatus::TperMalfunction)
    }

    /// True if an authority may authenticate.
    pub(crate) fn is_enabled(&self, authority: ObjectId) -> bool {
        match authority {
            ObjectId::PUBLIC
            | ObjectId::ADMIN_CLASS
            | ObjectId::USER_CLASS
            | ObjectId::SID
            | ObjectId::PSID => true,
            _ => self.state.locking.as_ref().is_some_and(|it| it.enabled.contains(&authority)),
        }
    }
}

/// Authorities of an SP that have a PIN (Opal SSC 2.02, 4.2.1.7 and 4.3.1.9).
pub(crate) fn authorities(sp: ObjectId) -> impl Iterator<Item = ObjectId> {
    let of_admin = [ObjectId::SID, ObjectId::PSID];
    let of_locking = (1..=ADMINS).map(ObjectId::admin).chain((1..=USERS).map(ObjectId::user));
    let (admin, locking) = (sp == ObjectId::ADMIN_SP, sp == ObjectId::LOCKING_SP);
    let of_admin = of_admin.into_iter().filter(move |_| admin);
    of_admin.chain(of_locking.filter(move |_| locking))
}

/// Properties of the drive (TCG Core 2.01, 5.2.2.1; Opal SSC 2.02, 4.1.1.1).
const PROPERTIES: [(&str, u64); 13] = [
    ("MaxMethods", 1),
    ("MaxSubpackets", 1),
    ("MaxPackets", 1),
    ("MaxPacketSize", COM_PACKET_BYTES_MAX - 20),
    ("MaxComPacketSize", COM_PACKET_BYTES_MAX),
    ("MaxResponseComPacketSize", COM_PACKET_BYTES_MAX),
    ("MaxSessions", 1),
    ("MaxReadSessions", 0),
    ("MaxIndTokenSize", COM_PACKET_BYTES_MAX - HEADER_BYTES as u64),
    ("MaxAggTokenSize", COM_PACKET_BYTES_MAX - HEADER_BYTES as u64),
    ("MaxAuthentications", 14),
    ("MaxTransactionLimit", 0),
    ("DefSessionTimeout", IDLE_MS),
];

/// Call of a method (TCG Core 2.01, 3.2.4.1).
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) invoking: ObjectId,
    pub(crate) method: ObjectId,
    pub(crate) parameters: Vec<Value>,
}

impl Call {
    /// Reads what follows the token of a call; none unless all of it is there.
    fn read(mut tokens: Tokens<'_>) -> Option<Self> {
        let invoking = ObjectId::try_from(&tokens.value().ok()?).ok()?;
        let method = ObjectId::try_from(&tokens.value().ok()?).ok()?;
        let Value::List(parameters) = tokens.value().ok()? else { return None };
        let end = tokens.token().ok()?;
        if end != Some(Token::Control(Control::EndOfData)) {
            return None;
        }
        // Another status than success: the host gave the call up.
        let status = tokens.value().ok()?;
        let is_given = status.list()?.first()?.unsigned() == Some(0);
        is_given.then_some(Self { invoking, method, parameters })
    }
}

/// True if tokens call a method of the session manager.
fn is_of_manager(payload: &[u8]) -> bool {
    let mut tokens = Tokens::new(payload);
    let is_call = tokens.token() == Ok(Some(Token::Control(Control::Call)));
    is_call && tokens.value().is_ok_and(|it| it == ObjectId::SESSION_MANAGER.into())
}

/// The answer to a method of a session: results, and the status list.
fn ended(outcome: Outcome) -> Vec<u8> {
    let (results, status) = match outcome {
        Ok(results) => (results, 0),
        Err(status) => (Vec::new(), status as u64),
    };
    let mut out = Vec::new();
    Value::List(results).encode(&mut out);
    out.push(Control::EndOfData as u8);
    Value::List(vec![status.into(), 0.into(), 0.into()]).encode(&mut out);
    out
}

/// The answer to a method of the session manager, which is a call itself.
fn called(method: Method, results: Vec<Value>, status: Option<MethodStatus>) -> Vec<u8> {
    let mut out = vec![Control::Call as u8];
    Value::from(ObjectId::SESSION_MANAGER).encode(&mut out);
    Value::from(method.uid()).encode(&mut out);
    Value::List(results).encode(&mut out);
    out.push(Control::EndOfData as u8);
    let status = status.map_or(0, |it| it as u64);
    Value::List(vec![status.into(), 0.into(), 0.into()]).encode(&mut out);
    out
}
