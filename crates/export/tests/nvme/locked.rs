//! TCG Opal over NVMe/TCP: Security Send and Receive, and what locked ranges answer, also to
//! clients of other protocols.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use device::opal::host::Host as OpalHost;
use device::opal::{ByteTable, OpalState, PinCost, Place};
use device::{DeviceError, Durability, OpalDrive, OpalStore, Operations as _};

use crate::host::{Data, Host, Inner, Order, io, u16_at, u32_at};
use crate::operated::Operated;

const ACCESS_DENIED: u16 = 0x286;
const PIN: &[u8] = b"a pin";
/// Dword 10 of protocol 01h with the ComID of sessions.
const SESSIONS: u32 = 1 << 24 | 0x07FE << 8;
const DISCOVERY: u32 = 1 << 24 | 1 << 8;

/// Memory that outlives the server.
#[derive(Debug, Default)]
pub(crate) struct OpalMemory {
    state: Mutex<Vec<u8>>,
    tables: Mutex<BTreeMap<(bool, u64), u8>>,
}

impl OpalMemory {
    /// Memory of a new drive.
    pub(crate) fn new() -> Arc<Self> {
        let random = std::array::from_fn(|index| u8::try_from(index).unwrap());
        let state = OpalState::new(&random, PinCost { memory_kib: 8, passes: 1 });
        let memory = Self::default();
        memory.keep(&state.to_bytes()).unwrap();
        Arc::new(memory)
    }

    /// The drive as it was stored last.
    pub(crate) fn drive(self: &Arc<Self>) -> OpalDrive {
        let state = OpalState::from_bytes(&self.state.lock().unwrap()).unwrap();
        OpalDrive { state, store: Arc::<Self>::clone(self) }
    }
}

impl OpalStore for OpalMemory {
    fn keep(&self, state: &[u8]) -> Result<(), String> {
        *self.state.lock().unwrap() = state.to_vec();
        Ok(())
    }

    fn read(&self, place: Place, buffer: &mut [u8]) -> Result<(), String> {
        let tables = self.tables.lock().unwrap();
        for (at, byte) in (place.offset..).zip(buffer) {
            *byte = tables.get(&(place.table == ByteTable::Mbr, at)).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn write(&self, place: Place, bytes: &[u8]) -> Result<(), String> {
        let of = place.table == ByteTable::Mbr;
        let written = (place.offset..).zip(bytes).map(|(at, byte)| ((of, at), *byte));
        self.tables.lock().unwrap().extend(written);
        Ok(())
    }

    fn clear(&self, table: ByteTable) -> Result<(), String> {
        let of = table == ByteTable::Mbr;
        self.tables.lock().unwrap().retain(|(is_mbr, _), _| *is_mbr != of);
        Ok(())
    }

    fn random(&self, buffer: &mut [u8]) -> Result<(), String> {
        buffer.fill(7);
        Ok(())
    }
}

fn send(admin: &mut Host<Inner>, dword: u32, data: &[u8]) -> u16 {
    let length = u32::try_from(data.len()).unwrap();
    admin.run(&Order::new(0x81, 0, &[dword, length]).with(Data::Capsule(data))).status
}

fn receive(admin: &mut Host<Inner>, dword: u32, length: u32) -> (u16, Vec<u8>) {
    let done = admin.run(&Order::new(0x82, 0, &[dword, length]).with(Data::In(length)));
    (done.status, done.data)
}

/// A host of Opal on an admin queue.
fn opal(admin: &mut Host<Inner>) -> OpalHost<impl FnMut(Vec<u8>) -> Vec<u8> + '_> {
    OpalHost::new(|message| {
        assert_eq!(send(admin, SESSIONS, &message), 0);
        loop {
            let (status, answer) = receive(admin, SESSIONS, 2048);
            assert_eq!((status, answer.len()), (0, 2048));
            if answer[8..16] != [0, 0, 0, 1, 0, 0, 0, 0] {
                return answer;
            }
        }
    })
}

#[test]
fn only_a_drive_with_opal_claims_and_answers_security_commands() {
    let (mut admin, _) = Operated::new().admin();
    assert_eq!(u16_at(&admin.identify(1, 0).data, 256) & 1, 0);
    assert_eq!(receive(&mut admin, DISCOVERY, 2048).0, 0x01);
    let (mut admin, _) = Operated::with_opal(&OpalMemory::new()).admin();
    assert_eq!(u16_at(&admin.identify(1, 0).data, 256) & 1, 1);
    let (status, listed) = receive(&mut admin, 0, 512);
    assert_eq!((status, &listed[6..11]), (0, &[0, 3, 0, 1, 2][..]));
    let (status, level_0) = receive(&mut admin, DISCOVERY, 2048);
    assert_eq!((status, u32_at(&level_0, 0).swap_bytes() > 100), (0, true));
    assert_eq!(receive(&mut admin, 0xEF << 24, 512).0, 0x02);
    assert_eq!(receive(&mut admin, 1 << 24 | 0x1234 << 8, 512).0, 0x02);
    assert_eq!(send(&mut admin, 0xEF << 24, &[0; 512]), 0x02);
    // As long as the drive is only read, nothing unlocks it.
    let (mut admin, _) = Operated::with_opal_for_reading(&OpalMemory::new()).admin();
    assert_eq!(u16_at(&admin.identify(1, 0).data, 256) & 1, 0);
    assert_eq!(receive(&mut admin, DISCOVERY, 2048).0, 0x01);
}

#[test]
fn a_locked_range_denies_access_to_every_command_and_client() {
    let memory = OpalMemory::new();
    let rig = Operated::with_opal(&memory);
    let (mut admin, mut host) = rig.queues();
    let data = [6; 4096];
    let write =
        |host: &mut Host<Inner>, lba| host.run(&io(0x01, 1, lba, 8).with(Data::Capsule(&data)));
    let read = |host: &mut Host<Inner>, lba| host.run(&io(0x02, 1, lba, 8).with(Data::In(4096)));
    assert_eq!(write(&mut host, 64).status, 0);
    {
        let mut opal = opal(&mut admin);
        assert!(opal.take_ownership(PIN));
        assert_eq!(opal.set_range(PIN, 1, &[(3, 64), (4, 64), (5, 1), (6, 1)]), 0);
        assert_eq!(opal.set_range(PIN, 1, &[(7, 1), (8, 1)]), 0);
    }
    let denied = read(&mut host, 64);
    assert_eq!((denied.status, denied.is_final, denied.has_more), (ACCESS_DENIED, true, false));
    assert_eq!(write(&mut host, 120).status, ACCESS_DENIED);
    assert_eq!(write(&mut host, 124).status, ACCESS_DENIED, "a part of it");
    assert_eq!(host.run(&io(0x08, 1, 64, 8)).status, ACCESS_DENIED, "Write Zeroes");
    assert_eq!(host.run(&io(0x0C, 1, 64, 8)).status, ACCESS_DENIED, "Verify");
    let compared = host.run(&io(0x05, 1, 64, 8).with(Data::Capsule(&data)));
    assert_eq!(compared.status, ACCESS_DENIED, "Compare");
    let mut range = [0; 16];
    (range[4], range[8]) = (8, 64);
    let trim = Order::new(0x09, 1, &[0, 4]);
    assert_eq!(host.run(&trim.with(Data::Capsule(&range))).status, ACCESS_DENIED, "trim");
    assert_eq!(host.run(&io(0x04, 1, 64, 8)).status, 0x15, "Write Uncorrectable");
    let mut source = [0; 32];
    (source[8], source[16]) = (64, 7);
    let copy = Order::new(0x19, 1, &[256, 0, 0]).with(Data::Capsule(&source));
    assert_eq!(host.run(&copy).status, ACCESS_DENIED, "Copy");
    assert_eq!((read(&mut host, 128).status, write(&mut host, 0).status), (0, 0));
    assert_eq!(admin.run(&Order::new(0x80, 1, &[0])).status, 0x15, "Format NVM");
    assert_eq!(admin.run(&Order::new(0x84, 0, &[2])).status, 0x15, "Sanitize");
    let other = rig.operator.namespaces().remove(0).fenced_device();
    let refused = other.write(64 * 512, &[0; 512], Durability::Volatile);
    assert!(matches!(refused, Err(DeviceError::Locked)));
    let unlocked = opal(&mut admin).set_range(PIN, 1, &[(7, 0), (8, 0)]);
    assert_eq!((unlocked, read(&mut host, 64).data), (0, data.to_vec()));
}

#[test]
fn what_was_unlocked_is_locked_after_the_server_died() {
    let memory = OpalMemory::new();
    {
        let (mut admin, mut host) = Operated::with_opal(&memory).queues();
        let mut opal = opal(&mut admin);
        assert!(opal.take_ownership(PIN));
        assert_eq!(opal.set_range(PIN, 0, &[(5, 1), (6, 1)]), 0);
        drop(opal);
        assert_eq!(host.run(&io(0x02, 1, 0, 8).with(Data::In(4096))).status, 0);
    }
    let (mut admin, mut host) = Operated::with_opal(&memory).queues();
    assert_eq!(host.run(&io(0x02, 1, 0, 8).with(Data::In(4096))).status, ACCESS_DENIED);
    // A server for reading leaves it locked.
    let (_reading, mut reader) = Operated::with_opal_for_reading(&memory).queues();
    assert_eq!(reader.run(&io(0x02, 1, 0, 8).with(Data::In(4096))).status, ACCESS_DENIED);
    let mut opal = opal(&mut admin);
    assert_eq!(opal.set_range(b"wrong", 0, &[(7, 0), (8, 0)]), 1);
    assert_eq!(opal.set_range(PIN, 0, &[(7, 0), (8, 0)]), 0);
    drop(opal);
    assert_eq!(host.run(&io(0x02, 1, 0, 8).with(Data::In(4096))).status, 0);
}

#[test]
fn a_session_of_one_controller_is_not_that_of_another() {
    let rig = Operated::with_opal(&OpalMemory::new());
    let ((mut admin, _), (mut stranger, _)) = (rig.admin(), rig.admin());
    let mut sent = Vec::new();
    let mut opal = OpalHost::new(|message| {
        assert_eq!(send(&mut admin, SESSIONS, &message), 0);
        sent.push(message);
        receive(&mut admin, SESSIONS, 2048).1
    });
    assert!(opal.take_ownership(PIN));
    assert_eq!(
        opal.start(
            device::opal::ObjectId::LOCKING_SP,
            Some((device::opal::ObjectId::admin(1), PIN))
        ),
        0
    );
    assert_eq!(opal.set(device::opal::ObjectId::range(1), &[(5, 1.into())]), 0);
    let last = sent.pop().unwrap();
    assert_eq!(send(&mut stranger, SESSIONS, &last), 0);
    let (_, answer) = receive(&mut stranger, SESSIONS, 2048);
    assert_eq!(answer[16..20], [0; 4], "nothing is answered");
    assert_ne!(receive(&mut admin, SESSIONS, 2048).1[4..6], [0; 2]);
}
