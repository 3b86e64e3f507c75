//! Fault injection: power cuts, failed dies, bit flips, stalls and lack of space, by command or by
//! a schedule with a seed.
//!
//! ```text
//!  client ─► Injecting device ─► Drive ─► Injecting media ─► files
//!                  │ counts, fills up           │ cuts, fails, flips, stalls
//!                  └────────── FaultInjector ─────┘
//! ```
//!
//! A medium keeps what sectors held that were written since the last sync. When the power goes each
//! of them is what it was, or what was written, or part of both. Where that would take too much
//! memory, the sectors written longest ago count as having survived, as those do that a disk has
//! written back by itself.

mod device;

mod medium;
mod schedule;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use ::device::Device;
use blockio::Rng;

use self::device::InjectingDevice;
use self::medium::InjectedDie;
pub use self::schedule::{InjectionTime, Schedule, ScheduleError, scenario};
use crate::lock::lock;
use crate::{BufferMemory, Medium};
pub use status::Fault;

/// Interval at which the clock of a schedule is checked.
const TICK: Duration = Duration::from_millis(20);

/// Injects a fault that NVMe hosts see.
pub type HostFaults = dyn Fn(Fault) -> io::Result<()> + Send + Sync;

/// Injects faults into a drive, by command and by a schedule.
pub struct FaultInjector {
    begun: Instant,
    rng: Mutex<Rng>,
    /// By index; none where a die was missing from the beginning.
    dies: Mutex<Vec<Option<Arc<InjectedDie>>>>,
    stalled_until: Mutex<Option<Instant>>,
    /// Bytes that may still be written, once the drive is filled up.
    space_left: Mutex<Option<u64>>,
    /// Reads that are still to fail.
    failing_reads: AtomicU32,
    /// Injects the faults that NVMe hosts see.
    hosts: OnceLock<Box<HostFaults>>,
    /// Memory that a power cut empties.
    buffer: OnceLock<Arc<dyn BufferMemory>>,
    /// Commands of clients so far, and the reads among them.
    commands: AtomicU64,
    reads: AtomicU64,
    /// Faults that a host ordered.
    ordered: Mutex<Vec<OrderedFaults>>,
    planned: Mutex<Vec<(InjectionTime, Fault)>>,
    /// The power is gone.
    is_cut: AtomicBool,
    /// Called once the power is cut, with an error if the cut is incomplete; the owner decides what
    /// follows.
    on_cut: fn(&io::Result<()>),
    /// Called with each scheduled fault that could not be injected, and why.
    on_refused: fn(Fault, &io::Error),
}

/// Thread that injects faults which are due.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// Thread of a client, in the middle of its command.
    Client,
    /// Thread that keeps the time.
    Clock,
}

impl Caller {
    /// True if it may inject a fault. Those that hosts see wait for commands under way to end, of
    /// which that of the client would be one.
    fn may_inject(self, fault: &Fault) -> bool {
        self == Self::Clock || !is_of_hosts(fault)
    }
}

/// True if NVMe hosts see a fault, not the dies.
const fn is_of_hosts(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::ResetControllers {}
            | Fault::FailControllers {}
            | Fault::Remove { .. }
            | Fault::FailWrites { .. }
            | Fault::FailPlp {}
            | Fault::Heat { .. }
            | Fault::Wear { .. }
    )
}

/// Faults that a host ordered, which come together.
struct OrderedFaults {
    number: usize,
    /// Read of the clients with which they come.
    at_read: u64,
    faults: Vec<Fault>,
}

impl FaultInjector {
    /// Injects the faults of a schedule, and those of [`Self::inject`]. `on_cut` is called after a
    /// power cut, with an error if the data of a die could not be changed; `on_refused` for each
    /// scheduled fault that could not be injected, such as one of a die that has failed by then.
    pub fn new(
        schedule: Schedule,
        on_cut: fn(&io::Result<()>),
        on_refused: fn(Fault, &io::Error),
    ) -> Arc<Self> {
        let Schedule { seed, planned } = schedule;
        Arc::new(Self {
            begun: Instant::now(),
            rng: Mutex::new(Rng::new(seed).split("fault-injection")),
            dies: Mutex::default(),
            stalled_until: Mutex::default(),
            space_left: Mutex::default(),
            failing_reads: AtomicU32::new(0),
            hosts: OnceLock::new(),
            buffer: OnceLock::new(),
            commands: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            ordered: Mutex::default(),
            planned: Mutex::new(planned),
            is_cut: AtomicBool::new(false),
            on_cut,
            on_refused,
        })
    }

    /// Sets the function that injects faults that NVMe hosts see.
    pub fn call_for_hosts(&self, inject: Box<HostFaults>) {
        // It is set once, before the first client.
        let _ = self.hosts.set(inject);
    }

    /// Has a power cut empty the write buffer of the drive.
    pub(crate) fn lose_with_power(&self, buffer: Arc<dyn BufferMemory>) {
        // It is set once, before the first client.
        let _ = self.buffer.set(buffer);
    }

    /// The dies of a drive by index, those that are there, into which faults may be injected from
    /// now on.
    pub fn media(
        self: &Arc<Self>,
        media: Vec<Option<Box<dyn Medium>>>,
    ) -> Vec<Option<Box<dyn Medium>>> {
        let dies: Vec<_> =
            media.into_iter().map(|it| it.map(|it| Arc::new(InjectedDie::new(it)))).collect();
        lock(&self.dies).clone_from(&dies);
        let medium =
            |die| Box::new(medium::InjectingMedium::new(die, Arc::clone(self))) as Box<dyn Medium>;
        dies.into_iter().map(|die| die.map(medium)).collect()
    }

    /// The drive as clients are to use it.
    pub fn device(self: &Arc<Self>, device: Arc<dyn Device>) -> Arc<dyn Device> {
        Arc::new(InjectingDevice::new(device, Arc::clone(self)))
    }

    /// Injects a fault now.
    ///
    /// # Errors
    /// Fails if there is no such die, what it holds cannot be changed, or a quantity is out of
    /// range.
    pub fn inject(&self, fault: Fault) -> io::Result<()> {
        fault.check().map_err(io::Error::other)?;
        match fault {
            Fault::CutPower {} => self.cut_power(),
            Fault::FailDie { die } => {
                self.die(die)?.fail();
                Ok(())
            }
            Fault::FailRange { die, from_bytes, length_bytes } => {
                self.die(die)?.fail_range(from_bytes..from_bytes.saturating_add(length_bytes));
                Ok(())
            }
            Fault::FlipBits { die, bits } => self.flip_bits(die, bits),
            Fault::Stall { stall_ms } => {
                let until = Instant::now() + Duration::from_millis(stall_ms);
                *lock(&self.stalled_until) = Some(until);
                Ok(())
            }
            Fault::FailReads { commands } => {
                self.failing_reads.store(commands, Ordering::Release);
                Ok(())
            }
            Fault::Fill { left_bytes } => {
                *lock(&self.space_left) = Some(left_bytes);
                Ok(())
            }
            fault => {
                assert!(is_of_hosts(&fault), "all other faults are those of the dies");
                let inject = self.hosts.get();
                inject.map_or_else(
                    || Err(io::Error::other("no NVMe hosts are served")),
                    |it| it(fault),
                )
            }
        }
    }

    /// Replaces the faults that a host ordered: those of an order come once, after so many more
    /// reads; after 0 within some milliseconds.
    pub fn order(&self, orders: impl IntoIterator<Item = (u16, Vec<Fault>)>) {
        let reads = self.reads.load(Ordering::Relaxed);
        let orders = (0..).zip(orders).map(|(number, (after, faults))| OrderedFaults {
            number,
            at_read: reads + u64::from(after),
            faults,
        });
        *lock(&self.ordered) = orders.collect();
    }

    /// Returns the numbers of the ordered faults that are still to come, from 0 in their order.
    pub fn pending_orders(&self) -> Vec<usize> {
        lock(&self.ordered).iter().map(|order| order.number).collect()
    }

    /// Injects scheduled faults at their times, until it is dropped.
    ///
    /// # Errors
    /// Fails if the system refuses a thread.
    pub fn keep_time(self: &Arc<Self>) -> io::Result<()> {
        let own: Weak<Self> = Arc::downgrade(self);
        let tick = move || {
            while let Some(own) = own.upgrade() {
                own.carry_out_due(Caller::Clock);
                own.carry_out_ordered(Caller::Clock);
                drop(own);
                thread::sleep(TICK);
            }
        };
        thread::Builder::new().name("fault-injection".to_owned()).spawn(tick)?;
        Ok(())
    }

    /// Counts a command of a client.
    fn count_command(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
        self.carry_out_due(Caller::Client);
    }

    /// Counts a read of a client, which counts as a command too.
    fn count_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.carry_out_ordered(Caller::Client);
    }

    fn carry_out_due(&self, caller: Caller) {
        let (elapsed, commands) = (self.begun.elapsed(), self.commands.load(Ordering::Relaxed));
        let is_due = |when: &InjectionTime| match *when {
            InjectionTime::AfterMs(after) => elapsed >= Duration::from_millis(after),
            InjectionTime::AfterCommands(after) => commands >= after,
        };
        let is_due = |(when, fault): &mut _| is_due(when) && caller.may_inject(fault);
        let due = lock(&self.planned).extract_if(.., is_due).map(|(_, fault)| fault).collect();
        self.carry_out(due);
    }

    fn carry_out_ordered(&self, caller: Caller) {
        let reads = self.reads.load(Ordering::Relaxed);
        let is_due = |it: &mut OrderedFaults| {
            it.at_read <= reads && it.faults.iter().all(|fault| caller.may_inject(fault))
        };
        let due = lock(&self.ordered).extract_if(.., is_due).flat_map(|it| it.faults).collect();
        self.carry_out(due);
    }

    fn carry_out(&self, due: Vec<Fault>) {
        for fault in due {
            if let Err(error) = self.inject(fault) {
                (self.on_refused)(fault, &error);
            }
        }
    }

    fn die(&self, die: u32) -> io::Result<Arc<InjectedDie>> {
        let dies = lock(&self.dies);
        let found = dies.get(die as usize).cloned().flatten();
        found.ok_or_else(|| io::Error::other(format!("there is no die {die}")))
    }

    fn cut_power(&self) -> io::Result<()> {
        if self.is_cut.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let mut rng = lock(&self.rng);
        let dies = lock(&self.dies).clone();
        if let Some(buffer) = self.buffer.get() {
            buffer.discard();
        }
        // All of them at one moment: until then no later command may go on.
        let mut halted: Vec<_> = dies.iter().flatten().map(|die| die.halt()).collect();
        let lost = halted.iter_mut().map(|die| die.lose(&mut rng));
        // Collected first: all dies lose what they do, whatever became of one of them.
        let lost: io::Result<()> = lost.collect::<Vec<_>>().into_iter().collect();
        let lost = lost.map_err(|error| {
            io::Error::new(error.kind(), format!("the power cut is not complete: {error}"))
        });
        (self.on_cut)(&lost);
        lost
    }

    fn flip_bits(&self, die: Option<u32>, bits: u32) -> io::Result<()> {
        let mut rng = lock(&self.rng);
        let present: Vec<u32> = {
            let dies = lock(&self.dies);
            (0..)
                .zip(dies.iter())
                .filter(|(_, die)| die.is_some())
                .map(|(index, _)| index)
                .collect()
        };
        let drawn = usize::try_from(rng.below(present.len().max(1) as u64)).expect("an index");
        let die = die.or_else(|| present.get(drawn).copied());
        let die = self.die(die.unwrap_or_default())?;
        (0..bits).try_for_each(|_| die.flip_bit(&mut rng))
    }

    /// Waits as long as the dies are stalled.
    fn wait(&self) {
        loop {
            let until = *lock(&self.stalled_until);
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            match left {
                Some(left) if !left.is_zero() => thread::sleep(left),
                _ => return,
            }
        }
    }

    /// Returns whether this read is to fail, and counts it.
    fn takes_failing_read(&self) -> bool {
        let take = |left: u32| left.checked_sub(1);
        // Usually there is none: a load alone leaves the cache line shared between processors.
        self.failing_reads.load(Ordering::Acquire) > 0
            && self.failing_reads.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
    }

    fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Acquire)
    }
}

impl fmt::Debug for FaultInjector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FaultInjector").field("is_cut", &self.is_cut()).finish_non_exhaustive()
    }
}
