//! Hosts that lie: whatever comes, the session answers or ends, and other queues go on.

use proptest::prelude::*;

use crate::Rig;
use crate::host::{Data, Digests, Host, Inner, Wire as _, io};

/// The Fatal Error Status of a termination request.
fn fatal_status(host: &mut Host<Inner>) -> u16 {
    let pdu = host.receive().expect("a termination request");
    assert_eq!(pdu.kind(), 3);
    assert!(host.wire.is_over());
    pdu.u16_at(8)
}

fn queue(digests: Digests) -> (Rig, Host<Inner>, Host<Inner>) {
    let rig = Rig::new(512);
    let (admin, host) = rig.queues(digests, false);
    (rig, admin, host)
}

#[test]
fn a_pdu_that_breaks_the_rules_is_named_and_ends_the_connection() {
    let read = io(0x02, 1, 0, 1).with(Data::In(512)).entry(9);
    // Byte to change, its value, and the status of the termination.
    let cases = [(0, 0x0A, 1), (0, 0x00, 1), (1, 1, 1), (2, 71, 1), (4, 71, 1), (5, 0xFF, 1)];
    for (at, value, status) in cases {
        let (_rig, _admin, mut host) = queue(Digests::default());
        let mut pdu = host.pdu(4, 0, &read, &[]);
        pdu[at] = value;
        host.wire.send(&pdu);
        assert_eq!(fatal_status(&mut host), status, "byte {at}");
    }
    let (_rig, _admin, mut host) = queue(Digests::default());
    let mut again = vec![0; 128];
    (again[2], again[4]) = (128, 128);
    host.wire.send(&again);
    assert_eq!(fatal_status(&mut host), 2, "a second ICReq is out of turn");
}

#[test]
fn wrong_digests_end_a_connection_or_fail_one_command() {
    let (_rig, _admin, mut host) = queue(Digests { header: true, data: true });
    let write = io(0x01, 1, 0, 1).with(Data::Capsule(&[1; 512]));
    let mut pdu = host.pdu(4, 0, &write.entry(9), &[1; 512]);
    pdu[100] ^= 1;
    host.wire.send(&pdu);
    let done = host.finish(9, &[]).unwrap();
    assert_eq!((done.status, done.is_final), (0x22, false), "may be sent again");
    let back = host.run(&io(0x02, 1, 0, 1).with(Data::In(512)));
    assert_eq!(back.data, [0; 512], "nothing of it was stored");
    // The same of a transfer.
    let bytes = vec![1; 65_536];
    let id = host.submit(&io(0x01, 1, 0, 128).with(Data::Transfer(&bytes)));
    let ready = host.receive().unwrap();
    let mut rest = [0; 16];
    rest[..2].copy_from_slice(&id.to_le_bytes());
    rest[2..4].copy_from_slice(&ready.u16_at(10).to_le_bytes());
    rest[8..12].copy_from_slice(&65_536_u32.to_le_bytes());
    let mut pdu = host.pdu(6, 4, &rest, &bytes);
    pdu[5000] ^= 1;
    host.wire.send(&pdu);
    assert_eq!(host.finish(id, &[]).unwrap().status, 0x22);
    let mut pdu = host.pdu(4, 0, &io(0x00, 1, 0, 1).entry(9), &[]);
    pdu[20] ^= 1;
    host.wire.send(&pdu);
    assert_eq!(fatal_status(&mut host), 3);
}

#[test]
fn data_that_the_server_did_not_ask_for_ends_the_connection() {
    // Command, tag, offset and length, as changes of what was asked for; status.
    let cases: [([i64; 4], u16); 4] =
        [([1, 0, 0, 0], 1), ([0, 1, 0, 0], 1), ([0, 0, 512, 0], 4), ([0, 0, 0, 512], 4)];
    for (change, status) in cases {
        let (_rig, _admin, mut host) = queue(Digests::default());
        let bytes = vec![1; 65_536];
        let id = host.submit(&io(0x01, 1, 0, 128).with(Data::Transfer(&bytes)));
        let ready = host.receive().unwrap();
        let changed = |value: i64, index: usize| value + change[index];
        let mut rest = [0; 16];
        rest[..2].copy_from_slice(&u16::try_from(changed(id.into(), 0)).unwrap().to_le_bytes());
        let tag = changed(ready.u16_at(10).into(), 1);
        rest[2..4].copy_from_slice(&u16::try_from(tag).unwrap().to_le_bytes());
        rest[4..8].copy_from_slice(&u32::try_from(changed(0, 2)).unwrap().to_le_bytes());
        let length = usize::try_from(changed(65_536, 3)).unwrap();
        rest[8..12].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
        let pdu = host.pdu(6, 4, &rest, &vec![1; length]);
        host.wire.send(&pdu);
        assert_eq!(fatal_status(&mut host), status, "{change:?}");
    }
}

#[test]
fn more_commands_than_the_queue_has_entries_end_the_connection() {
    let (_rig, _admin, mut host) = queue(Digests::default());
    for _ in 0..129 {
        host.submit(&io(0x01, 1, 0, 1024).with(Data::Transfer(&vec![0; 512 << 10])));
    }
    let ready = host.receive().unwrap();
    assert_eq!(ready.kind(), 9, "the first is asked for");
    assert_eq!(fatal_status(&mut host), 2);
}

#[test]
fn pdus_of_another_version_are_refused() {
    let rig = Rig::new(512);
    let mut wire = Inner::new(&rig.subsystem);
    let mut request = vec![0; 128];
    (request[2], request[4], request[8]) = (128, 128, 1);
    wire.send(&request);
    assert_eq!(wire.receive(10).unwrap()[8..], [6, 0]);
    assert!(wire.is_over());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn random_bytes_harm_no_other_host(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        (header, data) in any::<(bool, bool)>(),
    ) {
        let rig = Rig::new(512);
        let (_admin, mut honest) = rig.queues(Digests::default(), false);
        Inner::new(&rig.subsystem).send(&bytes);
        let mut connected = rig.open(Digests { header, data });
        connected.wire.send(&bytes);
        let (_other_admin, mut liar) = rig.queues(Digests { header, data }, true);
        liar.wire.send(&bytes);
        prop_assert_eq!(honest.run(&io(0x02, 1, 0, 8).with(Data::In(4096))).status, 0);
    }

    #[test]
    fn commands_with_random_fields_are_answered_and_harm_no_other_host(
        entries in prop::collection::vec((prop::array::uniform32(any::<u8>()), 0_u8..0x82), 1..40),
        is_admin in any::<bool>(),
    ) {
        let rig = Rig::new(512);
        let (_admin, mut honest) = rig.queues(Digests::default(), false);
        let (mut admin, mut io_queue) = rig.queues(Digests::default(), true);
        let host = if is_admin { &mut admin } else { &mut io_queue };
        for (random, opcode) in entries {
            let mut entry = [0; 64];
            entry[..32].copy_from_slice(&random);
            entry[32..].copy_from_slice(&random);
            (entry[0], entry[1]) = (opcode, 0x40);
            let pdu = host.pdu(4, 0, &entry, &[]);
            host.wire.send(&pdu);
        }
        prop_assert_eq!(honest.run(&io(0x02, 1, 0, 8).with(Data::In(4096))).status, 0);
    }
}
