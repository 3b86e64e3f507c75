//! NVMe/TCP: arbitrary bytes from a host, before and after it connected a queue.

use std::sync::Arc;

use blockio::Nanos;
use device::{Administration, DriveHealth, Identity};
use export::Replies;
use export::nvme::{Session, Subsystem};

#[derive(Debug)]
struct Drive;

impl Administration for Drive {
    fn identity(&self) -> Identity {
        Identity { number: 1, model: "fuzzed".into(), firmware: "1".into() }
    }

    fn health(&self) -> DriveHealth {
        DriveHealth::default()
    }
}

/// Has a controller read `input`, the first byte of which chooses how the host begins.
pub(crate) fn run(input: &[u8]) {
    let Some((choice, input)) = input.split_first() else { return };
    let exports = crate::exports(choice & 0x80 != 0);
    let block_bytes = if choice & 0x40 != 0 { 4096 } else { 512 };
    let subsystem = Subsystem::new(&exports, Arc::new(Drive), block_bytes);
    let subsystem = Arc::new(subsystem.expect("the size is a multiple of either"));
    let digests = choice >> 2 & 3;
    let mut admin = Session::new(Arc::clone(&subsystem), None, Nanos::ZERO);
    match choice & 3 {
        0 => take(&mut admin, input),
        1 => {
            begin(&mut admin, 0, subsystem.nqn(), digests);
            take(&mut admin, input);
        }
        _ => {
            begin(&mut admin, 0, subsystem.nqn(), 0);
            let mut queue = Session::new(Arc::clone(&subsystem), None, Nanos::ZERO);
            begin(&mut queue, 1, subsystem.nqn(), digests);
            take(&mut queue, input);
        }
    }
}

/// Connects a queue; the admin queue is made ready, too.
fn begin(session: &mut Session, queue: u16, nqn: &str, digests: u8) {
    let mut request = vec![0; 128];
    (request[2], request[4], request[11]) = (128, 128, digests);
    take(session, &request);
    let mut data = vec![0; 1024];
    let controller: u16 = if queue == 0 { 0xFFFF } else { 1 };
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + nqn.len()].copy_from_slice(nqn.as_bytes());
    data[512..515].copy_from_slice(b"nqn");
    let mut connect = vec![0; 64];
    (connect[0], connect[1], connect[4]) = (0x7F, 0x40, 1);
    connect[32..36].copy_from_slice(&1024_u32.to_le_bytes());
    connect[39] = 1;
    connect[42..44].copy_from_slice(&queue.to_le_bytes());
    connect[44] = 31;
    take(session, &capsule(&connect, &data, digests));
    assert!(session.is_connected());
    if queue == 0 {
        let mut enable = vec![0; 64];
        (enable[0], enable[1], enable[44]) = (0x7F, 0x40, 0x14);
        enable[48..52].copy_from_slice(&0x0046_0001_u32.to_le_bytes());
        take(session, &capsule(&enable, &[], digests));
    }
}

/// A command capsule; digests that were agreed on are right.
fn capsule(command: &[u8], data: &[u8], digests: u8) -> Vec<u8> {
    let mut pdu = vec![4, digests & 1, 72, 0, 0, 0, 0, 0];
    let head_bytes = if digests & 1 != 0 { 76 } else { 72 };
    let has_data_digest = digests & 2 != 0 && !data.is_empty();
    let bytes = head_bytes + data.len() + if has_data_digest { 4 } else { 0 };
    pdu[4..8].copy_from_slice(&u32::try_from(bytes).expect("a few KiB").to_le_bytes());
    if !data.is_empty() {
        pdu[1] |= digests & 2;
        pdu[3] = u8::try_from(head_bytes).expect("it is at most 76");
    }
    pdu.extend(command);
    if digests & 1 != 0 {
        pdu.extend(crc32c::crc32c(&pdu).to_le_bytes());
    }
    pdu.extend(data);
    if has_data_digest {
        pdu.extend(crc32c::crc32c(data).to_le_bytes());
    }
    pdu
}

fn take(session: &mut Session, mut input: &[u8]) {
    let mut replies = Replies::new();
    while let Ok(taken) = session.take(input, &mut replies) {
        input = &input[taken.used_bytes..];
        session.settle(&mut replies);
        replies.clear();
        if taken.wanted_bytes > 0 || session.is_over() {
            return;
        }
        assert!(taken.used_bytes > 0, "replies were sent, and still nothing was taken");
    }
}
