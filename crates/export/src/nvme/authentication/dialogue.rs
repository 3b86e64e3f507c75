//! Dialogue of one queue: messages of the host in, messages of the subsystem out. A value, but for
//! the random numbers that the system gives.

use rustix::rand::{GetRandomFlags, getrandom};

use super::super::wire::{Structure, low16, u16_at, u32_at};
use super::group::{Exponent, Group};
use super::hash::Hash;
use super::{HostSecrets, Secrets};

/// Longest message that a host sends.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4096;
/// Bytes of a message before its variable part.
const HEAD_BYTES: usize = 16;
/// Bytes of a Negotiate with one protocol.
const NEGOTIATE_BYTES: usize = 72;

/// Types and identifiers of messages.
const COMMON: u8 = 0;
const DHCHAP: u8 = 1;
const NEGOTIATE: u8 = 0x00;
const CHALLENGE: u8 = 0x01;
const REPLY: u8 = 0x02;
const SUCCESS1: u8 = 0x03;
const SUCCESS2: u8 = 0x04;
const FAILURE2: u8 = 0xF0;
const FAILURE1: u8 = 0xF1;

/// Reason of a failure, as the protocol numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Failed = 1,
    Protocol = 2,
    Concatenation = 3,
    Hash = 4,
    Group = 5,
    Payload = 6,
    Message = 7,
}

/// Progress of a dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Messages are still to come.
    Open,
    /// The host is authenticated.
    Authenticated,
    /// The connection is to end.
    Failed,
}

/// State of the dialogue.
enum Step {
    AwaitsNegotiate,
    /// A Challenge is to be fetched, then a Reply has to come.
    Challenged(Challenge),
    /// A Success1 is to be fetched; with a response, a Success2 has to come.
    Replied {
        hash: Hash,
        response: Option<Vec<u8>>,
    },
    AwaitsSuccess2,
    Authenticated,
    /// A Failure1 is to be fetched.
    Refused(Failure),
    Over,
}

/// Challenge that a host has to answer.
struct Challenge {
    hash: Hash,
    exponent: Option<Exponent>,
    value: Vec<u8>,
    sequence: u32,
}

/// Dialogue of one queue with its host.
pub(crate) struct Dialogue {
    secrets: HostSecrets,
    host: String,
    subsystem: String,
    transaction: u16,
    step: Step,
}

impl Dialogue {
    /// A dialogue with a host that has not begun; none where the host has no secret.
    pub(crate) fn new(secrets: &Secrets, host: &str, subsystem: &str) -> Option<Self> {
        let secrets = secrets.of(host)?.clone();
        let (host, subsystem) = (host.to_owned(), subsystem.to_owned());
        Some(Self { secrets, host, subsystem, transaction: 0, step: Step::AwaitsNegotiate })
    }

    pub(crate) const fn progress(&self) -> Progress {
        match self.step {
            Step::Authenticated => Progress::Authenticated,
            Step::Over => Progress::Failed,
            _ => Progress::Open,
        }
    }

    /// Takes a message of the host.
    pub(crate) fn take(&mut self, message: &[u8]) {
        self.step = match self.next(message) {
            Ok(step) => step,
            Err(failure) => Step::Refused(failure),
        };
    }

    fn next(&mut self, message: &[u8]) -> Result<Step, Failure> {
        if message.len() < 8 {
            return Err(Failure::Payload);
        }
        let (kind, id) = (message[0], message[1]);
        if (kind, id) == (COMMON, NEGOTIATE) {
            // A host may begin anew at any time, after it was authenticated too.
            self.transaction = u16_at(message, 4);
            return negotiate(message).map(Step::Challenged);
        }
        if u16_at(message, 4) != self.transaction {
            return Err(Failure::Payload);
        }
        let step = std::mem::replace(&mut self.step, Step::Over);
        match (kind, id, step) {
            (DHCHAP, REPLY, Step::Challenged(challenge)) => self.reply(&challenge, message),
            (DHCHAP, SUCCESS2, Step::AwaitsSuccess2) => Ok(Step::Authenticated),
            (COMMON, FAILURE2, _) => Ok(Step::Over),
            _ => Err(Failure::Message),
        }
    }

    /// Checks a Reply.
    fn reply(&self, challenge: &Challenge, message: &[u8]) -> Result<Step, Failure> {
        if message.len() < HEAD_BYTES {
            return Err(Failure::Payload);
        }
        let hash = challenge.hash;
        let (length, public_bytes) = (usize::from(message[6]), usize::from(u16_at(message, 10)));
        let rest = &message[HEAD_BYTES..];
        if length != hash.bytes() || rest.len() < 2 * length + public_bytes {
            return Err(Failure::Payload);
        }
        let (response, rest) = rest.split_at(length);
        let (asked, rest) = rest.split_at(length);
        let shared = match &challenge.exponent {
            None if public_bytes == 0 => None,
            None => return Err(Failure::Payload),
            Some(exponent) => Some(exponent.shared(&rest[..public_bytes]).ok_or(Failure::Group)?),
        };
        let key = self.secrets.host.key_of(&self.host);
        let value = augmented(hash, shared.as_deref(), &challenge.value);
        let sequence = challenge.sequence.to_le_bytes();
        let transaction = self.transaction.to_le_bytes();
        let parts = |value, sequence, role, own, other| -> [&[u8]; 8] {
            [value, sequence, &transaction, &[0], role, own, &[0], other]
        };
        let (host, subsystem) = (self.host.as_bytes(), self.subsystem.as_bytes());
        let of_host = parts(&value, &sequence, b"HostHost", host, subsystem);
        if !hash.is_mac(response, &key, &of_host) {
            return Err(Failure::Failed);
        }
        // CVALID: the host authenticates the subsystem too.
        if message[8] == 0 {
            return Ok(Step::Replied { hash, response: None });
        }
        let secret = self.secrets.subsystem.as_ref().ok_or(Failure::Failed)?;
        let value = augmented(hash, shared.as_deref(), asked);
        let sequence = u32_at(message, 12).to_le_bytes();
        let own = parts(&value, &sequence, b"Controller", subsystem, host);
        let response = hash.mac(&secret.key_of(&self.subsystem), &own);
        Ok(Step::Replied { hash, response: Some(response) })
    }

    /// The message that the host fetches now; none where it is the host's turn.
    pub(crate) fn answer(&mut self) -> Option<Vec<u8>> {
        match &self.step {
            Step::Challenged(challenge) => Some(self.challenge(challenge)),
            Step::Replied { hash, response } => {
                let mut it = self.message((DHCHAP, SUCCESS1), hash.bytes());
                it.put_u8(6, u8::try_from(hash.bytes()).expect("at most 64"));
                if let Some(response) = response {
                    it.put_u8(8, 1);
                    it.put(HEAD_BYTES, response);
                }
                let is_mutual = response.is_some();
                self.step = if is_mutual { Step::AwaitsSuccess2 } else { Step::Authenticated };
                Some(it.into_bytes())
            }
            Step::Refused(failure) => {
                let failure = *failure;
                self.step = Step::Over;
                let mut it = self.message((COMMON, FAILURE1), 0);
                it.put_u8(6, 1);
                it.put_u8(7, failure as u8);
                Some(it.into_bytes())
            }
            Step::AwaitsNegotiate | Step::AwaitsSuccess2 | Step::Authenticated | Step::Over => None,
        }
    }

    fn challenge(&self, challenge: &Challenge) -> Vec<u8> {
        let public = challenge.exponent.as_ref().map(Exponent::public).unwrap_or_default();
        let hash_bytes = challenge.hash.bytes();
        let mut it = self.message((DHCHAP, CHALLENGE), hash_bytes + public.len());
        it.put_u8(6, u8::try_from(hash_bytes).expect("at most 64"));
        it.put_u8(8, challenge.hash as u8);
        it.put_u8(9, challenge.exponent.as_ref().map_or(0, |it| it.group() as u8));
        it.put_u16(10, u16::try_from(public.len()).expect("at most 512"));
        it.put_u32(12, challenge.sequence);
        it.put(HEAD_BYTES, &challenge.value);
        it.put(HEAD_BYTES + hash_bytes, &public);
        it.into_bytes()
    }

    fn message(&self, (kind, id): (u8, u8), more_bytes: usize) -> Structure {
        let mut it = Structure::new(HEAD_BYTES + more_bytes);
        it.put_u8(0, kind);
        it.put_u8(1, id);
        it.put_u16(4, self.transaction);
        it
    }
}

/// The challenge for a host's Negotiate: with the first hash and the first group of its lists that
/// are supported.
fn negotiate(message: &[u8]) -> Result<Challenge, Failure> {
    if message.len() < NEGOTIATE_BYTES {
        return Err(Failure::Payload);
    }
    // SC_C: no secure channel concatenation. One protocol, DH-HMAC-CHAP.
    if message[6] != 0 {
        return Err(Failure::Concatenation);
    }
    let protocol = &message[8..NEGOTIATE_BYTES];
    if message[7] != 1 || protocol[0] != DHCHAP {
        return Err(Failure::Protocol);
    }
    let (hashes, groups) = (usize::from(protocol[2]), usize::from(protocol[3]));
    if hashes > 30 || groups > 30 {
        return Err(Failure::Payload);
    }
    let hash = protocol[4..4 + hashes].iter().find_map(|id| Hash::of(*id)).ok_or(Failure::Hash)?;
    let known = |id: &&u8| **id == 0 || Group::of(**id).is_some();
    let group = protocol[34..34 + groups].iter().find(known).ok_or(Failure::Group)?;
    let exponent = match Group::of(*group) {
        None => None,
        Some(group) => {
            let mut random = [0; Exponent::BYTES];
            fill(&mut random)?;
            Some(Exponent::new(group, &random))
        }
    };
    let mut value = vec![0; hash.bytes()];
    fill(&mut value)?;
    let mut sequence = [0; 4];
    fill(&mut sequence)?;
    // 0 would mean that there is none.
    Ok(Challenge { hash, exponent, value, sequence: u32::from_le_bytes(sequence).max(1) })
}

/// The augmented challenge: with a group, its HMAC under the hash of the shared secret.
fn augmented(hash: Hash, shared: Option<&[u8]>, value: &[u8]) -> Vec<u8> {
    match shared {
        None => value.to_vec(),
        Some(shared) => hash.mac(&hash.digest(shared), &[value]),
    }
}

fn fill(bytes: &mut [u8]) -> Result<(), Failure> {
    // The system returns so few bytes in one piece or fails.
    match getrandom(&mut *bytes, GetRandomFlags::empty()) {
        Ok(filled) if filled == bytes.len() => Ok(()),
        _ => Err(Failure::Failed),
    }
}

/// Bytes of the message of an Authentication Send or Receive with this command dword 11.
pub(crate) fn message_bytes(dword: u32) -> usize {
    usize::from(low16(dword.min(0xFFFF))).min(MESSAGE_BYTES_MAX)
}
