//! A live drive behind the NVMe controller, with all of it in this process: the power of its disks
//! goes at any of their commands, and a host finds what it may find afterwards.
//!
//! ```text
//! initiator ──► session ──► controller ──► drive ──► simulated disks, cut and restored from seeds
//! ```

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself")]

#[expect(dead_code, reason = "the tests of the controller use the rest of it")]
#[path = "../../export/tests/nvme/host.rs"]
mod host;

use std::sync::Arc;

use blockio::Rng;
use export::nvme::Subsystem;
use export::{Export, Exports};
use live::simulation::{Disks, PACKED, PROTECTED};
use live::{Administration, Drive, DriveHealth, Identity, Shape, format};

use self::host::{Data, Digests, Host, Inner, Order, io};

const BLOCK_BYTES: usize = 4096;
const FUA: u32 = 1 << 30;
/// Opcodes of the NVM command set.
const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const WRITE_ZEROES: u8 = 0x08;
const DATASET_MANAGEMENT: u8 = 0x09;

#[derive(Debug)]
struct Told;

impl Administration for Told {
    fn identity(&self) -> Identity {
        Identity { number: 7, model: "Floatgate test".into(), firmware: "1".into() }
    }

    fn health(&self) -> DriveHealth {
        DriveHealth::default()
    }
}

/// A drive with parity that relocates soon.
const ROOMY: Shape =
    Shape { pages_logical: 24, pages_stored_max: 24, pages_mappable: 24, ..PROTECTED };

/// Versions that each block may have, the newest last; 0 is never written, or zeroed.
type Allowed = Vec<Vec<u32>>;

fn content(block: usize, version: u32) -> Vec<u8> {
    let mut rng = Rng::new((block as u64) << 32 | u64::from(version));
    let mut bytes = vec![0; BLOCK_BYTES];
    if version > 0 {
        // Half of it is compressible.
        bytes[..BLOCK_BYTES / 2].fill_with(|| rng.next_u64().to_le_bytes()[0]);
    }
    bytes
}

/// A host's admin queue and its queue for I/O, on a drive that was opened.
struct Life {
    _admin: Host<Inner>,
    queue: Host<Inner>,
    blocks: usize,
}

impl Life {
    fn begin(disks: &Disks) -> Self {
        let drive = Drive::open_media(disks.media()).unwrap();
        let (name, description) = ("data".to_owned(), String::new());
        let device = Arc::new(drive);
        let export = Export { name, description, device, is_read_only: false, pace: None };
        let blocks = usize::try_from(export.device.size()).unwrap() / BLOCK_BYTES;
        let exports = Exports::new(vec![export]).unwrap();
        let subsystem =
            Arc::new(Subsystem::new(&exports, Arc::new(Told), BLOCK_BYTES as u64).unwrap());
        let mut admin = Host::open(Inner::new(&subsystem), Digests::default(), 0);
        let controller = admin.begin(subsystem.nqn());
        let mut queue = Host::open(Inner::new(&subsystem), Digests::default(), 0);
        queue.begin_io((1, controller), subsystem.nqn(), true);
        Self { _admin: admin, queue, blocks }
    }

    fn is_done(&mut self, order: &Order<'_>) -> bool {
        self.queue.run(order).status == 0
    }

    /// Zeroes, or frees, some blocks.
    fn clear(&mut self, first: usize, count: usize, is_freed: bool) -> bool {
        let (lba, blocks) = (first as u64, u32::try_from(count).unwrap());
        if !is_freed {
            return self.is_done(&io(WRITE_ZEROES, 1, lba, blocks));
        }
        let range = [&[0; 4], &blocks.to_le_bytes()[..], &lba.to_le_bytes()].concat();
        self.is_done(&Order::new(DATASET_MANAGEMENT, 1, &[0, 4]).with(Data::Capsule(&range)))
    }

    /// Carries out a command at random, and returns whether it succeeded.
    fn step(&mut self, allowed: &mut Allowed, rng: &mut Rng, next: &mut u32) -> bool {
        let mut below = |limit: usize| usize::try_from(rng.below(limit as u64)).unwrap();
        let first = below(self.blocks);
        let count = 1 + below(3.min(self.blocks - first));
        let last = |versions: &mut Vec<u32>| drop(versions.drain(..versions.len() - 1));
        match below(10) {
            0 => {
                let is_done = self.is_done(&Order::new(FLUSH, 1, &[]));
                allowed.iter_mut().filter(|_| is_done).for_each(last);
                is_done
            }
            1 => {
                allowed[first..first + count].iter_mut().for_each(|versions| versions.push(0));
                self.clear(first, count, below(2) == 0)
            }
            2 => {
                let data = Data::In(u32::try_from(count * BLOCK_BYTES).unwrap());
                let blocks = u32::try_from(count).unwrap();
                let read = self.queue.run(&io(READ, 1, first as u64, blocks).with(data));
                let newest = (first..first + count).map(|block| *allowed[block].last().unwrap());
                let expected: Vec<u8> =
                    (first..).zip(newest).flat_map(|(block, it)| content(block, it)).collect();
                assert!(read.status != 0 || read.data == expected, "blocks from {first}");
                read.status == 0
            }
            kind => {
                let mut bytes = Vec::new();
                for (block, versions) in allowed.iter_mut().enumerate().skip(first).take(count) {
                    versions.push(*next);
                    bytes.extend(content(block, *next));
                    *next += 1;
                }
                let mut order = io(WRITE, 1, first as u64, u32::try_from(count).unwrap());
                let is_durable = kind == 3;
                order.dwords[2] |= if is_durable { FUA } else { 0 };
                let is_done = self.is_done(&order.with(Data::Capsule(&bytes)));
                let written = allowed[first..first + count].iter_mut();
                written.filter(|_| is_done && is_durable).for_each(last);
                is_done
            }
        }
    }

    /// Reads every block, and settles on what is found.
    fn check(&mut self, allowed: &mut Allowed, what: &str) {
        for (block, versions) in allowed.iter_mut().enumerate() {
            let data = Data::In(u32::try_from(BLOCK_BYTES).unwrap());
            let read = self.queue.run(&io(READ, 1, block as u64, 1).with(data));
            assert_eq!(read.status, 0, "block {block}: {what}");
            versions.retain(|version| read.data == content(block, *version));
            versions.truncate(1);
            assert!(!versions.is_empty(), "block {block} is what it cannot be: {what}");
        }
    }
}

/// Lives of a drive, each of which ends with its power.
fn live_and_die(shape: &Shape, seed: u64) {
    let mut rng = Rng::new(seed);
    let bytes = usize::try_from(shape.die_bytes().0).unwrap();
    let disks = Disks::new(shape.dies as usize, bytes, rng.split("disks"));
    format(disks.media(), shape, seed).unwrap();
    let (mut allowed, mut next) = (Allowed::new(), 1);
    for life in 0..4 {
        let what = format!("{shape:?}, seed {seed}, life {life}");
        let mut at = Life::begin(&disks);
        allowed.resize(at.blocks, vec![0]);
        at.check(&mut allowed, &what);
        disks.cut_after(1 + rng.below(400));
        while at.step(&mut allowed, &mut rng, &mut next) {}
        assert!(disks.is_cut(), "a command failed before: {what}");
        drop(at);
        disks.restore();
    }
    Life::begin(&disks).check(&mut allowed, &format!("{shape:?}, seed {seed}, at the end"));
}

#[test]
fn what_an_nvme_host_was_answered_survives_the_power_at_any_command_of_the_disks() {
    for seed in 0..150 {
        live_and_die(&ROOMY, seed);
        live_and_die(&PACKED, seed);
    }
}
