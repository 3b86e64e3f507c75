//! A fast class before a slow one at work: two drives, and the transfers between them.
//!
//! ```text
//!  request ─► plan of the tier ─► requests to the classes ─► the last one ends it
//!                                                              └─► admissions, destaging
//! ```
//!
//! Nothing here takes time of its own: the host of the whole drive has counted the request, and
//! the classes have hosts that cost nothing.
//!
//! **Invariants**: a plan waits for as many requests to the classes as are under way for it.

use std::collections::{BTreeMap, VecDeque};

use blockio::{Completion, Lba, Nanos, Op, Request, Status};
use tier::{Block, Class, Classes, Destage, Direction, Plan, Tier, Transfer};

use crate::drive::{Drive, Setup};
use crate::module::Extent;
use crate::spec::{DriveSpec, SpecError, TierSpec};

const SECTORS_PER_BLOCK: u32 = 8;
/// Longest request to a class, in blocks.
const REQUEST_BLOCKS_MAX: u32 = 4096;

/// Two drives as one.
#[derive(Clone, Debug)]
pub(crate) struct ClassPair {
    tier: Tier,
    /// Policy and sizes of which a purge makes the tier anew.
    spec: TierSpec,
    sizes: Classes,
    /// The fast class, then the slow one.
    drives: [Drive; 2],
    /// Requests that the host is still busy with, by the time at which they reach the tier, and
    /// their number.
    arriving: BTreeMap<(Nanos, u64), Arrival>,
    arrivals: u64,
    /// Requests to the classes that are under way, by their tags.
    flows: Slots<Flow>,
    plans: Slots<PlanUnderWay>,
    destages: Slots<DestageUnderWay>,
    /// Writes without room on the fast class, in order.
    waiting: VecDeque<PendingWrite>,
    /// Time at which the classes are looked at next, of the event that is pending for it.
    wakes_at: Nanos,
    /// Status of a transfer in the background that failed: nothing is written after that.
    failure: Option<Status>,
}

/// Request of the host that reaches the tier.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    slot: u32,
    op: Op,
    first: Block,
    blocks: u32,
}

/// Values with numbers that are used again.
#[derive(Clone, Debug)]
struct Slots<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

/// Request to a class.
#[derive(Clone, Copy, Debug)]
struct Flow {
    purpose: Purpose,
    transfer: Transfer,
    /// Blocks outstanding on the class when it began.
    outstanding: u32,
    began_at: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Host { plan: u32 },
    Admission,
    Destage { index: u32 },
    Flush { plan: u32 },
}

/// Part of a request of the host.
#[derive(Clone, Debug)]
struct PlanUnderWay {
    slot: u32,
    left: u32,
    status: Status,
    after: Vec<Transfer>,
}

#[derive(Clone, Debug)]
struct DestageUnderWay {
    destage: Destage,
    left: u32,
    is_writing: bool,
}

#[derive(Clone, Copy, Debug)]
struct PendingWrite {
    slot: u32,
    first: Block,
    blocks: u32,
}

/// End of a part of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartEnd {
    pub(crate) slot: u32,
    pub(crate) at: Nanos,
    pub(crate) status: Status,
}

impl ClassPair {
    /// Purged classes of `spec`, set up as `setup` says.
    ///
    /// # Errors
    /// Says what a class or the policy refuses, such as a time lapse that leaves too little.
    pub(crate) fn new(spec: &DriveSpec, tier: &TierSpec, setup: &Setup) -> Result<Self, SpecError> {
        let place = &spec.name;
        let [fast, slow] = spec.classes(tier)?;
        let made = |key: &str, class: &DriveSpec, seed: u64| {
            let format = class.formats_for_any_data().into_iter().next().ok_or_else(|| {
                let text =
                    format!("tier.{key} is {:?}, which has no format for any data", class.name);
                SpecError { place: place.clone(), text }
            })?;
            let setup = Setup { format, host: class.hosts[0].name.clone(), seed, ..setup.clone() };
            Drive::new(class, &setup).map_err(|error| SpecError {
                place: place.clone(),
                text: format!("{key} class {error}"),
            })
        };
        let drives =
            [made("fast", &fast, setup.seed)?, made("slow", &slow, setup.seed.wrapping_add(1))?];
        let [fast_sectors, slow_sectors] = drives.each_ref().map(Drive::user_sectors);
        let sizes = Classes {
            fast_blocks: tier.fast_blocks(fast_sectors, setup.time_lapse),
            slow_blocks: slow_sectors / u64::from(SECTORS_PER_BLOCK),
            time_lapse: setup.time_lapse,
        };
        Ok(Self {
            tier: made_of(tier, &sizes, place)?,
            spec: tier.clone(),
            sizes,
            drives,
            arriving: BTreeMap::new(),
            arrivals: 0,
            flows: Slots::new(),
            plans: Slots::new(),
            destages: Slots::new(),
            waiting: VecDeque::new(),
            wakes_at: Nanos::MAX,
            failure: None,
        })
    }

    /// Sectors that the host can have.
    pub(crate) fn sectors(&self) -> u64 {
        u64::from(self.tier.blocks()) * u64::from(SECTORS_PER_BLOCK)
    }

    pub(crate) const fn drives(&self) -> &[Drive; 2] {
        &self.drives
    }

    pub(crate) const fn drives_mut(&mut self) -> &mut [Drive; 2] {
        &mut self.drives
    }

    pub(crate) const fn tier(&self) -> &Tier {
        &self.tier
    }

    /// Takes a request of the host that reaches the tier at `at`, which may be to come; returns the
    /// parts that it waits for, at least one.
    pub(crate) fn submit(&mut self, slot: u32, (op, extent): (Op, Extent), at: Nanos) -> u32 {
        let first = block_of(extent.first);
        let end = block_of((extent.first + u64::from(extent.sectors)).next_multiple_of(8));
        let blocks = end - first;
        self.arrivals += 1;
        self.arriving.insert((at, self.arrivals), Arrival { slot, op, first, blocks });
        if op == Op::Write { blocks.div_ceil(self.piece_blocks()) } else { 1 }
    }

    /// Longest piece of a write.
    fn piece_blocks(&self) -> u32 {
        self.tier.write_blocks_max().max(1)
    }

    /// A request of the host has reached the tier.
    fn arrive(&mut self, arrival: Arrival, at: Nanos) {
        let Arrival { slot, op, first, blocks } = arrival;
        match op {
            Op::Read => {
                let plan = self.tier.read((first, blocks), at);
                self.begin_plan(slot, plan, at);
            }
            Op::Write => {
                let longest = self.piece_blocks();
                for before in (0..blocks).step_by(longest as usize) {
                    let blocks = (blocks - before).min(longest);
                    self.waiting.push_back(PendingWrite { slot, first: first + before, blocks });
                }
                self.begin_writes(at);
            }
            Op::Trim => {
                let awaited = self.tier.trim((first, blocks));
                self.begin_plan(slot, Plan { awaited, after: Vec::new() }, at);
            }
            Op::Flush => {
                let plan = self.plans.take(PlanUnderWay::new(slot, 2, Vec::new()));
                for class in [Class::Fast, Class::Slow] {
                    let (direction, first, blocks) = (Direction::Write, 0, 0);
                    let transfer = Transfer { class, direction, first, blocks };
                    self.request(Purpose::Flush { plan }, transfer, at);
                }
            }
        }
    }

    /// Begins writes that wait, as far as there is room.
    fn begin_writes(&mut self, at: Nanos) {
        while let Some(write) = self.waiting.front().copied() {
            if !self.tier.has_room(write.blocks) {
                break;
            }
            self.waiting.pop_front();
            let plan = match self.failure {
                Some(_) => Plan::default(),
                None => self.tier.write((write.first, write.blocks), at),
            };
            let index = self.begin_plan(write.slot, plan, at);
            if let Some(status) = self.failure {
                self.plans.get_mut(index).status = status;
            }
        }
        while let Some(destage) = self.tier.destage() {
            self.begin_destage(destage, at);
        }
    }

    fn begin_plan(&mut self, slot: u32, plan: Plan, at: Nanos) -> u32 {
        let left = requests_of(&plan.awaited);
        let index = self.plans.take(PlanUnderWay::new(slot, left.max(1), plan.after));
        if left == 0 {
            // Nothing moves: a class tells that the time has come.
            let (direction, first, blocks) = (Direction::Write, 0, 0);
            let transfer = Transfer { class: Class::Fast, direction, first, blocks };
            self.request(Purpose::Host { plan: index }, transfer, at);
        }
        for transfer in plan.awaited {
            self.transfer(Purpose::Host { plan: index }, transfer, at);
        }
        index
    }

    fn begin_destage(&mut self, destage: Destage, at: Nanos) {
        let reads = destage.reads.clone();
        let left = requests_of(&reads);
        let index = self.destages.take(DestageUnderWay { destage, left, is_writing: false });
        if left == 0 {
            // All of it was overwritten on the fast class.
            self.destage_step(index, at);
        }
        for transfer in reads {
            self.transfer(Purpose::Destage { index }, transfer, at);
        }
    }

    /// All reads of a unit, or all its writes, have ended.
    fn destage_step(&mut self, index: u32, at: Nanos) {
        let under_way = self.destages.get_mut(index);
        assert_eq!(under_way.left, 0, "a step of destaging ends with the last of its requests");
        let writes = under_way.destage.writes.clone();
        let left = requests_of(&writes);
        if under_way.is_writing || left == 0 {
            let done = self.destages.release(index);
            self.tier.destaged(&done.destage);
            return;
        }
        (under_way.is_writing, under_way.left) = (true, left);
        for transfer in writes {
            self.transfer(Purpose::Destage { index }, transfer, at);
        }
    }

    /// Carries out a transfer, by several requests if it is long.
    fn transfer(&mut self, purpose: Purpose, transfer: Transfer, at: Nanos) {
        for begin in (0..transfer.blocks).step_by(REQUEST_BLOCKS_MAX as usize) {
            let blocks = (transfer.blocks - begin).min(REQUEST_BLOCKS_MAX);
            let part = Transfer { first: transfer.first + begin, blocks, ..transfer };
            self.request(purpose, part, at);
        }
    }

    fn request(&mut self, purpose: Purpose, transfer: Transfer, at: Nanos) {
        let outstanding = self.tier.begin(&transfer);
        let flow = Flow { purpose, transfer, outstanding, began_at: at };
        let op = match transfer.direction {
            _ if transfer.blocks == 0 => Op::Flush,
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
            Direction::Trim => Op::Trim,
        };
        let request = Request {
            tag: self.flows.take(flow),
            thread: 0,
            op,
            handle: 0,
            lba: Lba(u64::from(transfer.first) * u64::from(SECTORS_PER_BLOCK)),
            sectors: transfer.blocks * SECTORS_PER_BLOCK,
        };
        self.drives[transfer.class as usize].submit(at, request);
    }

    /// Lets the classes do what is due by `at`; `ended` takes the parts of requests that are done.
    pub(crate) fn step(&mut self, at: Nanos, mut ended: impl FnMut(PartEnd)) {
        if at >= self.wakes_at {
            self.wakes_at = Nanos::MAX;
        }
        loop {
            let next = self.drives.iter_mut().find_map(|drive| drive.next_completion(at));
            let Some(done) = next else { break };
            if let Some(part) = self.completed(&done) {
                ended(part);
            }
            self.begin_writes(done.completed_at.max(at));
        }
        while let Some((time, arrival)) = self.next_arrival(at) {
            debug_assert!(time == at, "a request is seen when it arrives");
            self.arrive(arrival, at);
        }
    }

    /// The next request that has reached the tier by `at`.
    fn next_arrival(&mut self, at: Nanos) -> Option<(Nanos, Arrival)> {
        let entry = self.arriving.first_entry().filter(|entry| entry.key().0 <= at)?;
        let ((time, _), arrival) = entry.remove_entry();
        Some((time, arrival))
    }

    /// A class has carried out a request; returns the part of a request that ended with it.
    fn completed(&mut self, done: &Completion) -> Option<PartEnd> {
        let flow = self.flows.release(done.tag);
        let at = done.completed_at;
        self.tier.end(&flow.transfer, flow.outstanding, at.saturating_sub(flow.began_at));
        match flow.purpose {
            Purpose::Host { plan } | Purpose::Flush { plan } => {
                let under_way = self.plans.get_mut(plan);
                under_way.left -= 1;
                if done.status != Status::Ok {
                    under_way.status = done.status;
                }
                if under_way.left > 0 {
                    return None;
                }
                let PlanUnderWay { slot, status, after, .. } = self.plans.release(plan);
                for transfer in after {
                    self.transfer(Purpose::Admission, transfer, at);
                }
                Some(PartEnd { slot, at, status })
            }
            Purpose::Admission => {
                self.note_failure(done.status);
                None
            }
            Purpose::Destage { index } => {
                self.note_failure(done.status);
                let under_way = self.destages.get_mut(index);
                under_way.left -= 1;
                if under_way.left == 0 {
                    self.destage_step(index, at);
                }
                None
            }
        }
    }

    fn note_failure(&mut self, status: Status) {
        if status != Status::Ok {
            self.failure.get_or_insert(status);
        }
    }

    /// Writes `sectors` from `lba` on in no time, long ago: the slow class has them. Returns false
    /// where a class takes no writes.
    pub(crate) fn age(&mut self, lba: Lba, sectors: u32) -> bool {
        let first = block_of(lba.0);
        let end = block_of((lba.0 + u64::from(sectors)).next_multiple_of(8));
        let writes = self.tier.age((first, end - first));
        writes.iter().all(|write| {
            let lba = Lba(u64::from(write.first) * u64::from(SECTORS_PER_BLOCK));
            self.drives[write.class as usize].age(lba, write.blocks * SECTORS_PER_BLOCK)
        })
    }

    /// Time at which the classes are to be looked at, if no event is pending for it yet.
    pub(crate) fn wake(&mut self) -> Option<Nanos> {
        let arrival = self.arriving.first_key_value().map(|((at, _), _)| *at);
        let next = self.drives.iter().filter_map(Drive::next_event).chain(arrival).min()?;
        (next < self.wakes_at).then(|| {
            self.wakes_at = next;
            next
        })
    }

    /// Slots of the requests that wait for a part, once for each.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u32> {
        let plans = self.plans.values.iter().flatten().map(|plan| plan.slot);
        let arriving = self.arriving.values().flat_map(|arrival| {
            let Arrival { slot, op, blocks, .. } = *arrival;
            let pieces = if op == Op::Write { blocks.div_ceil(self.piece_blocks()) } else { 1 };
            (0..pieces).map(move |_| slot)
        });
        plans.chain(self.waiting.iter().map(|write| write.slot)).chain(arriving)
    }

    /// Returns to the state before the first write, wear apart.
    pub(crate) fn purge(&mut self) {
        self.drives.iter_mut().for_each(Drive::purge);
        let tier = Tier::new(&self.spec.policy, &self.sizes);
        self.tier = tier.expect("it was made of these before");
        (self.flows, self.plans, self.destages) = (Slots::new(), Slots::new(), Slots::new());
        self.waiting.clear();
        self.arriving.clear();
        (self.wakes_at, self.failure) = (Nanos::MAX, None);
    }
}

impl PlanUnderWay {
    const fn new(slot: u32, left: u32, after: Vec<Transfer>) -> Self {
        Self { slot, left, status: Status::Ok, after }
    }
}

impl<T> Slots<T> {
    const fn new() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }

    fn take(&mut self, value: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.values[index as usize] = Some(value);
            return index;
        }
        self.values.push(Some(value));
        u32::try_from(self.values.len() - 1).expect("fewer than 2^32 are under way")
    }

    fn get_mut(&mut self, index: u32) -> &mut T {
        self.values[index as usize].as_mut().expect("it is under way")
    }

    fn release(&mut self, index: u32) -> T {
        let value = self.values[index as usize].take();
        self.free.push(index);
        value.expect("it was under way")
    }
}

fn made_of(tier: &TierSpec, sizes: &Classes, place: &str) -> Result<Tier, SpecError> {
    Tier::new(&tier.policy, sizes)
        .map_err(|error| SpecError { place: place.to_owned(), text: format!("tier.{error}") })
}

/// Requests by which transfers are carried out.
fn requests_of(transfers: &[Transfer]) -> u32 {
    transfers.iter().map(|transfer| transfer.blocks.div_ceil(REQUEST_BLOCKS_MAX)).sum()
}

fn block_of(sector: u64) -> Block {
    Block::try_from(sector / u64::from(SECTORS_PER_BLOCK)).expect("checked: inside the drive")
}
