//! Messages as sedutil-cli and Linux (block/sed-opal.c) send them, and what they look for in the
//! answers.

#![allow(clippy::unwrap_used, reason = "test code")]
#![allow(clippy::cast_possible_truncation, reason = "messages are cut into bytes as in C")]

use std::collections::BTreeMap;

use blockio::Nanos;
use opal::{
    Backing, ByteTable, COM_ID, Channel, Erasure, Failure, Geometry, OpalState, PinCost, Place,
    Tper,
};

const GEOMETRY: Geometry =
    Geometry { block_bytes: 512, blocks: 1 << 16, granularity_blocks: 8, is_encrypted: false };
const CHEAP: PinCost = PinCost { memory_kib: 8, passes: 1 };

/// Services of the drive's owner, and requests for them.
#[derive(Default)]
struct Memory {
    kept: Option<OpalState>,
    erased: Vec<Erasure>,
    tables: BTreeMap<(bool, u64), u8>,
    random: u8,
    fails: bool,
}

fn key(place: Place, index: usize) -> (bool, u64) {
    (place.table == ByteTable::Mbr, place.offset + index as u64)
}

impl Backing for Memory {
    fn keep(&mut self, state: &OpalState) -> Result<(), Failure> {
        if self.fails {
            return Err("full".to_owned());
        }
        // As it would be read again.
        self.kept = Some(OpalState::from_bytes(&state.to_bytes()).unwrap());
        Ok(())
    }

    fn erase(&mut self, erasure: &Erasure) -> Result<(), Failure> {
        self.erased.push(erasure.clone());
        Ok(())
    }

    fn read(&mut self, place: Place, buffer: &mut [u8]) -> Result<(), Failure> {
        for (index, byte) in buffer.iter_mut().enumerate() {
            *byte = self.tables.get(&key(place, index)).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn write(&mut self, place: Place, bytes: &[u8]) -> Result<(), Failure> {
        for (index, byte) in bytes.iter().enumerate() {
            self.tables.insert(key(place, index), *byte);
        }
        Ok(())
    }

    fn clear(&mut self, table: ByteTable) -> Result<(), Failure> {
        self.tables.retain(|(is_mbr, _), _| *is_mbr != (table == ByteTable::Mbr));
        Ok(())
    }

    fn random(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        self.random = self.random.wrapping_add(1);
        buffer.fill(self.random);
        Ok(())
    }
}

/// A drive, and the host on a channel of it.
struct Bench {
    tper: Tper,
    memory: Memory,
    channel: u64,
    now: Nanos,
    /// Numbers of the session: the drive's and the host's.
    session: (u32, u32),
    /// All messages that were sent.
    sent: Vec<Vec<u8>>,
}

/// An answer, as sedutil cuts it into tokens.
#[derive(Debug)]
struct Answer {
    tokens: Vec<Vec<u8>>,
}

impl Answer {
    /// Tokens of a frame, as `DtaResponse::init` does.
    fn of(frame: &[u8]) -> Option<Self> {
        let length = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap()) as usize;
        if frame.len() < 56 || length(16) == 0 {
            return None;
        }
        assert_eq!((length(16), length(40)), (frame.len() - 20, frame.len() - 44));
        let mut rest = &frame[56..56 + length(52)];
        let mut tokens = Vec::new();
        while let Some(first) = rest.first() {
            let bytes = match first {
                0x80..=0xBF => usize::from(first & 0xF) + 1,
                0xC0..=0xDF => (usize::from(first & 7) << 8 | usize::from(rest[1])) + 2,
                0xE0..=0xEF => {
                    (usize::from(rest[1]) << 16 | usize::from(rest[2]) << 8 | usize::from(rest[3]))
                        + 4
                }
                _ => 1,
            };
            tokens.push(rest[..bytes].to_vec());
            rest = &rest[bytes..];
        }
        Some(Self { tokens })
    }

    /// The status that `DtaSession::sendCommand` and `response_status` look for.
    fn status(&self) -> u8 {
        if self.tokens[0] == [0xFA] {
            return 0;
        }
        let count = self.tokens.len();
        assert_eq!(self.tokens[count - 1], [0xF1]);
        assert_eq!(self.tokens[count - 5], [0xF0]);
        u8::try_from(self.number(count - 4)).unwrap()
    }

    fn number(&self, token: usize) -> u64 {
        let bytes = &self.tokens[token];
        match bytes[0] {
            0..=0x3F => bytes[0].into(),
            _ => bytes[1..].iter().fold(0, |all, it| all << 8 | u64::from(*it)),
        }
    }

    fn bytes(&self, token: usize) -> &[u8] {
        let bytes = &self.tokens[token];
        match bytes[0] {
            0xA0..=0xAF => &bytes[1..],
            0xD0..=0xDF => &bytes[2..],
            _ => &bytes[4..],
        }
    }
}

fn unsigned(number: u64) -> Vec<u8> {
    if number < 64 {
        return vec![number as u8];
    }
    // As sedutil does: 1, 2, 4 or 8 bytes.
    let length = [1, 2, 4, 8].into_iter().find(|it| *it == 8 || number >> (8 * it) == 0).unwrap();
    let mut bytes = vec![0x80 | length as u8];
    bytes.extend(&number.to_be_bytes()[8 - length..]);
    bytes
}

fn bytes(data: &[u8]) -> Vec<u8> {
    let mut out = match data.len() {
        length @ 0..16 => vec![0xA0 | length as u8],
        length @ 16..2048 => vec![0xD0 | (length >> 8) as u8, length as u8],
        length => vec![0xE2, (length >> 16) as u8, (length >> 8) as u8, length as u8],
    };
    out.extend(data);
    out
}

fn uid(uid: u64) -> Vec<u8> {
    bytes(&uid.to_be_bytes())
}

fn named(name: Vec<u8>, value: Vec<u8>) -> Vec<u8> {
    [vec![0xF2], name, value, vec![0xF3]].concat()
}

fn list(values: &[Vec<u8>]) -> Vec<u8> {
    [vec![0xF0], values.concat(), vec![0xF1]].concat()
}

const SM: u64 = 0xFF;
const THIS_SP: u64 = 1;
const ADMIN_SP: u64 = 0x0000_0205_0000_0001;
const LOCKING_SP: u64 = 0x0000_0205_0000_0002;
const SID: u64 = 0x0000_0009_0000_0006;
const PSID: u64 = 0x0000_0009_0001_FF01;
const ADMIN1: u64 = 0x0000_0009_0001_0001;
const USER1: u64 = 0x0000_0009_0003_0001;
const PIN_MSID: u64 = 0x0000_000B_0000_8402;
const PIN_SID: u64 = 0x0000_000B_0000_0001;
const PIN_USER1: u64 = 0x0000_000B_0003_0001;
const GLOBAL: u64 = 0x0000_0802_0000_0001;
const RANGE1: u64 = 0x0000_0802_0003_0001;
const MBR_CONTROL: u64 = 0x0000_0803_0000_0001;
const MBR: u64 = 0x0000_0804_0000_0000;
const DATA_STORE: u64 = 0x0000_1001_0000_0000;
const READ_ACE1: u64 = 0x0000_0008_0003_E001;
const WRITE_ACE1: u64 = 0x0000_0008_0003_E801;
const GET_ACE1: u64 = 0x0000_0008_0003_D001;

const PROPERTIES: u64 = 0xFF01;
const START: u64 = 0xFF02;
const REVERT: u64 = 0x0006_0000_0202;
const ACTIVATE: u64 = 0x0006_0000_0203;
const GENKEY: u64 = 0x0006_0000_0010;
const REVERT_SP: u64 = 0x0006_0000_0011;
const GET: u64 = 0x0006_0000_0016;
const SET: u64 = 0x0006_0000_0017;
const AUTHENTICATE: u64 = 0x0006_0000_001C;
const RANDOM: u64 = 0x0006_0000_0601;

impl Bench {
    fn new() -> Self {
        let random = std::array::from_fn(|index| index as u8);
        Self::with(OpalState::new(&random, CHEAP), Memory::default())
    }

    fn with(state: OpalState, memory: Memory) -> Self {
        let tper = Tper::power_on(state, GEOMETRY);
        let (now, session) = (Nanos::from_secs(1), (0, 0));
        Self { tper, memory, channel: 1, now, session, sent: Vec::new() }
    }

    /// The drive after its server died: what was stored last, and nothing else.
    fn power_cycled(mut self) -> Self {
        let state = self.memory.kept.take().unwrap_or_else(|| self.tper.state().clone());
        let sent = std::mem::take(&mut self.sent);
        Self { sent, ..Self::with(state, self.memory) }
    }

    fn channel(&self) -> Channel {
        Channel { id: self.channel, protocol: 1, specific: COM_ID }
    }

    fn exchange(&mut self, payload: &[u8]) -> Option<Answer> {
        let mut frame = vec![0; 56];
        frame[4..6].copy_from_slice(&COM_ID.to_be_bytes());
        frame[20..24].copy_from_slice(&self.session.0.to_be_bytes());
        frame[24..28].copy_from_slice(&self.session.1.to_be_bytes());
        frame[52..56].copy_from_slice(&(payload.len() as u32).to_be_bytes());
        frame.extend(payload);
        while !frame.len().is_multiple_of(4) {
            frame.push(0);
        }
        let length = frame.len() as u32;
        frame[16..20].copy_from_slice(&(length - 20).to_be_bytes());
        frame[40..44].copy_from_slice(&(length - 44).to_be_bytes());
        // Clients send whole sectors.
        frame.resize(frame.len().next_multiple_of(512), 0);
        self.sent.push(frame.clone());
        self.tper.send(self.channel(), &frame, self.now, &mut self.memory).unwrap();
        self.tper.touch(self.now);
        Answer::of(&self.tper.receive(self.channel(), 2048).unwrap())
    }

    fn call(&mut self, invoking: u64, method: u64, parameters: &[Vec<u8>]) -> Answer {
        let end = vec![0xF9, 0xF0, 0, 0, 0, 0xF1];
        let payload = [vec![0xF8], uid(invoking), uid(method), list(parameters), end].concat();
        self.exchange(&payload).expect("an answer")
    }

    fn start(&mut self, sp: u64, authority: Option<(u64, &[u8])>) -> u8 {
        self.session = (0, 0);
        let mut parameters = vec![unsigned(105), uid(sp), unsigned(1)];
        if let Some((authority, pin)) = authority {
            parameters.push(named(unsigned(0), bytes(pin)));
            parameters.push(named(unsigned(3), uid(authority)));
        }
        let answer = self.call(SM, START, &parameters);
        if answer.status() == 0 {
            let number = |token| u32::try_from(answer.number(token)).unwrap();
            assert_eq!(number(4), 105);
            self.session = (number(5), number(4));
        }
        answer.status()
    }

    /// As sedutil ends a session, without a status.
    fn end(&mut self) {
        assert_eq!(self.exchange(&[0xFA]).expect("an answer").tokens, [[0xFA]]);
    }

    /// As Linux does, with one.
    fn end_as_linux(&mut self) {
        let answer = self.exchange(&[0xFA, 0xF1, 0xF9, 0xF0, 0, 0, 0, 0xF1]).unwrap();
        assert_eq!(answer.tokens, [[0xFA]]);
    }

    fn get(&mut self, object: u64, first: u64, last: u64) -> Answer {
        let cells = [named(unsigned(3), unsigned(first)), named(unsigned(4), unsigned(last))];
        self.call(object, GET, &[list(&cells)])
    }

    fn set(&mut self, object: u64, columns: &[(u64, Vec<u8>)]) -> u8 {
        let columns: Vec<_> =
            columns.iter().map(|(column, value)| named(unsigned(*column), value.clone())).collect();
        self.call(object, SET, &[named(unsigned(1), list(&columns))]).status()
    }

    /// One command of sedutil: a session, one Set, its end.
    fn set_as(&mut self, who: (u64, &[u8]), object: u64, columns: &[(u64, Vec<u8>)]) -> u8 {
        assert_eq!(self.start(LOCKING_SP, Some(who)), 0);
        let status = self.set(object, columns);
        self.end();
        status
    }

    /// `sedutil-cli --initialSetup`.
    fn initial_setup(&mut self, pin: &[u8]) {
        // getDefaultPassword, setSIDPassword
        assert_eq!(self.start(ADMIN_SP, None), 0);
        let msid = self.get(PIN_MSID, 3, 3).bytes(4).to_vec();
        self.end();
        assert_eq!(self.start(ADMIN_SP, Some((SID, &msid))), 0);
        assert_eq!(self.set(PIN_SID, &[(3, bytes(pin))]), 0);
        self.end();
        // activateLockingSP
        assert_eq!(self.start(ADMIN_SP, Some((SID, pin))), 0);
        let life = self.get(LOCKING_SP, 6, 6);
        assert_eq!((life.number(3), life.number(4)), (6, 8));
        assert_eq!(self.call(LOCKING_SP, ACTIVATE, &[]).status(), 0);
        self.end();
        // configureLockingRange, setLockingRange, setMBRDone, setMBREnable
        let admin = (ADMIN1, pin);
        assert_eq!(self.set_as(admin, GLOBAL, &[(5, unsigned(0)), (6, unsigned(0))]), 0);
        assert_eq!(self.set_as(admin, GLOBAL, &[(7, unsigned(0)), (8, unsigned(0))]), 0);
        assert_eq!(self.set_as(admin, MBR_CONTROL, &[(2, unsigned(1))]), 0);
        assert_eq!(self.set_as(admin, MBR_CONTROL, &[(2, unsigned(1))]), 0);
        assert_eq!(self.set_as(admin, MBR_CONTROL, &[(1, unsigned(1))]), 0);
    }

    /// `sedutil-cli --setupLockingRange` and `--enableLockingRange`.
    fn set_up_range_1(&mut self, pin: &[u8], start: u64, length: u64) -> u8 {
        let mut columns = vec![(3, unsigned(start)), (4, unsigned(length))];
        columns.extend((5..=8).map(|column| (column, unsigned(0))));
        let status = self.set_as((ADMIN1, pin), RANGE1, &columns);
        let enabled = [(5, unsigned(1)), (6, unsigned(1))];
        assert_eq!(self.set_as((ADMIN1, pin), RANGE1, &enabled), 0);
        status
    }

    fn range(&self, number: usize) -> opal::Range {
        self.tper.state().locking.as_ref().unwrap().ranges[number].clone()
    }
}

#[test]
fn sedutil_exchanges_properties_and_finds_its_limits() {
    let mut bench = Bench::new();
    let host = [("MaxComPacketSize", 2048), ("MaxPacketSize", 2028), ("MaxIndTokenSize", 1992)];
    let said: Vec<_> =
        host.iter().map(|(name, value)| named(bytes(name.as_bytes()), unsigned(*value))).collect();
    let answer = bench.call(SM, PROPERTIES, &[named(unsigned(0), list(&said))]);
    assert_eq!(answer.status(), 0);
    let limit = |name: &str| {
        let at = answer.tokens.iter().position(|it| {
            it[1..] == *name.as_bytes() || it[2.min(it.len())..] == *name.as_bytes()
        });
        answer.number(at.unwrap() + 1)
    };
    assert_eq!((limit("MaxComPacketSize"), limit("MaxIndTokenSize")), (65536, 65480));
    // The second list is what the host said.
    let last = answer.tokens.iter().rposition(|it| it[2.min(it.len())..] == *b"MaxComPacketSize");
    assert_eq!(answer.number(last.unwrap() + 1), 2048);
}

#[test]
fn a_session_is_begun_with_these_bytes() {
    let mut bench = Bench::new();
    assert_eq!(bench.start(ADMIN_SP, None), 0);
    let expected: &[u8] = &[
        0xF8, 0xA8, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xA8, 0, 0, 0, 0, 0, 0, 0xFF, 0x02, 0xF0, 0x81,
        0x69, 0xA8, 0, 0, 2, 5, 0, 0, 0, 1, 0x01, 0xF1, 0xF9, 0xF0, 0, 0, 0, 0xF1,
    ];
    assert_eq!(bench.sent[0][56..56 + expected.len()], *expected);
    bench.end();
    bench.session = (0, 0);
    // Session numbers of an answer stand in its list; its packet is of no session.
    let frame = bench.sent[0].clone();
    bench.tper.send(bench.channel(), &frame, bench.now, &mut bench.memory).unwrap();
    let answer = bench.tper.receive(bench.channel(), 2048).unwrap();
    let expected: &[u8] = &[
        0, 0, 0, 0, 0x07, 0xFE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0xF8,
        0xA8, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xA8, 0, 0, 0, 0, 0, 0, 0xFF, 0x03, 0xF0, 0x81, 105, 0x82,
        0x10, 0x02, 0xF1, 0xF9, 0xF0, 0, 0, 0, 0xF1,
    ];
    assert_eq!(answer, expected);
}

#[test]
fn sedutil_sets_up_locks_unlocks_and_reverts() {
    let mut bench = Bench::new();
    bench.initial_setup(b"passw0rd");
    assert_eq!(bench.set_up_range_1(b"passw0rd", 4096, 8192), 0);
    assert_eq!(bench.start(LOCKING_SP, Some((ADMIN1, b"passw0rd"))), 0);
    let key = bench.get(RANGE1, 10, 10).bytes(4).to_vec();
    assert_eq!(key, 0x0000_0806_0003_0001_u64.to_be_bytes());
    let key = u64::from_be_bytes(key.try_into().unwrap());
    assert_eq!(bench.call(key, GENKEY, &[]).status(), 0);
    assert_eq!(bench.memory.erased, [Erasure::Blocks(vec![(4096, 8192)])]);
    // listLockingRanges
    assert_eq!(bench.get(0x0000_0801_0000_0001, 4, 4).number(4), 8);
    let listed = bench.get(RANGE1, 3, 8);
    let numbers: Vec<u64> = [4, 8, 12, 16, 20, 24].map(|it| listed.number(it)).to_vec();
    assert_eq!(numbers, [4096, 8192, 1, 1, 0, 0]);
    bench.end();
    // setLockingRange LK, then the server dies: it is locked all the same.
    let locked = [(7, unsigned(1)), (8, unsigned(1))];
    assert_eq!(bench.set_as((ADMIN1, b"passw0rd"), RANGE1, &locked), 0);
    assert!(bench.range(1).refuses_reads());
    assert_eq!(
        bench.set_as((ADMIN1, b"passw0rd"), RANGE1, &[(7, unsigned(0)), (8, unsigned(0))]),
        0
    );
    assert!(!bench.range(1).refuses_reads());
    let mut bench = bench.power_cycled();
    assert!(bench.range(1).refuses_reads() && bench.range(1).refuses_writes());
    assert!(bench.tper.state().locking.as_ref().unwrap().is_shadowed());
    // revertTper
    assert_eq!(bench.start(ADMIN_SP, Some((SID, b"passw0rd"))), 0);
    assert_eq!(bench.call(ADMIN_SP, REVERT, &[]).status(), 0);
    assert_eq!(bench.memory.erased.last(), Some(&Erasure::Drive));
    assert!(bench.tper.state().locking.is_none() && !bench.tper.state().is_owned());
    // The session is gone, and the drive as new.
    assert_eq!(bench.start(LOCKING_SP, Some((ADMIN1, b"passw0rd"))), 0x0C);
    bench.power_cycled().initial_setup(b"other");
}

#[test]
fn sedutil_reverts_the_locking_sp_and_keeps_the_global_range() {
    let mut bench = Bench::new();
    bench.initial_setup(b"pin");
    bench.set_up_range_1(b"pin", 8, 16);
    assert_eq!(bench.start(LOCKING_SP, Some((ADMIN1, b"pin"))), 0);
    let keep = named(vec![0x83, 6, 0, 0], unsigned(1));
    assert_eq!(bench.call(THIS_SP, REVERT_SP, &[keep]).status(), 0);
    assert_eq!(bench.memory.erased, [Erasure::Blocks(vec![(8, 16)])]);
    assert!(bench.tper.state().locking.is_none() && bench.tper.state().is_owned());
    assert!(bench.exchange(&[0xFA]).is_none(), "the session is gone");
}

#[test]
fn the_psid_reverts_a_drive_whose_pins_are_lost() {
    let mut bench = Bench::new();
    bench.initial_setup(b"lost");
    let psid = bench.tper.state().psid().to_owned();
    assert_eq!(bench.start(ADMIN_SP, Some((PSID, b"wrong"))), 1);
    assert_eq!(bench.start(ADMIN_SP, Some((PSID, psid.as_bytes()))), 0);
    // It may do nothing else.
    assert_eq!(bench.set(PIN_SID, &[(3, bytes(b"mine"))]), 1);
    assert_eq!(bench.call(LOCKING_SP, REVERT, &[]).status(), 1);
    assert_eq!(bench.call(ADMIN_SP, REVERT, &[]).status(), 0);
    assert_eq!(bench.memory.erased, [Erasure::Drive]);
    assert_eq!(bench.tper.state().psid(), psid);
}

#[test]
fn linux_adds_users_to_a_range_and_unlocks_by_them() {
    let mut bench = Bench::new();
    bench.initial_setup(b"admin");
    bench.set_up_range_1(b"admin", 0, 64);
    let admin: (u64, &[u8]) = (ADMIN1, b"admin");
    // opal_activate_user, opal_set_new_pw
    assert_eq!(bench.start(LOCKING_SP, Some((USER1, b""))), 1, "not enabled");
    assert_eq!(bench.set_as(admin, USER1, &[(5, unsigned(1))]), 0);
    assert_eq!(bench.set_as(admin, PIN_USER1, &[(3, bytes(b"user"))]), 0);
    let user: (u64, &[u8]) = (USER1, b"user");
    let open = [(7, unsigned(0)), (8, unsigned(0))];
    assert_eq!(bench.set_as(user, RANGE1, &open), 1, "not yet added");
    // opal_add_user_to_lr
    let term = |uid_| named(bytes(&[0, 0, 0x0C, 5]), uid(uid_));
    let or = || named(bytes(&[0, 0, 4, 0x0E]), unsigned(1));
    let of_linux = list(&[term(USER1), term(USER1), or()]);
    assert_eq!(bench.set_as(admin, READ_ACE1, &[(3, of_linux.clone())]), 0);
    assert_eq!(bench.set_as(user, RANGE1, &open), 1, "for reads alone");
    assert_eq!(bench.set_as(user, RANGE1, &open[..1]), 0);
    assert_eq!(bench.set_as(admin, WRITE_ACE1, &[(3, of_linux)]), 0);
    assert_eq!(bench.set_as(user, RANGE1, &open), 0);
    // As later versions do, so that users find the range.
    let of_linux = list(&[term(ADMIN1), term(USER1), or()]);
    assert_eq!(bench.start(LOCKING_SP, Some(user)), 0);
    assert_eq!(bench.get(RANGE1, 3, 8).status(), 1);
    bench.end_as_linux();
    assert_eq!(bench.set_as(admin, GET_ACE1, &[(3, of_linux)]), 0);
    assert_eq!(bench.start(LOCKING_SP, Some(user)), 0);
    assert_eq!(bench.get(RANGE1, 4, 4).number(4), 64);
    // Nothing else is the user's: not the place of the range, nor others' PINs, nor GenKey.
    assert_eq!(bench.set(RANGE1, &[(3, unsigned(8))]), 1);
    assert_eq!(bench.set(RANGE1, &[(5, unsigned(0))]), 1);
    assert_eq!(bench.set(MBR_CONTROL, &[(2, unsigned(1))]), 1);
    assert_eq!(bench.set(PIN_USER1 + 1, &[(3, bytes(b"x"))]), 1);
    assert_eq!(bench.set(READ_ACE1, &[(3, list(&[term(USER1)]))]), 1);
    assert_eq!(bench.call(0x0000_0806_0003_0001, GENKEY, &[]).status(), 1);
    assert_eq!(bench.call(THIS_SP, REVERT_SP, &[]).status(), 1);
    assert_eq!(bench.set(PIN_USER1, &[(3, bytes(b"own"))]), 0);
    bench.end_as_linux();
    assert_eq!(bench.start(LOCKING_SP, Some((USER1, b"own"))), 0);
    assert!(bench.memory.erased.is_empty());
}

#[test]
fn byte_tables_are_written_and_read_at_their_rows() {
    let mut bench = Bench::new();
    bench.initial_setup(b"pin");
    assert_eq!(bench.start(LOCKING_SP, Some((ADMIN1, b"pin"))), 0);
    // generic_get_table_info of the MBR: its rows.
    assert_eq!(bench.get(0x0000_0001_0000_0804, 7, 7).number(4), 128 << 20);
    let data = vec![0x5A; 1800];
    let write = |at: u64| [named(unsigned(0), unsigned(at)), named(unsigned(1), bytes(&data))];
    for table in [MBR, DATA_STORE] {
        assert_eq!(bench.call(table, SET, &write(4000)).status(), 0);
        let rows = [named(unsigned(1), unsigned(4010)), named(unsigned(2), unsigned(4019))];
        let read = bench.call(table, GET, &[list(&rows)]);
        assert_eq!((read.status(), read.bytes(1)), (0, &[0x5A; 10][..]));
        assert_eq!(bench.call(table, SET, &write(128 << 20)).status(), 0x0A);
        let all = bench.call(table, GET, &[list(&[])]);
        assert_eq!(all.status(), 0x11, "more than the host takes");
    }
    assert_eq!(bench.call(THIS_SP, RANDOM, &[unsigned(32)]).bytes(1).len(), 32);
    assert_eq!(bench.call(THIS_SP, RANDOM, &[unsigned(33)]).status(), 0x0C);
}

#[test]
fn tries_are_counted_across_restarts() {
    let mut bench = Bench::new();
    bench.initial_setup(b"pin");
    for _ in 0..5 {
        assert_eq!(bench.start(LOCKING_SP, Some((ADMIN1, b"guess"))), 1);
    }
    let mut bench = bench.power_cycled();
    for _ in 0..5 {
        assert_eq!(bench.start(LOCKING_SP, Some((ADMIN1, b"guess"))), 1);
    }
    let mut bench = bench.power_cycled();
    assert_eq!(bench.start(LOCKING_SP, Some((ADMIN1, b"pin"))), 0x12);
    assert_eq!(bench.start(LOCKING_SP, Some((ADMIN1, b"guess"))), 0x12);
    // A right one starts anew.
    for round in 0..3 {
        for _ in 0..9 {
            assert_eq!(bench.start(ADMIN_SP, Some((SID, b"guess"))), 1, "{round}");
        }
        assert_eq!(bench.start(ADMIN_SP, Some((SID, b"pin"))), 0);
        let tried =
            bench.call(THIS_SP, AUTHENTICATE, &[uid(PSID), named(unsigned(0), bytes(b"x"))]);
        assert_eq!((tried.status(), tried.number(1)), (0, 0));
        bench.end();
    }
}

#[test]
fn one_session_is_open_at_a_time_and_is_of_its_channel() {
    let mut bench = Bench::new();
    bench.initial_setup(b"pin");
    assert_eq!(bench.start(LOCKING_SP, Some((ADMIN1, b"pin"))), 0);
    let own = bench.session;
    assert_eq!(bench.start(LOCKING_SP, Some((ADMIN1, b"pin"))), 3);
    assert_eq!(bench.start(ADMIN_SP, None), 7);
    // Another host knows its numbers.
    (bench.channel, bench.session) = (2, own);
    assert!(bench.exchange(&[0xFA]).is_none());
    (bench.channel, bench.session) = (1, (own.0, own.1 + 1));
    assert!(bench.exchange(&[0xFA]).is_none());
    bench.session = own;
    bench.now = Nanos::from_secs(30);
    assert_eq!(bench.get(RANGE1, 3, 3).status(), 0);
    // An erasure took its time, which the host did not spend.
    bench.tper.touch(Nanos::from_secs(100));
    bench.now = Nanos::from_secs(129);
    assert_eq!(bench.get(RANGE1, 3, 3).status(), 0);
    // It ends by itself.
    bench.now = Nanos::from_secs(160);
    assert!(bench.exchange(&[0xFA]).is_none());
    assert_eq!(bench.start(ADMIN_SP, None), 0);
    // And with its host.
    bench.tper.end_channel(bench.channel);
    assert!(bench.exchange(&[0xFA]).is_none());
    assert_eq!(bench.start(ADMIN_SP, None), 0);
}

#[test]
fn ranges_keep_to_their_places() {
    let mut bench = Bench::new();
    bench.initial_setup(b"pin");
    assert_eq!(bench.set_up_range_1(b"pin", 64, 64), 0);
    let admin: (u64, &[u8]) = (ADMIN1, b"pin");
    let place = |start, length| [(3, unsigned(start)), (4, unsigned(length))];
    for (start, length, status) in [
        (120, 16, 0x0C),
        (0, 65536, 0x0C),
        (4, 8, 0x0C),
        (0, 12, 0x0C),
        (65528, 16, 0x0C),
        (u64::MAX - 7, 8, 0x0C),
        (0, 64, 0),
        (128, 8, 0),
    ] {
        assert_eq!(bench.set_as(admin, RANGE1 + 1, &place(start, length)), status, "{start}");
    }
    assert_eq!(bench.set_as(admin, GLOBAL, &place(0, 8)), 1);
    // What the others leave.
    assert_eq!(bench.start(LOCKING_SP, Some(admin)), 0);
    assert_eq!(bench.call(0x0000_0806_0000_0001, GENKEY, &[]).status(), 0);
    let left = Erasure::Blocks(vec![(0, 64), (136, 65536 - 136)]);
    assert_eq!(bench.memory.erased, [left]);
}

#[test]
fn what_cannot_be_stored_is_not_in_force() {
    let mut bench = Bench::new();
    bench.initial_setup(b"pin");
    bench.set_up_range_1(b"pin", 0, 8);
    bench.memory.fails = true;
    let locked = [(7, unsigned(1)), (8, unsigned(1))];
    assert_eq!(bench.set_as((ADMIN1, b"pin"), RANGE1, &locked), 0x0F);
    assert!(!bench.range(1).refuses_reads());
    assert_eq!(bench.start(ADMIN_SP, Some((SID, b"pin"))), 0);
    assert_eq!(bench.call(ADMIN_SP, REVERT, &[]).status(), 0x0F);
    assert!(bench.tper.state().is_owned());
}

#[test]
fn the_owners_authority_is_blocked_until_power_on() {
    let mut bench = Bench::new();
    let block = Channel { id: 1, protocol: 2, specific: 5 };
    bench.tper.send(block, &[0; 512], bench.now, &mut bench.memory).unwrap();
    let msid = bench.tper.state().msid().to_owned();
    assert_eq!(bench.start(ADMIN_SP, Some((SID, msid.as_bytes()))), 1);
    assert!(bench.tper.send(block, &[0; 512], bench.now, &mut bench.memory).is_err());
    let mut bench = bench.power_cycled();
    assert_eq!(bench.start(ADMIN_SP, Some((SID, msid.as_bytes()))), 0);
}

#[test]
fn the_stack_of_the_com_id_is_reset() {
    let mut bench = Bench::new();
    assert_eq!(bench.start(ADMIN_SP, None), 0);
    let manage = Channel { id: 1, protocol: 2, specific: COM_ID };
    let request = [0x07, 0xFE, 0, 0, 0, 0, 0, 2];
    bench.tper.send(manage, &request, bench.now, &mut bench.memory).unwrap();
    let answer = bench.tper.receive(manage, 512).unwrap();
    assert_eq!(answer, [0x07, 0xFE, 0, 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0]);
    assert!(bench.exchange(&[0xFA]).is_none(), "the session is gone");
}

#[test]
fn an_answer_waits_until_there_is_room_for_it() {
    let mut bench = Bench::new();
    assert_eq!(bench.start(ADMIN_SP, None), 0);
    let (frame, channel) = (bench.sent[0].clone(), bench.channel());
    bench.tper.send(channel, &frame, bench.now, &mut bench.memory).unwrap();
    let short = bench.tper.receive(channel, 64).unwrap();
    let whole = usize::from(short[11]);
    assert_eq!((short.len(), short[15], short[19]), (20, short[11], 0));
    assert_eq!(bench.tper.receive(channel, 2048).unwrap().len(), whole);
    assert_eq!(bench.tper.receive(channel, 2048).unwrap()[16..20], [0; 4]);
}

/// A drive with a locked range after power-on, and the messages that made it so.
fn locked_bench() -> Bench {
    let mut bench = Bench::new();
    bench.initial_setup(b"pin");
    bench.set_up_range_1(b"pin", 0, 64);
    let locked = [(7, unsigned(1)), (8, unsigned(1))];
    assert_eq!(bench.set_as((ADMIN1, b"pin"), RANGE1, &locked), 0);
    bench.power_cycled()
}

/// Sends a mutation of one of these messages, in the session that is open or not.
fn send_mutation(bench: &mut Bench, messages: &[Vec<u8>], next: &mut impl FnMut() -> u64) {
    let index = usize::try_from(next() % messages.len() as u64).unwrap();
    let mut frame = messages[index].clone();
    for _ in 0..=next() % 4 {
        let at = usize::try_from(next() % 200).unwrap() % frame.len();
        frame[at] = match next() % 3 {
            0 => 0xF0 | (next() & 0xF) as u8,
            1 => frame[at] ^ 1 << (next() % 8),
            _ => next() as u8,
        };
    }
    if next().is_multiple_of(8) {
        frame.truncate(usize::try_from(next() % (frame.len() as u64 + 1)).unwrap());
    }
    if next().is_multiple_of(2) && frame.len() > 28 {
        frame[20..24].copy_from_slice(&bench.session.0.to_be_bytes());
        frame[24..28].copy_from_slice(&bench.session.1.to_be_bytes());
    }
    let protocol = if next().is_multiple_of(16) { (next() % 4) as u8 } else { 1 };
    let channel = Channel { id: 1, protocol, specific: COM_ID };
    let _ = bench.tper.send(channel, &frame, bench.now, &mut bench.memory);
    let _ = bench.tper.receive(channel, usize::try_from(next() % 4096).unwrap());
}

fn generator() -> impl FnMut() -> u64 {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    }
}

#[test]
fn no_message_without_a_pin_changes_a_range() {
    let mut bench = locked_bench();
    let messages: Vec<Vec<u8>> = bench.sent.iter().filter(|it| !holds_pin(it)).cloned().collect();
    let before = bench.tper.state().clone().locking.unwrap();
    let mut next = generator();
    for round in 0..300_000 {
        if round % 64 == 0 {
            bench.now += Nanos::from_secs(60);
            let sp = [ADMIN_SP, LOCKING_SP][usize::try_from(next() % 2).unwrap()];
            let _ = bench.start(sp, None);
        }
        send_mutation(&mut bench, &messages, &mut next);
    }
    let after = bench.tper.state().locking.clone().unwrap();
    assert_eq!((before.ranges, before.mbr), (after.ranges, after.mbr));
    assert!(bench.memory.erased.is_empty());
}

#[test]
fn no_message_of_an_administrator_makes_it_panic_or_store_what_cannot_be_read() {
    let fresh = locked_bench().tper.state().clone();
    let mut bench = locked_bench();
    let (messages, mut next, mut sessions) = (bench.sent.clone(), generator(), 0);
    for round in 0..300_000 {
        if round % 64 == 0 {
            let now = bench.now + Nanos::from_secs(60);
            bench = Bench { now, ..Bench::with(fresh.clone(), Memory::default()) };
            sessions += u32::from(bench.start(LOCKING_SP, Some((ADMIN1, b"pin"))) == 0);
        }
        // Each state that is stored is read again.
        send_mutation(&mut bench, &messages, &mut next);
    }
    assert_eq!(sessions, 300_000_u32.div_ceil(64));
}

/// True if a message has the PIN of the test or the MSID in it.
fn holds_pin(frame: &[u8]) -> bool {
    let has = |wanted: &[u8]| frame.windows(wanted.len()).any(|it| it == wanted);
    has(b"\xA3pin") || has(b"ABCDEFGH")
}
