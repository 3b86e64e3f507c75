//! The admin queue: identity, logs, features, events, and the exact status of what is refused.

use std::sync::atomic::Ordering;

use crate::Rig;
use crate::host::{
    DISCOVERY_NQN, Data, Digests, Done, HOST_NQN, Order, io, u16_at, u32_at, u64_at,
};

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap().trim_end_matches(['\0', ' '])
}

#[test]
fn a_controller_says_who_it_is_and_what_it_can() {
    let rig = Rig::new(512);
    let (mut admin, controller) = rig.admin();
    let told = admin.identify(0x01, 0).data;
    assert_eq!(text(&told[4..24]), "0123456789abcdef");
    assert_eq!(text(&told[24..64]), "Floatgate test drive");
    assert_eq!(text(&told[64..72]), "0.1.0");
    assert_eq!(u16_at(&told, 78), controller);
    assert_eq!((u32_at(&told, 80), admin.property(8, false)), (0x0002_0000, 0x0002_0000));
    assert_eq!(u16_at(&told, 320), 10, "KAS: a second");
    assert_eq!((told[111], told[512], told[513], u32_at(&told, 516)), (1, 0x66, 0x44, 2));
    assert!(u32_at(&told, 1792) >= 4 && u32_at(&told, 1796) == 1 && u16_at(&told, 1800) == 0);
    assert_eq!(text(&told[768..1024]), rig.subsystem.nqn());
    // MDTS in pages of CAP.MPSMIN, which is 4 KiB.
    assert_eq!((told[77], admin.property(0, true) >> 48 & 0xF), (7, 0));
}

#[test]
fn namespaces_tell_their_blocks_their_atomicity_and_their_names() {
    for (block_bytes, format, atomic) in [(512_u64, 0, 7), (4096, 1, 0)] {
        let rig = Rig::new(block_bytes);
        let (mut admin, _) = rig.admin();
        let told = admin.identify(0x00, 1).data;
        assert_eq!(u64_at(&told, 0), crate::SIZE / block_bytes);
        assert_eq!((told[25], told[26]), (1, format));
        assert_eq!((told[130], told[134]), (9, 12), "512 and 4096 bytes");
        assert_eq!(
            (u16_at(&told, 34), u16_at(&told, 36), u16_at(&told, 44)),
            (atomic, atomic, atomic)
        );
        assert_eq!((told[99], admin.identify(0x00, 2).data[99]), (0, 1), "write-protected");
        let (first, second) = (admin.identify(3, 1).data, admin.identify(3, 2).data);
        assert_eq!(first[..4], [3, 16, 0, 0]);
        assert_ne!(first[4..20], second[4..20], "UUIDs");
        let list = admin.identify(0x02, 0).data;
        assert_eq!((u32_at(&list, 0), u32_at(&list, 4), u32_at(&list, 8)), (1, 2, 0));
        assert_eq!(u32_at(&admin.identify(0x02, 1).data, 0), 2);
    }
}

/// A command, and the status and finality that answer it.
fn assert_refused(done: &Done, status: u16) {
    assert_eq!((done.status, done.is_final), (status, true), "{done:x?}");
}

#[test]
fn what_is_not_there_is_refused_with_its_status() {
    let rig = Rig::new(512);
    let (mut admin, mut host) = rig.queues(Digests::default(), false);
    assert_refused(&admin.identify(0x00, 3), 0x0B);
    assert_refused(&admin.identify(0x00, u32::MAX), 0x0B);
    assert_refused(&admin.identify(0x04, 1), 0x02);
    assert_refused(&admin.log(0x0E, 512), 0x109);
    assert_refused(&admin.run(&Order::new(0x80, 1, &[0])), 0x01);
    assert_refused(&admin.run(&Order::new(0x0A, 0, &[0x42])), 0x02);
    assert_refused(&admin.run(&Order::new(0x09, 0, &[6 | 1 << 31, 0])), 0x10D);
    assert_refused(&admin.run(&Order::new(0x06, 0, &[1]).with(Data::In(512))), 0x0F);
    let block = [1; 512];
    let past_end = crate::SIZE / 512;
    assert_refused(&host.run(&io(0x02, 1, past_end, 1).with(Data::In(512))), 0x80);
    assert_refused(&host.run(&io(0x02, 1, u64::MAX, 1).with(Data::In(512))), 0x80);
    assert_refused(&host.run(&io(0x02, 3, 0, 1).with(Data::In(512))), 0x0B);
    assert_refused(&host.run(&io(0x02, 1, 0, 1).with(Data::In(1024))), 0x0F);
    assert_refused(&host.run(&io(0x01, 2, 0, 1).with(Data::Capsule(&block))), 0x20);
    assert_refused(&host.run(&io(0x01, 1, 0, 2).with(Data::Capsule(&block))), 0x0F);
    assert_refused(&host.run(&io(0x04, 1, 0, 1)), 0x01);
    assert_refused(&host.run(&Order::new(0x7F, 4, &[0, 8])), 0x02);
    // An SGL descriptor of another transport.
    let id = 0x77;
    let mut entry = io(0x02, 1, 0, 1).with(Data::In(512)).entry(id);
    entry[39] = 0x40;
    let pdu = host.pdu(4, 0, &entry, &[]);
    crate::host::Wire::send(&mut host.wire, &pdu);
    assert_refused(&host.finish(id, &[]).unwrap(), 0x11);
    // All of it did no harm.
    assert_eq!(host.run(&io(0x02, 1, 0, 1).with(Data::In(512))).data, vec![0; 512]);
}

#[test]
fn only_what_a_host_may_connect_is_connected() {
    let rig = Rig::new(512);
    let nqn = rig.subsystem.nqn().to_owned();
    let mut host = rig.open(Digests::default());
    let other = host.connect((0, 0xFFFF), ("nqn.2014-08.org.other", HOST_NQN), (32, 0), 0);
    assert_eq!((other.status, other.value), (0x182, 1 << 16 | 256));
    let fixed = host.connect((0, 5), (&nqn, HOST_NQN), (32, 0), 0);
    assert_eq!((fixed.status, fixed.value), (0x182, 1 << 16 | 16));
    let long = format!("nqn.2014-08.org.{}", "h".repeat(208));
    let names =
        ["nqn.2014-08.org.a\nINFO all is well", "nqn.2014-08.org.\x1B[2J", "\u{9B}2J", &long];
    for name in names {
        let done = host.connect((0, 0xFFFF), (&nqn, name), (32, 0), 0);
        assert_eq!((done.status, done.value), (0x182, 1 << 16 | 512), "{name:?}");
    }
    let mut longest = rig.open(Digests::default());
    assert_eq!(longest.connect((0, 0xFFFF), (&nqn, &long[..223]), (32, 0), 0).status, 0);
    drop(longest);
    assert_refused(&host.run(&Order::new(0x06, 0, &[1]).with(Data::In(4096))), 0x0C);
    let connected = host.connect((0, 0xFFFF), (&nqn, HOST_NQN), (32, 0), 0);
    let controller = u16::try_from(connected.value).unwrap();
    assert_refused(&host.identify(0x01, 0), 0x0C);
    let io = |queue, controller, host| {
        let mut io = rig.open(Digests::default());
        (io.connect((queue, controller), (&nqn, host), (128, 0), 0), io)
    };
    assert_refused(&io(1, controller, HOST_NQN).0, 0x0C);
    host.set_property(0x14, 0x0046_0001);
    assert_refused(&io(1, controller, "nqn.2014-08.org.stranger").0, 0x184);
    assert_eq!(io(1, controller + 1, HOST_NQN).0.value, 1 << 16 | 16);
    assert_eq!(io(129, controller, HOST_NQN).0.value, 42);
    let (done, _queue) = io(1, controller, HOST_NQN);
    assert_eq!(done.status, 0);
    assert_refused(&io(1, controller, HOST_NQN).0, 0x0C);
    assert_refused(&host.run(&Order::new(0x09, 0, &[7, 3 << 16 | 3])), 0x0C);
}

#[test]
fn health_comes_from_the_drive_and_a_warning_of_it_is_an_event() {
    let rig = Rig::new(512);
    let (mut admin, _) = rig.admin();
    let health = admin.log(0x02, 512).data;
    assert_eq!((health[0], u16_at(&health, 1), health[3], health[4]), (0, 310, 97, 10));
    assert_eq!(u64_at(&health, 32), 2, "thousands of 512 bytes, rounded up");
    assert_eq!((u64_at(&health, 112), u64_at(&health, 128)), (3, 2));
    let event = admin.submit(&Order::new(0x0C, 0, &[]));
    assert!(admin.wire.advance(1));
    rig.told.0.lock().unwrap().critical_warning = 1;
    assert!(admin.wire.advance(3));
    let told = admin.finish(event, &[]).unwrap();
    assert_eq!((told.status, told.value), (0, 0x02_02_01), "SMART, spare below threshold");
    assert_eq!(admin.log(0x02, 512).data[0], 1);
    // The host's own threshold of temperature.
    let event = admin.submit(&Order::new(0x0C, 0, &[]));
    let set = admin.run(&Order::new(0x09, 0, &[4, 305]));
    assert_eq!(set.status, 0);
    assert!(admin.wire.advance(5));
    assert_eq!(admin.finish(event, &[]).unwrap().value, 0x02_01_01, "SMART, temperature");
    assert_eq!(admin.log(0x02, 512).data[0], 3);
}

#[test]
fn a_resized_namespace_is_announced_once_until_its_log_is_read() {
    let rig = Rig::new(512);
    let (mut admin, mut host) = rig.queues(Digests::default(), false);
    let events = [0, 1].map(|_| admin.submit(&Order::new(0x0C, 0, &[])));
    assert!(admin.wire.advance(1));
    rig.devices[0].size.store(crate::SIZE / 2, Ordering::SeqCst);
    assert!(admin.wire.advance(3));
    assert_eq!(admin.finish(events[0], &[]).unwrap().value, 0x04_00_02);
    rig.devices[1].size.store(crate::SIZE / 2, Ordering::SeqCst);
    assert!(admin.wire.advance(5));
    let changed = admin.log(0x04, 4096).data;
    assert_eq!((u32_at(&changed, 0), u32_at(&changed, 4), u32_at(&changed, 8)), (1, 2, 0));
    assert_eq!(u32_at(&admin.log(0x04, 4096).data, 0), 0, "read");
    assert_eq!(u64_at(&admin.identify(0x00, 1).data, 0), crate::SIZE / 1024);
    let past_end = host.run(&io(0x02, 1, crate::SIZE / 1024, 1).with(Data::In(512)));
    assert_eq!(past_end.status, 0x80);
    // An event that is not wanted any more.
    let aborted = admin.run(&Order::new(0x08, 0, &[u32::from(events[1]) << 16]));
    assert_eq!(aborted.value, 0, "aborted");
    assert_eq!(admin.finish(events[1], &[]).unwrap().status, 0x07);
    assert_eq!(admin.run(&Order::new(0x08, 0, &[0x1234_0000])).value, 1, "there is none");
}

#[test]
fn a_lost_sector_is_a_media_error_with_its_place_in_the_error_log() {
    let rig = Rig::new(4096);
    for is_unpaced in [false, true] {
        let (mut admin, mut host) = rig.queues(Digests { header: true, data: true }, is_unpaced);
        let write = io(0x01, 1, 0, 4);
        assert_eq!(host.run(&write.with(Data::Transfer(&[5; 4 * 4096]))).status, 0);
        rig.devices[0].lost.store(17, Ordering::SeqCst);
        // One read of several in a batch fails; the others are answered all the same.
        let reads = [0, 2, 3].map(|lba| io(0x02, 1, lba, 1).with(Data::In(4096)));
        let both = [0, 1, 2]
            .map(|index| (reads[index].entry(0x50 + u16::try_from(index).unwrap()), index));
        let mut input: Vec<u8> = Vec::new();
        for (entry, _) in both {
            input.extend(host.pdu(4, 0, &entry, &[]));
        }
        crate::host::Wire::send(&mut host.wire, &input);
        assert_eq!(host.finish(0x50, &[]).unwrap().data, [5; 4096]);
        let failed = host.finish(0x51, &[]).unwrap();
        assert_eq!((failed.status, failed.has_more), (0x281, true));
        assert_eq!(host.finish(0x52, &[]).unwrap().data, [5; 4096]);
        assert_eq!(host.run(&io(0x0C, 1, 0, 4)).status, 0x281, "Verify finds it, too");
        let log = admin.log(0x01, 128).data;
        let entry = &log[64..];
        assert_eq!((u16_at(entry, 8), u16_at(entry, 10), entry[29]), (1, 0x51, 3));
        assert_eq!((u16_at(entry, 12) >> 1 & 0x7FF, u64_at(entry, 16)), (0x281, 2));
        assert_eq!((u32_at(entry, 24), u64_at(&log, 0)), (1, u64_at(entry, 0) + 1));
        rig.devices[0].lost.store(u64::MAX, Ordering::SeqCst);
    }
    let (mut admin, _) = rig.admin();
    assert_eq!(u64_at(&admin.log(0x02, 512).data, 176), 4, "entries ever made");
}

#[test]
fn a_read_that_fails_keeps_no_transfer_behind_it_from_being_asked_for() {
    let rig = Rig::new(512);
    for is_unpaced in [false, true] {
        let (_admin, mut host) = rig.queues(Digests::default(), is_unpaced);
        rig.devices[0].lost.store(17, Ordering::SeqCst);
        let bytes = vec![3; 64 << 10];
        let (read, write) = (io(0x02, 1, 17, 1).with(Data::In(512)), io(0x01, 1, 128, 128));
        let mut input = host.pdu(4, 0, &read.entry(0x50), &[]);
        let write = write.with(Data::Transfer(&bytes));
        input.extend(host.pdu(4, 0, &write.entry(0x51), &[]));
        crate::host::Wire::send(&mut host.wire, &input);
        assert_eq!(host.finish(0x50, &[]).unwrap().status, 0x281);
        assert_eq!(host.finish(0x51, &bytes).unwrap().status, 0, "it was asked for, and came");
    }
}

#[test]
fn without_a_write_cache_every_write_is_durable() {
    let rig = Rig::new(512);
    let (mut admin, mut host) = rig.queues(Digests::default(), false);
    let flushes = || rig.devices[0].flushes.load(Ordering::SeqCst);
    let write = io(0x01, 1, 0, 1);
    host.run(&write.with(Data::Capsule(&[1; 512])));
    assert_eq!(flushes(), 0);
    assert_eq!(admin.run(&Order::new(0x0A, 0, &[6])).value, 1, "a cache at first");
    assert_eq!(admin.run(&Order::new(0x09, 0, &[6, 0])).status, 0);
    host.run(&write.with(Data::Capsule(&[1; 512])));
    assert_eq!(flushes(), 1);
    assert_eq!(admin.run(&Order::new(0x09, 0, &[6, 1])).status, 0);
    let mut durable = write;
    durable.dwords[2] |= 1 << 30;
    host.run(&durable.with(Data::Capsule(&[1; 512])));
    assert_eq!(flushes(), 2, "force unit access");
    host.run(&io(0x00, u32::MAX, 0, 1));
    assert_eq!((flushes(), rig.devices[1].flushes.load(Ordering::SeqCst)), (3, 1));
}

#[test]
fn the_head_of_the_queue_moves_with_each_command_unless_the_host_does_without() {
    let rig = Rig::new(512);
    let (_admin, mut paced) = rig.queues(Digests::default(), false);
    let heads: Vec<u16> = (0..130).map(|_| paced.run(&io(0x00, 1, 0, 1)).head).collect();
    // Connect was the first entry of 128.
    assert_eq!((heads[0], heads[125], heads[126], heads[127]), (2, 127, 0, 1));
    let (_admin, controller) = rig.admin();
    let connect = |attributes| {
        let mut queue = rig.open(Digests::default());
        let names = (rig.subsystem.nqn(), HOST_NQN);
        let number = 1 + u16::from(attributes);
        (queue.connect((number, controller), names, (128, attributes), 0).head, queue)
    };
    assert_eq!(connect(0).0, 1);
    let (head, mut unpaced) = connect(4);
    assert_eq!(head, 0xFFFF, "the controller agrees");
    assert_eq!(unpaced.run(&io(0x00, 1, 0, 1)).head, 0);
}

#[test]
fn data_is_aligned_as_the_host_asks() {
    let rig = Rig::new(512);
    let inner = crate::host::Inner::new(&rig.subsystem);
    let mut host = crate::host::Host::open(inner, Digests { header: true, data: true }, 31);
    host.begin(rig.subsystem.nqn());
    let id = host.submit(&Order::new(0x06, 0, &[1]).with(Data::In(4096)));
    let pdu = host.receive().unwrap();
    assert_eq!((pdu.kind(), pdu.header[3], pdu.data.len()), (7, 128, 4096));
    assert_eq!(host.finish(id, &[]).unwrap().status, 0);
}

#[test]
fn discovery_says_where_the_subsystem_is() {
    let rig = Rig::new(512);
    let mut host = rig.open(Digests::default());
    host.begin(DISCOVERY_NQN);
    let told = host.identify(0x01, 0).data;
    assert_eq!((told[111], text(&told[768..1024])), (2, DISCOVERY_NQN));
    assert_refused(&host.identify(0x00, 1), 0x02);
    assert_refused(&host.log(0x02, 512), 0x109);
    let log = host.log(0x70, 3072).data;
    assert_eq!((u64_at(&log, 0), u64_at(&log, 8), u16_at(&log, 16)), (1, 2, 0));
    let entry = &log[2048..];
    assert_eq!(entry[..3], [3, 1, 2], "TCP, IPv4, an NVM subsystem");
    assert_eq!((u16_at(entry, 6), text(&entry[32..64])), (0xFFFF, "4420"));
    assert_eq!(text(&entry[256..512]), rig.subsystem.nqn());
    assert_eq!(text(&entry[512..768]), "127.0.0.1");
    assert_eq!(log[1024 + 2], 3, "the first is the discovery subsystem itself");
}

#[test]
fn a_host_that_is_not_heard_of_loses_its_controller_and_its_queues() {
    let rig = Rig::new(512);
    let mut admin = rig.open(Digests::default());
    let connected = admin.connect((0, 0xFFFF), (rig.subsystem.nqn(), HOST_NQN), (32, 0), 4500);
    let controller = u16::try_from(connected.value).unwrap();
    admin.set_property(0x14, 0x0046_0001);
    let mut queue = rig.open(Digests::default());
    queue.begin_io((1, controller), rig.subsystem.nqn(), false);
    assert!(admin.wire.advance(4));
    assert_eq!(admin.run(&Order::new(0x18, 0, &[])).status, 0, "Keep Alive");
    assert!(admin.wire.advance(8), "5 s after it, as the timeout is in seconds");
    assert_eq!(queue.run(&io(0x00, 1, 0, 1)).status, 0);
    assert!(!admin.wire.advance(9));
    let id = queue.submit(&io(0x00, 1, 0, 1));
    assert!(queue.finish(id, &[]).is_none() && queue.wire.is_over());
    // The time of a host counts from when it came, not from when the server began.
    let late = crate::host::Inner::coming_at(&rig.subsystem, 1000);
    let mut late = crate::host::Host::open(late, Digests::default(), 0);
    late.connect((0, 0xFFFF), (rig.subsystem.nqn(), HOST_NQN), (32, 0), 4500);
    assert!(late.wire.advance(1004) && !late.wire.advance(1005));
}

#[test]
fn a_host_that_never_enables_its_controller_or_is_silent_without_work_loses_it() {
    let rig = Rig::new(512);
    let connect = || {
        let mut admin = rig.open(Digests::default());
        let names = (rig.subsystem.nqn(), HOST_NQN);
        let connected = admin.connect((0, 0xFFFF), names, (32, 0), 0);
        (admin, u16::try_from(connected.value).unwrap())
    };
    let (mut idle, _) = connect();
    assert!(idle.wire.advance(9) && !idle.wire.advance(10), "it was never enabled");
    let (mut silent, _) = connect();
    silent.set_property(0x14, 0x0046_0001);
    assert!(silent.wire.advance(119));
    assert_eq!(silent.run(&Order::new(0x18, 0, &[])).status, 0, "Keep Alive");
    assert!(silent.wire.advance(238) && !silent.wire.advance(239), "120 s after it");
    let (mut working, controller) = connect();
    working.set_property(0x14, 0x0046_0001);
    let mut queue = rig.open(Digests::default());
    queue.begin_io((1, controller), rig.subsystem.nqn(), false);
    assert!(working.wire.advance(100_000), "it has an I/O queue");
}

#[test]
fn a_host_is_alive_while_a_command_of_it_takes_longer_than_its_timeout() {
    let rig = Rig::new(512);
    let mut admin = rig.open(Digests::default());
    admin.connect((0, 0xFFFF), (rig.subsystem.nqn(), HOST_NQN), (32, 0), 5000);
    admin.set_property(0x14, 0x0046_0001);
    // The deletion of a namespace, and a Keep Alive that waits behind it.
    let delete = Order::new(0x0D, 1, &[1]);
    let mut input = admin.pdu(4, 0, &delete.entry(0x50), &[]);
    input.extend(admin.pdu(4, 0, &Order::new(0x18, 0, &[]).entry(0x51), &[]));
    let inner = &mut admin.wire;
    let used = inner.session.take(&input, &mut inner.replies).unwrap().used_bytes;
    assert_eq!(used, input.len());
    assert!(inner.advance(6), "both ended after 6 s");
    assert!(inner.advance(10) && !inner.advance(11), "5 s after that");
}

#[test]
fn a_queue_of_before_a_reset_leaves_the_new_one_of_its_number_alone() {
    let rig = Rig::new(512);
    let (mut admin, controller) = rig.admin();
    let connect = || {
        let mut queue = rig.open(Digests::default());
        let names = (rig.subsystem.nqn(), HOST_NQN);
        (queue.connect((1, controller), names, (128, 0), 0).status, queue)
    };
    let (_, before) = connect();
    admin.set_property(0x14, 0x0046_0000);
    admin.set_property(0x14, 0x0046_0001);
    let (status, _after) = connect();
    assert_eq!(status, 0);
    drop(before);
    assert_eq!(connect().0, 0x0C, "queue 1 is connected");
}

#[test]
fn a_reset_ends_queues_and_brings_features_back() {
    let rig = Rig::new(512);
    let (mut admin, mut queue) = rig.queues(Digests::default(), false);
    assert_eq!(admin.run(&Order::new(0x09, 0, &[6, 0])).status, 0);
    admin.set_property(0x14, 0x0046_0000);
    assert_eq!(admin.property(0x1C, false), 0);
    let id = queue.submit(&io(0x00, 1, 0, 1));
    assert!(queue.finish(id, &[]).is_none());
    admin.set_property(0x14, 0x0046_0001);
    assert_eq!(admin.run(&Order::new(0x0A, 0, &[6])).value, 1);
    admin.set_property(0x14, 0x0046_4001);
    assert_eq!(admin.property(0x1C, false) >> 2 & 3, 2, "shutdown complete");
    assert_eq!(rig.devices[0].flushes.load(Ordering::SeqCst), 1);
    // Entries of another size.
    admin.set_property(0x14, 0);
    admin.set_property(0x14, 0x0047_0001);
    assert_eq!(admin.property(0x1C, false), 2, "fatal");
}
