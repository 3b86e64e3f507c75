//! Laws of the NVM command set: whatever commands come, in whatever form, a namespace holds what a
//! plain map would.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::host::{Data, Digests, io};
use crate::{Rig, SIZE};

/// Blocks of the largest command: of 4096 bytes some are too large for a capsule.
const BLOCKS_MAX: u32 = 12;

#[derive(Clone, Debug)]
enum Act {
    Read,
    /// With this byte, and asking for durability if so.
    Write(u8, bool),
    Zero(bool),
    Deallocate,
    /// With the stored data, but for a bit if so.
    Compare(bool),
    Verify,
    Flush,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Read),
        4 => any::<(u8, bool)>().prop_map(|(byte, is_durable)| Act::Write(byte, is_durable)),
        1 => any::<bool>().prop_map(Act::Zero),
        1 => Just(Act::Deallocate),
        1 => any::<bool>().prop_map(Act::Compare),
        1 => Just(Act::Verify),
        1 => Just(Act::Flush),
    ]
}

/// Blocks that the map has, in order; what was never written is zero.
fn stored(map: &BTreeMap<u64, u8>, lba: u64, blocks: u32, block_bytes: usize) -> Vec<u8> {
    let of = |at: u64| vec![map.get(&at).copied().unwrap_or(0); block_bytes];
    (lba..lba + u64::from(blocks)).flat_map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_namespace_holds_what_a_map_would(
        steps in prop::collection::vec((act(), 0_u64..64, 1..=BLOCKS_MAX, any::<bool>()), 1..60),
        is_large_block in any::<bool>(),
        (header, data, is_unpaced) in any::<(bool, bool, bool)>(),
    ) {
        let block_bytes: usize = if is_large_block { 4096 } else { 512 };
        let rig = Rig::new(block_bytes as u64);
        let (_admin, mut host) = rig.queues(Digests { header, data }, is_unpaced);
        let mut map = BTreeMap::new();
        for (act, lba, blocks, in_capsule) in steps {
            let length = blocks as usize * block_bytes;
            let in_capsule = in_capsule && length <= 32 << 10;
            let placed =
                |bytes| if in_capsule { Data::Capsule(bytes) } else { Data::Transfer(bytes) };
            let all = lba..lba + u64::from(blocks);
            let expected = stored(&map, lba, blocks, block_bytes);
            let done = match act {
                Act::Read => {
                    let length = u32::try_from(length).unwrap();
                    let done = host.run(&io(0x02, 1, lba, blocks).with(Data::In(length)));
                    prop_assert_eq!(&done.data, &expected);
                    done
                }
                Act::Write(byte, is_durable) => {
                    let mut order = io(0x01, 1, lba, blocks);
                    order.dwords[2] |= u32::from(is_durable) << 30;
                    map.extend(all.map(|at| (at, byte)));
                    host.run(&order.with(placed(&vec![byte; length])))
                }
                Act::Zero(deallocates) => {
                    let mut order = io(0x08, 1, lba, blocks);
                    order.dwords[2] |= u32::from(deallocates) << 25;
                    map.retain(|at, _| !all.contains(at));
                    host.run(&order)
                }
                Act::Deallocate => {
                    let mut range = [0; 16];
                    range[4..8].copy_from_slice(&blocks.to_le_bytes());
                    range[8..].copy_from_slice(&lba.to_le_bytes());
                    map.retain(|at, _| !all.contains(at));
                    let mut order = io(0x09, 1, 0, 1);
                    order.dwords = [0, 4, 0, 0, 0, 0];
                    // Linux sends room for all ranges; the rest of it means nothing.
                    let mut room = vec![0xFF; if in_capsule { 16 } else { 4096 }];
                    room[..16].copy_from_slice(&range);
                    host.run(&order.with(placed(&room)))
                }
                Act::Compare(differs) => {
                    let mut bytes = expected;
                    bytes[length - 1] ^= u8::from(differs);
                    let mut done = host.run(&io(0x05, 1, lba, blocks).with(placed(&bytes)));
                    prop_assert_eq!(done.status, if differs { 0x285 } else { 0 });
                    done.status = 0;
                    done
                }
                Act::Verify => host.run(&io(0x0C, 1, lba, blocks)),
                Act::Flush => host.run(&io(0x00, 1, 0, 1)),
            };
            prop_assert_eq!(done.status, 0);
        }
        let length = u32::try_from(64 * block_bytes).unwrap();
        let all = host.run(&io(0x02, 1, 0, 64).with(Data::In(length)));
        prop_assert_eq!(all.data, stored(&map, 0, 64, block_bytes));
    }

    #[test]
    fn wherever_the_network_cuts_a_stream_the_answers_are_the_same(
        cuts in prop::collection::vec(1_usize..3000, 1..40),
        digests in any::<(bool, bool)>(),
    ) {
        use crate::host::Wire as _;
        let digests = Digests { header: digests.0, data: digests.1 };
        let answers = |cuts: &[usize]| {
            let rig = Rig::new(512);
            let (_admin, mut host) = rig.queues(digests, true);
            let mut input = Vec::new();
            for number in 0..6_u16 {
                let bytes = [u8::try_from(number).unwrap(); 2048];
                let write = io(0x01, 1, u64::from(number) * 4, 4).with(Data::Capsule(&bytes));
                input.extend(host.pdu(4, 0, &write.entry(10 + number), &bytes));
                let read = io(0x02, 1, 0, 16).with(Data::In(8192));
                input.extend(host.pdu(4, 0, &read.entry(20 + number), &[]));
            }
            let (mut rest, mut output) = (&input[..], Vec::new());
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                host.wire.send(now);
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            while let Some(byte) = host.wire.receive(1) {
                output.extend(byte);
            }
            (output, host.wire.is_over())
        };
        let whole = answers(&[usize::MAX]);
        prop_assert!(!whole.1 && whole.0.len() > 6 * 8192);
        prop_assert_eq!(answers(&cuts), whole);
    }
}

#[test]
fn a_write_of_the_largest_transfer_is_asked_for_and_a_larger_one_is_refused() {
    let rig = Rig::new(512);
    let (_admin, mut host) = rig.queues(Digests { header: true, data: true }, false);
    let bytes: Vec<u8> = (0..=250).cycle().take(512 << 10).collect();
    let done = host.run(&io(0x01, 1, 8, 1024).with(Data::Transfer(&bytes)));
    assert_eq!(done.status, 0);
    let back = host.run(&io(0x02, 1, 8, 1024).with(Data::In(512 << 10)));
    assert!(back.data == bytes, "what was written is read");
    let refused = host.run(&io(0x02, 1, 8, 1025).with(Data::In(1025 * 512)));
    assert_eq!((refused.status, refused.is_final), (0x02, true));
    assert!(u64::from(1025_u32) * 512 < SIZE);
}

#[test]
fn many_large_writes_at_once_are_asked_for_in_turn() {
    let rig = Rig::new(4096);
    let (_admin, mut host) = rig.queues(Digests::default(), true);
    let bytes = |number: u8| vec![number; 256 << 10];
    let data: Vec<Vec<u8>> = (0..20).map(bytes).collect();
    let ids: Vec<u16> = (0_u64..)
        .zip(&data)
        .map(|(number, bytes)| {
            host.submit(&io(0x01, 1, number * 64, 64).with(Data::Transfer(bytes)))
        })
        .collect();
    let (mut done, mut asked, mut open, mut most) = (0, 0, 0, 0);
    while done < ids.len() {
        let pdu = host.receive().unwrap();
        match pdu.kind() {
            9 => {
                open += 1;
                asked += 1;
                most = most.max(open);
                let index = ids.iter().position(|id| *id == pdu.u16_at(8)).unwrap();
                // The first waits a while, so that others are there.
                if asked > 1 || open > 1 {
                    host.send_data((ids[index], pdu.u16_at(10)), &data[index]);
                    open -= 1;
                    if asked == 2 {
                        let tag = pdu.u16_at(10) - 1;
                        host.send_data((ids[0], tag), &data[0]);
                        open -= 1;
                    }
                }
            }
            5 => done += 1,
            other => panic!("a PDU of kind {other}"),
        }
    }
    assert_eq!(asked, 20);
    assert!((2..=3).contains(&most), "768 KiB at once: {most}");
    for (number, bytes) in (0_u64..).zip(&data) {
        let back = host.run(&io(0x02, 1, number * 64, 64).with(Data::In(256 << 10)));
        assert!(back.data == *bytes, "write {number}");
    }
}
