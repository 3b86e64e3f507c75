//! Laws of a drive that hosts operate: whatever commands of the NVM command set come between
//! formats and namespaces that come and go, each namespace holds what a plain map would, and each
//! command has the status that the map says.

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;

use crate::host::{Data, Host, Inner, Order, io};
use crate::operated::{Operated, controllers, copy, creation, format};

const UNRECOVERED_READ: u16 = 0x281;
const COMPARE_FAILURE: u16 = 0x285;
const LBA_OUT_OF_RANGE: u16 = 0x80;
const INVALID_NAMESPACE: u16 = 0x0B;
/// A namespace that exists, and is not attached to the controller.
const INACTIVE_NAMESPACE: u16 = 0x02;

/// A range, in shares of what a namespace has: some reach beyond its end.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    blocks: u32,
}

#[derive(Clone, Debug)]
enum Act {
    Read,
    /// With this byte.
    Write(u8),
    Zero(bool),
    Uncorrectable,
    /// This place, and these.
    Deallocate(Vec<Place>),
    /// Of these, one after the other.
    Copy(Vec<Place>),
    /// With the stored data, but for a bit if so.
    Compare(bool),
    Verify,
    Flush,
    /// Into blocks of 4096 bytes if so.
    Format(bool),
    Delete,
    /// With blocks of 4096 bytes if so.
    Create(u64, bool),
    Attach(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Holds(u8),
    Uncorrectable,
}

#[derive(Clone, Debug)]
struct Namespace {
    is_attached: bool,
    bytes: u64,
    block_bytes: u64,
    /// Blocks that are not zero.
    blocks: BTreeMap<u64, Block>,
}

fn place() -> impl Strategy<Value = Place> {
    (0_u64..80, 1_u32..=12).prop_map(|(at, blocks)| Place { at, blocks })
}

fn act() -> impl Strategy<Value = Act> {
    let places = || prop::collection::vec(place(), 1..4);
    prop_oneof![
        6 => Just(Act::Read),
        8 => any::<u8>().prop_map(Act::Write),
        2 => any::<bool>().prop_map(Act::Zero),
        3 => Just(Act::Uncorrectable),
        2 => places().prop_map(Act::Deallocate),
        4 => places().prop_map(Act::Copy),
        3 => any::<bool>().prop_map(Act::Compare),
        2 => Just(Act::Verify),
        1 => Just(Act::Flush),
        1 => any::<bool>().prop_map(Act::Format),
        1 => Just(Act::Delete),
        2 => (1_u64..24, any::<bool>()).prop_map(|(pages, is_large)| Act::Create(pages, is_large)),
        2 => any::<bool>().prop_map(Act::Attach),
    ]
}

impl Namespace {
    fn new(bytes: u64, is_large: bool) -> Self {
        let block_bytes = if is_large { 4096 } else { 512 };
        Self { is_attached: false, bytes, block_bytes, blocks: BTreeMap::new() }
    }

    fn count(&self) -> u64 {
        self.bytes / self.block_bytes
    }

    /// First block of a place: one in some lies beyond the end, or reaches there.
    fn first(&self, place: Place) -> u64 {
        place.at % (self.count() + 2)
    }

    fn range(&self, place: Place) -> Range<u64> {
        let first = self.first(place);
        first..first + u64::from(place.blocks)
    }

    fn block(&self, at: u64) -> Block {
        self.blocks.get(&at).copied().unwrap_or(Block::Holds(0))
    }

    fn set(&mut self, range: Range<u64>, block: Block) {
        self.blocks.extend(range.map(|at| (at, block)));
    }

    /// The data of a range, or the status that a command has that reads it.
    fn read(&self, range: Range<u64>) -> Result<Vec<u8>, u16> {
        self.check(&range)?;
        let mut bytes = Vec::new();
        for at in range {
            match self.block(at) {
                Block::Holds(byte) => {
                    bytes.extend(vec![byte; usize::try_from(self.block_bytes).unwrap()]);
                }
                Block::Uncorrectable => return Err(UNRECOVERED_READ),
            }
        }
        Ok(bytes)
    }

    fn check(&self, range: &Range<u64>) -> Result<(), u16> {
        if range.end <= self.count() { Ok(()) } else { Err(LBA_OUT_OF_RANGE) }
    }
}

fn status_of(result: Result<(), u16>) -> u16 {
    result.err().unwrap_or(0)
}

fn deallocation(id: u32, ranges: &[Range<u64>]) -> (Order<'static>, Vec<u8>) {
    let mut data = Vec::new();
    for range in ranges {
        data.extend([0; 4]);
        data.extend(u32::try_from(range.end - range.start).unwrap().to_le_bytes());
        data.extend(range.start.to_le_bytes());
    }
    (Order::new(0x09, id, &[u32::try_from(ranges.len()).unwrap() - 1, 4]), data)
}

/// A drive with its host, and what a map says of its namespaces.
struct Compared {
    rig: Operated,
    admin: Host<Inner>,
    queue: Host<Inner>,
    controller: u16,
    namespaces: BTreeMap<u32, Namespace>,
}

impl Compared {
    /// A drive of two namespaces.
    fn new() -> Self {
        let rig = Operated::new();
        let (mut admin, controller) = rig.admin();
        let mut queue = Host::open(Inner::new(&rig.subsystem), crate::host::Digests::default(), 0);
        queue.begin_io((1, controller), rig.subsystem.nqn(), true);
        assert_eq!(admin.run(&Order::new(0x0D, 1, &[1])).status, 0, "the whole drive is free");
        let mut own = Self { rig, admin, queue, controller, namespaces: BTreeMap::new() };
        for is_large in [false, true] {
            let id = own.create(8, is_large);
            own.attach(id, true);
        }
        own
    }

    fn create(&mut self, pages: u64, is_large: bool) -> u32 {
        let namespace = Namespace::new(pages * 4096, is_large);
        let data = creation(namespace.count(), u8::from(is_large));
        let made = self.admin.run(&Order::new(0x0D, 0, &[0]).with(Data::Capsule(&data)));
        let id = u32::try_from(made.value).unwrap();
        assert_eq!((made.status, self.namespaces.contains_key(&id)), (0, false));
        self.namespaces.insert(id, namespace);
        id
    }

    fn attach(&mut self, id: u32, is_attached: bool) {
        let list = controllers(&[self.controller]);
        let order = Order::new(0x15, id, &[u32::from(!is_attached)]).with(Data::Capsule(&list));
        let status = self.admin.run(&order).status;
        let expected = match self.namespaces.get_mut(&id) {
            None => INVALID_NAMESPACE,
            Some(it) if it.is_attached == is_attached => [0x11A, 0x118][usize::from(is_attached)],
            Some(it) => {
                it.is_attached = is_attached;
                0
            }
        };
        assert_eq!(status, expected, "attaching, or detaching");
    }

    /// Carries out an act on namespace `id` and on its map.
    fn act(&mut self, id: u32, place: Place, act: Act) {
        match act {
            Act::Create(pages, is_large) if self.namespaces.len() < 3 => {
                let id = self.create(pages, is_large);
                self.attach(id, true);
            }
            Act::Create(..) => {}
            Act::Attach(is_attached) => self.attach(id, is_attached),
            Act::Delete => {
                let status = self.admin.run(&Order::new(0x0D, id, &[1])).status;
                let was_there = self.namespaces.remove(&id).is_some();
                assert_eq!(status, if was_there { 0 } else { INVALID_NAMESPACE });
            }
            Act::Format(is_large) => {
                let order = Order::new(0x80, id, &[u32::from(is_large)]);
                let Some(namespace) = self.namespaces.get_mut(&id) else {
                    assert_eq!(self.admin.run(&order).status, INVALID_NAMESPACE);
                    return;
                };
                assert_eq!(format(&self.rig, &mut self.admin, &order).status, 0);
                let is_attached = namespace.is_attached;
                *namespace = Namespace { is_attached, ..Namespace::new(namespace.bytes, is_large) };
            }
            other => self.act_on_blocks(id, place, &other),
        }
    }

    fn act_on_blocks(&mut self, id: u32, place: Place, act: &Act) {
        let queue = &mut self.queue;
        let missing = match self.namespaces.get(&id) {
            None => INVALID_NAMESPACE,
            Some(namespace) if !namespace.is_attached => INACTIVE_NAMESPACE,
            Some(_) => 0,
        };
        if missing != 0 {
            let done = queue.run(&io(0x02, id, 0, 1).with(Data::In(512)));
            assert_eq!(done.status, missing, "namespace {id}");
            return;
        }
        let namespace = self.namespaces.get_mut(&id).unwrap();
        let range = namespace.range(place);
        let (status, expected) = carried_out(queue, id, namespace, place, act);
        assert_eq!(status, status_of(expected), "{act:?} of {range:?}, namespace {id}");
        if status == 0 {
            match act {
                Act::Write(byte) => namespace.set(range, Block::Holds(*byte)),
                Act::Zero(_) => namespace.set(range, Block::Holds(0)),
                Act::Uncorrectable => namespace.set(range, Block::Uncorrectable),
                _ => {}
            }
        }
    }

    /// Reads every block of every namespace.
    fn check_all(&mut self) {
        for (id, namespace) in self.namespaces.iter().filter(|(_, it)| it.is_attached) {
            let length = u32::try_from(namespace.block_bytes).unwrap();
            for at in 0..namespace.count() {
                let done = self.queue.run(&io(0x02, *id, at, 1).with(Data::In(length)));
                match namespace.read(at..at + 1) {
                    Ok(expected) => assert!(done.data == expected, "block {at} of {id}"),
                    Err(status) => assert_eq!(done.status, status, "block {at} of {id}"),
                }
            }
        }
    }
}

/// Carries out a command on blocks. Returns its status, and what the map says of it; the map has
/// the changes of Dataset Management and Copy then.
fn carried_out(
    queue: &mut Host<Inner>,
    id: u32,
    namespace: &mut Namespace,
    place: Place,
    act: &Act,
) -> (u16, Result<(), u16>) {
    let range = namespace.range(place);
    let order = |opcode| io(opcode, id, range.start, place.blocks);
    let length = u64::from(place.blocks) * namespace.block_bytes;
    let length = usize::try_from(length).unwrap();
    let checked = namespace.check(&range);
    match act {
        Act::Read => {
            let length = u32::try_from(length).unwrap();
            let done = queue.run(&order(0x02).with(Data::In(length)));
            let expected = namespace.read(range.clone());
            if let Ok(expected) = &expected {
                assert!(done.data == *expected, "{range:?} of namespace {id}");
            }
            (done.status, expected.map(drop))
        }
        Act::Write(byte) => {
            let bytes = vec![*byte; length];
            let is_small = length <= 4096;
            let data = if is_small { Data::Capsule(&bytes) } else { Data::Transfer(&bytes) };
            (queue.run(&order(0x01).with(data)).status, checked)
        }
        Act::Zero(deallocates) => {
            let mut order = order(0x08);
            order.dwords[2] |= u32::from(*deallocates) << 25;
            (queue.run(&order).status, checked)
        }
        Act::Uncorrectable => (queue.run(&order(0x04)).status, checked),
        Act::Compare(differs) => {
            let expected = namespace.read(range.clone());
            let mut bytes = expected.clone().unwrap_or_else(|_| vec![0; length]);
            bytes[length - 1] ^= u8::from(*differs);
            let status = queue.run(&order(0x05).with(Data::Transfer(&bytes))).status;
            let compared = if *differs { Err(COMPARE_FAILURE) } else { Ok(()) };
            (status, expected.and(compared))
        }
        Act::Verify => (queue.run(&order(0x0C)).status, namespace.read(range.clone()).map(drop)),
        Act::Flush => (queue.run(&io(0x00, id, 0, 1)).status, Ok(())),
        Act::Deallocate(more) => {
            let mut ranges = vec![range.clone()];
            ranges.extend(more.iter().map(|it| namespace.range(*it)));
            let (order, data) = deallocation(id, &ranges);
            let expected = ranges.iter().try_for_each(|it| namespace.check(it));
            if expected.is_ok() {
                for range in ranges {
                    namespace.set(range, Block::Holds(0));
                }
            }
            (queue.run(&order.with(Data::Capsule(&data))).status, expected)
        }
        Act::Copy(sources) => copied(queue, id, namespace, range.start, sources),
        Act::Format(_) | Act::Delete | Act::Create(..) | Act::Attach(_) => {
            unreachable!("an act on a whole namespace")
        }
    }
}

/// Copies, and returns the status and what the map says of it.
fn copied(
    queue: &mut Host<Inner>,
    id: u32,
    namespace: &mut Namespace,
    to: u64,
    sources: &[Place],
) -> (u16, Result<(), u16>) {
    let ranges: Vec<(u64, u16)> = sources
        .iter()
        .map(|it| (namespace.first(*it), u16::try_from(it.blocks).unwrap()))
        .collect();
    let status = copy(queue, id, to, &ranges);
    let blocks: u64 = sources.iter().map(|it| u64::from(it.blocks)).sum();
    let sources: Vec<_> = sources.iter().map(|it| namespace.range(*it)).collect();
    let destination = to..to + blocks;
    let mut places = sources.iter().chain([&destination]);
    let fits = places.try_for_each(|it| namespace.check(it));
    let expected = fits.and_then(|()| {
        let all = sources.iter().cloned().flatten();
        let all: Vec<Block> = all.map(|at| namespace.block(at)).collect();
        if all.contains(&Block::Uncorrectable) { Err(UNRECOVERED_READ) } else { Ok(all) }
    });
    let expected = expected.map(|all| namespace.blocks.extend((to..).zip(all)));
    (status, expected)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn namespaces_that_come_and_go_hold_what_maps_would(
        steps in prop::collection::vec((1_u32..4, place(), act()), 1..80),
    ) {
        let mut compared = Compared::new();
        for (id, place, act) in steps {
            compared.act(id, place, act);
        }
        compared.check_all();
    }
}
