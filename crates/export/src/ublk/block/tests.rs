//! Requests without a kernel: their data lies in a map.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use device::{Allocation, Device, MemoryDevice};
use proptest::prelude::*;

use super::*;

const SECTORS: u32 = 256;
/// Tags.
const DEPTH: u16 = 16;

/// A device in memory that counts flushes, and may refuse them.
#[derive(Debug)]
struct Counting {
    memory: MemoryDevice,
    flushes: AtomicU32,
    refuses: bool,
    is_through: bool,
}

impl Device for Counting {
    fn size(&self) -> u64 {
        self.memory.size()
    }

    fn is_write_through(&self) -> bool {
        self.is_through
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.memory.read(offset, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        self.memory.write(offset, bytes, durability)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        let reason = "a die failed".to_owned();
        if self.refuses { Err(DeviceError::Poisoned { reason }) } else { self.memory.flush() }
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        self.memory.trim(offset, length, durability)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.memory.allocations(offset, length)
    }
}

struct Rig {
    device: Arc<Counting>,
    block: Block,
    buffers: Buffers,
}

impl Rig {
    fn new(is_through: bool, is_read_only: bool, refuses: bool) -> Self {
        let memory = MemoryDevice::new(u64::from(SECTORS) * SECTOR_BYTES);
        let device = Arc::new(Counting { memory, flushes: AtomicU32::new(0), refuses, is_through });
        let (name, description) = (String::new(), String::new());
        let served = Arc::<Counting>::clone(&device);
        let export = Export { name, description, device: served, is_read_only, pace: None };
        Self { device, block: Block::new(Arc::new(export)), buffers: Buffers::new(DEPTH) }
    }

    fn carry_out(&mut self, requests: &[TaggedRequest]) -> Vec<i32> {
        let done = self.block.carry_out(&mut self.buffers, requests);
        done.iter().map(|it| it.result).collect()
    }

    /// The memory of a tag, for a request of `sectors`.
    fn data(&mut self, tag: u16, sectors: u32) -> &mut [u8] {
        self.buffers.get(tag, Place { offset: 0, length: u64::from(sectors) * 512 }).unwrap()
    }

    fn flushes(&self) -> u32 {
        self.device.flushes.load(Ordering::Relaxed)
    }
}

fn tagged(tag: u16, kind: u8, first_sector: u64, sectors: u32) -> TaggedRequest {
    let request = Descriptor { kind, is_fua: false, may_unmap: true, sectors, first_sector };
    TaggedRequest { tag, request }
}

#[test]
fn writes_to_a_device_without_a_write_cache_are_durable_once_answered() {
    for (is_through, flushes) in [(true, 1), (false, 0)] {
        let mut rig = Rig::new(is_through, false, false);
        rig.data(0, 1).fill(1);
        rig.data(1, 2).fill(2);
        let writes = [tagged(0, kind::WRITE, 0, 1), tagged(1, kind::WRITE, 8, 2)];
        assert_eq!(rig.carry_out(&writes), [512, 1024]);
        assert_eq!(rig.flushes(), flushes, "one for the batch, or none");
    }
}

#[test]
fn a_write_that_is_to_be_durable_and_a_flush_share_a_flush() {
    let mut rig = Rig::new(false, false, false);
    rig.data(0, 1).fill(1);
    let mut durable = tagged(0, kind::WRITE, 0, 1);
    durable.request.is_fua = true;
    let done = rig.block.carry_out(&mut rig.buffers, &[durable, tagged(1, kind::FLUSH, 0, 0)]);
    assert_eq!(done.iter().map(|it| it.result).collect::<Vec<_>>(), [512, 0]);
    let fua = done.iter().map(|it| it.asked.map(|asked| asked.fua)).collect::<Vec<_>>();
    assert_eq!(fua, [Some(true), Some(false)], "as the model gets them");
    assert_eq!(rig.flushes(), 1);
}

#[test]
fn a_refused_flush_fails_what_waited_for_it_alone() {
    let mut rig = Rig::new(false, false, true);
    rig.data(1, 1).fill(1);
    let requests =
        [tagged(0, kind::READ, 0, 1), tagged(1, kind::WRITE, 0, 1), tagged(2, kind::FLUSH, 0, 0)];
    assert_eq!(rig.carry_out(&requests), [512, 512, -Errno::IO.raw_os_error()]);
}

#[test]
fn what_cannot_be_carried_out_is_an_error_of_its_request() {
    let mut rig = Rig::new(false, true, false);
    rig.data(0, 1).fill(1);
    let requests = [
        tagged(0, kind::WRITE, 0, 1),
        tagged(1, kind::DISCARD, 0, 8),
        tagged(2, kind::READ, u64::from(SECTORS), 1),
        tagged(3, kind::READ, u64::MAX, 1),
        tagged(4, 9, 0, 1),
        tagged(5, kind::READ, 0, 1),
    ];
    let [read_only, beyond, unsupported] =
        [Errno::ROFS, Errno::IO, Errno::OPNOTSUPP].map(|it| -it.raw_os_error());
    let expected = [read_only, read_only, beyond, beyond, unsupported, 512];
    assert_eq!(rig.carry_out(&requests), expected);
}

#[test]
fn zeroes_that_may_not_be_unmapped_are_stored() {
    for (may_unmap, is_stored) in [(true, false), (false, true)] {
        let mut rig = Rig::new(false, false, false);
        rig.data(0, 128).fill(7);
        let mut zeroes = tagged(1, kind::WRITE_ZEROES, 0, 128);
        zeroes.request.may_unmap = may_unmap;
        let results = rig.carry_out(&[tagged(0, kind::WRITE, 0, 128), zeroes]);
        assert_eq!(results, [64 << 10, 0]);
        let allocated = rig.device.allocations(0, 64 << 10).unwrap();
        assert_eq!(allocated, [Allocation { length: 64 << 10, is_stored }]);
        let mut read = vec![1; 64 << 10];
        rig.device.read(0, &mut read).unwrap();
        assert!(read.iter().all(|byte| *byte == 0));
    }
}

proptest! {
    #[test]
    fn batches_of_requests_do_what_a_map_of_sectors_does(
        batches in prop::collection::vec(
            prop::collection::vec((0..4_u8, 0..SECTORS - 20, 1..20_u32, any::<u8>()), 1..12),
            1..6,
        ),
    ) {
        let mut rig = Rig::new(false, false, false);
        let mut map = vec![0_u8; SECTORS as usize];
        for batch in batches {
            let mut requests = Vec::new();
            let mut expected = BTreeMap::new();
            for (tag, (kind, first, sectors, value)) in (0..).zip(batch) {
                let kind = [kind::READ, kind::WRITE, kind::DISCARD, kind::WRITE_ZEROES]
                    [usize::from(kind)];
                let range = first as usize..(first + sectors) as usize;
                match kind {
                    kind::READ => {
                        let sectors = map[range].iter();
                        expected.insert(tag, sectors.flat_map(|it| [*it; 512]).collect::<Vec<_>>());
                    }
                    kind::WRITE => {
                        rig.data(tag, sectors).fill(value);
                        map[range].fill(value);
                    }
                    _ => map[range].fill(0),
                }
                requests.push(tagged(tag, kind, first.into(), sectors));
            }
            prop_assert!(rig.carry_out(&requests).iter().all(|result| *result >= 0));
            for (tag, expected) in expected {
                let sectors = u32::try_from(expected.len() / 512).unwrap();
                prop_assert!(rig.data(tag, sectors) == expected);
            }
        }
    }
}
