//! Claims of controllers over NVMe/TCP: that of an operated drive, also for reading only, and of
//! fixed exports; and what is refused because nothing claims it.

use std::sync::Arc;

use crate::Rig;
use crate::host::{
    DISCOVERY_NQN, Data, Digests, HOST_NQN, Host, Inner, Order, io, u16_at, u32_at, u64_at,
};
use crate::laws::{AdminRequest, Answer, Subject, check};
use crate::locked::OpalMemory;
use crate::operated::{Operated, controllers, creation};

/// An admin queue and an I/O queue.
struct Queues(Host<Inner>, Host<Inner>);

impl Subject for Queues {
    const IS_FABRICS: bool = true;

    fn admin(&mut self, command: &AdminRequest<'_>) -> Option<Answer> {
        let order = Order::new(command.opcode, command.namespace, &command.dwords);
        let id = self.0.submit(&match (command.sent, command.wanted) {
            ([], wanted) => order.with(Data::In(wanted)),
            (sent, _) => order.with(Data::Capsule(sent)),
        });
        let done = self.0.finish(id, &[])?;
        let value = u32::try_from(done.value & 0xFFFF_FFFF).unwrap();
        Some(Answer { status: done.status, value, data: done.data })
    }

    fn io(&mut self, opcode: u8) -> u16 {
        self.1.run(&io(opcode, 1, 0, 1)).status
    }
}

#[test]
fn what_is_claimed_is_carried_out_and_nothing_else() {
    let (admin, host) = Rig::new(512).queues(Digests::default(), false);
    check(&mut Queues(admin, host));
    let private = Operated::of_private();
    let locking = Operated::with_opal(&OpalMemory::new());
    for rig in [Operated::new(), Operated::for_reading(), Operated::injecting(), private, locking] {
        let (admin, host) = rig.queues();
        check(&mut Queues(admin, host));
    }
}

#[test]
fn a_drive_for_reading_is_protected_until_it_is_served_anew() {
    let rig = Operated::for_reading();
    let (mut admin, mut host) = rig.queues();
    let told = admin.identify(1, 0).data;
    assert_eq!((u16_at(&told, 256), told[531]), (1 << 4, 3), "self-tests; NWPC");
    assert_eq!((admin.identify(0, 1).data[99], u16_at(&told, 520) & 2), (1, 0));
    assert_eq!(admin.run(&Order::new(0x0A, 1, &[0x84])).value, 2);
    for (state, status) in [(0, 0x10E), (1, 0x10E), (2, 0), (3, 0x02)] {
        assert_eq!(admin.run(&Order::new(0x09, 1, &[0x84, state])).status, status, "{state}");
    }
    assert_eq!(host.run(&io(0x04, 1, 0, 1)).status, 0x01, "Write Uncorrectable");
    assert_eq!(host.run(&io(0x08, 1, 0, 1)).status, 0x20, "Write Zeroes");
}

#[test]
fn features_belong_to_what_their_scope_says() {
    let rig = Operated::new();
    let (mut admin, _) = rig.admin();
    let (mut other, _) = rig.admin();
    let set = |of: &mut Host<Inner>, namespace, feature, value| {
        of.run(&Order::new(0x09, namespace, &[feature, value])).status
    };
    let get = |of: &mut Host<Inner>, namespace, feature| {
        let done = of.run(&Order::new(0x0A, namespace, &[feature, 1]));
        (done.status, done.value)
    };
    assert_eq!(set(&mut admin, 1, 0x06, 0), 0x10F, "Feature Not Namespace Specific");
    assert_eq!(set(&mut admin, 99, 0x06, 0), 0x0B);
    assert_eq!(set(&mut admin, u32::MAX, 0x06, 0), 0);
    // Error recovery is of a namespace.
    assert_eq!(set(&mut admin, u32::MAX, 0x05, 7), 0, "all namespaces");
    assert_eq!(get(&mut admin, 1, 0x05), (0, 7));
    assert_eq!(set(&mut admin, 1, 0x05, 9), 0);
    assert_eq!((get(&mut admin, 1, 0x05), get(&mut admin, u32::MAX, 0x05)), ((0, 9), (0, 7)));
    for (namespace, status) in [(0, 0), (2, 0x02), (65, 0x0B)] {
        assert_eq!(get(&mut admin, namespace, 0x05).0, status, "{namespace}");
    }
    assert_eq!(get(&mut other, 1, 0x05), (0, 0), "of another controller");
    // Events of the endurance group, and the answer to a sanitize, are of all controllers.
    for (feature, value) in [(0x18, 1 << 16 | 1), (0x17, 1)] {
        assert_eq!(set(&mut admin, 0, feature, value), 0);
        assert_eq!(get(&mut other, 0, feature), (0, value.into()));
        let default = other.run(&Order::new(0x0A, 0, &[feature | 1 << 8, 1]));
        assert_eq!((default.status, default.value), (0, 0));
    }
}

#[test]
fn a_sanitize_that_is_to_leave_blocks_allocated_says_that_it_did_not() {
    let rig = Operated::new();
    let (mut admin, _) = rig.admin();
    let event = admin.submit(&Order::new(0x0C, 0, &[]));
    assert!(admin.wire.advance(1));
    let sanitize = Order::new(0x84, 0, &[2 | 1 << 9]);
    assert_eq!(admin.run(&sanitize).status, 0x02, "it is inhibited");
    assert_eq!(admin.run(&Order::new(0x09, 0, &[0x17, 1])).status, 0);
    assert_eq!(admin.run(&sanitize).status, 0);
    rig.await_end();
    assert!(admin.wire.advance(3));
    assert_eq!(admin.finish(event, &[]).unwrap().value, 0x81_02_06, "unexpected deallocation");
    let log = admin.log(0x81, 512).data;
    assert_eq!((u16_at(&log, 2) & 7, u32_at(&log, 4)), (4, 2 | 1 << 9));
}

#[test]
fn host_behavior_takes_what_the_drive_knows_alone() {
    let (mut admin, _) = Rig::new(512).admin();
    let mut set = |at: usize, byte| {
        let mut data = [0; 512];
        data[at] = byte;
        admin.run(&Order::new(0x09, 0, &[0x16]).with(Data::Capsule(&data))).status
    };
    for (at, byte, status) in [(0, 0, 0), (0, 2, 2), (1, 1, 2), (2, 1, 2), (4, 4, 2), (0, 1, 0)] {
        assert_eq!(set(at, byte), status, "{at}: {byte}");
    }
    let got = admin.run(&Order::new(0x0A, 0, &[0x16]).with(Data::In(512))).data;
    assert_eq!(got[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn hosts_inject_errors_as_ocp_has_it_where_they_may() {
    /// An entry for one instance of an error, after so many reads.
    fn entry(kind: u8, after_reads: u8) -> [u8; 32] {
        let mut entry = [0; 32];
        (entry[0], entry[2], entry[4]) = (3, kind, after_reads);
        entry
    }
    let rig = Operated::injecting();
    let (mut admin, _) = rig.admin();
    assert_eq!(admin.identify(0x17, 0).data[48..50], [0xC1, 0x94], "the UUID of OCP");
    let mut set = |entries: &[[u8; 32]]| {
        let number = u32::try_from(entries.len()).unwrap();
        let order = Order::new(0x09, 0, &[0xC0, number]);
        admin.run(&order.with(Data::Capsule(&entries.concat()))).status
    };
    let (mut disabled, mut lasting) = (entry(1, 0), entry(1, 0));
    (disabled[0], lasting[0]) = (2, 1);
    assert_eq!(set(&[entry(1, 5), disabled, entry(22, 0)]), 0);
    for refused in [entry(0, 0), entry(11, 0), entry(99, 0), lasting] {
        assert_eq!(set(&[refused]), 0x02, "{refused:?}");
    }
    let got = admin.run(&Order::new(0x0A, 0, &[0xC0]).with(Data::In(4064)));
    assert_eq!((got.status, got.data[..64].to_vec()), (0, [entry(1, 5), entry(22, 0)].concat()));
    let (mut admin, _) = Operated::new().admin();
    assert_eq!(admin.run(&Order::new(0x0A, 0, &[0xC0]).with(Data::In(4064))).status, 0x02);
}

#[test]
fn a_fused_admin_command_is_refused() {
    let (mut admin, _) = Rig::new(512).admin();
    let mut entry = Order::new(0x06, 0, &[1]).with(Data::In(4096)).entry(7);
    entry[1] |= 1;
    let pdu = admin.pdu(4, 0, &entry, &[]);
    crate::host::Wire::send(&mut admin.wire, &pdu);
    assert_eq!(admin.finish(7, &[]).unwrap().status, 0x02);
}

#[test]
fn admin_queues_have_the_sizes_that_discovery_tells() {
    let rig = Rig::new(512);
    let mut host = rig.open(Digests::default());
    host.begin(DISCOVERY_NQN);
    let most = u16_at(&host.log(0x70, 3072).data, 1024 + 8);
    for (entries, status) in [(most, 0), (most + 1, 0x182), (32, 0), (31, 0x182)] {
        let mut host = rig.open(Digests::default());
        let names = (rig.subsystem.nqn(), HOST_NQN);
        let done = host.connect((0, 0xFFFF), names, (entries, 0), 0);
        assert_eq!(done.status, status, "{entries}");
        assert!(status == 0 || done.value == 44, "SQSIZE");
    }
}

#[test]
fn a_private_namespace_has_one_controller_and_goes_to_the_next_of_its_host() {
    const OTHER_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:bbbbbbbb-0000-4000-8000-000000000002";
    let rig = Operated::new();
    let come = |name: &str| {
        let mut host = Host::open(Inner::new(&rig.subsystem), Digests::default(), 0);
        let id = host.connect((0, 0xFFFF), (rig.subsystem.nqn(), name), (32, 0), 0).value;
        host.set_property(0x14, 0x0046_0001);
        (host, u16::try_from(id).unwrap())
    };
    let ((mut first, a), (_second, b), (mut other, c)) =
        (come(HOST_NQN), come(HOST_NQN), come(OTHER_NQN));
    assert_eq!(first.run(&Order::new(0x0D, 1, &[1])).status, 0);
    let mut data = creation(64, 0);
    data[30] = 2;
    let dispersed = first.run(&Order::new(0x0D, 0, &[0]).with(Data::Capsule(&data)));
    assert_eq!(dispersed.status, 0x02);
    data[30] = 0;
    assert_eq!(first.run(&Order::new(0x0D, 0, &[0]).with(Data::Capsule(&data))).value, 1);
    assert_eq!(first.identify(0x11, 1).data[30], 0, "NMIC");
    let mut attach = |select, ids: &[u16]| {
        let list = controllers(ids);
        first.run(&Order::new(0x15, 1, &[select]).with(Data::Capsule(&list))).status
    };
    assert_eq!(attach(0, &[a, c]), 0x119, "Namespace Is Private");
    assert_eq!((attach(0, &[c]), attach(0, &[c]), attach(0, &[b])), (0, 0x118, 0x119));
    assert_eq!((attach(1, &[a]), attach(1, &[c])), (0x11A, 0));
    assert_eq!((attach(0, &[b]), attach(0, &[a])), (0, 0x119), "the same host");
    assert_eq!((attach(1, &[b]), attach(0, &[c])), (0, 0));
    assert_eq!(u64_at(&other.identify(0, 1).data, 0), 64);
    assert_eq!(u64_at(&first.identify(0, 1).data, 0), 0);
    drop(other);
    let (mut stranger, _) = come("nqn.2014-08.org.stranger");
    assert_eq!(u64_at(&stranger.identify(0, 1).data, 0), 0);
    let (mut again, _) = come(OTHER_NQN);
    assert_eq!((u64_at(&again.identify(0, 1).data, 0), again.identify(8, 1).data[1]), (64, 0));
}

#[test]
fn a_private_namespace_of_before_the_server_goes_to_the_next_that_comes_while_it_is_free() {
    let rig = Operated::of_private();
    let blocks = |host: &mut Host<Inner>| u64_at(&host.identify(0, 1).data, 0);
    for _ in 0..2 {
        let ((mut first, _), (mut second, _)) = (rig.admin(), rig.admin());
        assert!(blocks(&mut first) > 0 && blocks(&mut second) == 0);
    }
}

#[test]
fn the_log_of_events_has_one_clock() {
    let rig = Operated::new();
    let (mut admin, _) = rig.admin();
    assert_eq!(admin.run(&Order::new(0x14, 1, &[0xF])).status, 0, "an event");
    let log = admin.run(&Order::new(0x02, 0, &[0x0D | 1 << 8 | 1023 << 16]).with(Data::In(4096)));
    let (header, events) = log.data.split_at(512);
    let next = 24 + usize::from(u16_at(events, 22));
    let times = (u64_at(header, 20), u64_at(events, 6), u64_at(&events[next..], 6));
    assert_eq!(times, (1_700_000_000_500, 1_700_000_000_500, 1_700_000_000_000));
}

#[test]
fn a_drive_without_a_sensor_has_the_temperature_of_a_room() {
    let rig = Operated::new();
    let (mut admin, _) = rig.admin();
    assert_eq!(u16_at(&admin.log(2, 512).data, 1), 298);
    assert_eq!(admin.run(&Order::new(0x09, 0, &[4, 298])).status, 0, "a threshold");
    assert_eq!(admin.log(2, 512).data[0], 2, "too warm");
}

#[test]
fn discovery_names_every_port() {
    let rig = Rig::new(512);
    let subsystem = &rig.subsystem;
    let listeners = ["tcp:127.0.0.1:0", "tcp:0.0.0.0:0"].map(|address| {
        let listener = export::Listener::bind(&address.parse().unwrap()).unwrap();
        (listener, export::Protocol::Nvme(Arc::clone(subsystem)))
    });
    let ports = listeners.each_ref().map(|(listener, _)| match listener.address() {
        export::Address::Tcp { port, .. } => port.to_string(),
        export::Address::Unix(_) => unreachable!("they are of TCP"),
    });
    let observer = |_: &export::Event| {};
    let limits = export::Limits::default();
    let exports = rig.exports.clone();
    let server = export::Server::start_each(exports, listeners.into(), limits, observer).unwrap();
    let (mut admin, _) = rig.admin();
    assert_eq!(admin.identify(1, 0).data[76], 3, "CMIC: several ports and controllers");
    let mut host = rig.open(Digests::default());
    host.begin(DISCOVERY_NQN);
    let log = host.log(0x70, 5 * 1024).data;
    assert_eq!(u64_at(&log, 8), 4);
    let entries = log[1024..].chunks(1024).map(|entry| {
        let text = |at: usize, bytes: usize| {
            String::from_utf8_lossy(&entry[at..at + bytes]).trim_end_matches([' ', '\0']).to_owned()
        };
        (entry[2], u16_at(entry, 4), text(32, 32), text(512, 256))
    });
    let local = "127.0.0.1".to_owned();
    let expected = [(3, 1, 0), (2, 1, 0), (3, 2, 1), (2, 2, 1)];
    let expected = expected.map(|(kind, id, port)| (kind, id, ports[port].clone(), local.clone()));
    assert_eq!(entries.collect::<Vec<_>>(), expected);
    server.stop().unwrap();
}
