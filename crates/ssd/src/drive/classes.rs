//! A drive made of two: requests to its classes, and counts of each.

use blockio::{Bytes, Nanos, Op, SECTOR_BYTES, Status};
use ftl::Counters;
use tier::{Class, TierCounters};

use super::{Drive, PagesRead, Progress};
use crate::class_pair::ClassPair;
use crate::event::{Event, Lane};
use crate::module::Extent;

/// Counts of one class since the drive was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassCounters {
    /// The class.
    pub class: Class,
    /// User capacity of the drive that is the class, at this scale.
    pub capacity: Bytes,
    /// Counters of that drive: what the tier sent to it, and what its media programmed.
    pub media: Counters,
}

/// Counts of a tier since it was purged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierWork {
    /// Blocks that moved.
    pub blocks: TierCounters,
    /// Share of the space for written data on the fast class that is in use, 0 to 1; absent where
    /// writes do not go there.
    pub written_share: Option<f64>,
    /// The fast class, then the slow one.
    pub classes: [ClassCounters; 2],
}

impl Drive {
    /// Work of the classes of a drive that is made of two; absent of all others.
    pub fn tier_work(&self) -> Option<TierWork> {
        let classes = self.classes.as_ref()?;
        let [fast, slow] = classes.drives();
        let of = |class, drive: &Self| ClassCounters {
            class,
            capacity: Bytes(drive.user_sectors() * SECTOR_BYTES),
            media: drive.counters(),
        };
        Some(TierWork {
            blocks: classes.tier().counters(),
            written_share: classes.tier().written_share(),
            classes: [of(Class::Fast, fast), of(Class::Slow, slow)],
        })
    }

    /// Counters of both classes, with what the host sent to the whole drive.
    pub(super) fn tier_counters(&self, classes: &ClassPair) -> Counters {
        let [fast, slow] = classes.drives().each_ref().map(Self::counters);
        Counters {
            host_sent_bytes: self.carried.written * SECTOR_BYTES,
            host_read_bytes: self.carried.read * SECTOR_BYTES,
            ..fast + slow
        }
    }

    /// Carries out a request by requests to the classes.
    pub(super) fn access_classes(
        &mut self,
        slot: u32,
        (op, extent): (Op, Extent),
        progress: &mut Progress,
    ) {
        if extent.sectors == 0 && op != Op::Flush {
            return;
        }
        let classes = self.classes.as_mut().expect("a drive made of two");
        progress.parts += classes.submit(slot, (op, extent), progress.done_at);
        assert!(progress.parts > 0, "a request waits for a class");
        match op {
            Op::Read => self.carried.read += u64::from(extent.sectors),
            Op::Write => self.carried.written += u64::from(extent.sectors),
            Op::Trim | Op::Flush => {}
        }
        self.wake_classes();
    }

    /// The classes do what is due by `at`.
    pub(super) fn step_classes(&mut self, at: Nanos) {
        let classes = self.classes.as_mut().expect("a drive made of two");
        let (in_flight, events) = (&mut self.in_flight, &mut self.events);
        classes.step(at, |part| {
            debug_assert!(part.at >= at, "what ended earlier was seen earlier");
            let flight = &mut in_flight[part.slot as usize];
            if part.status != Status::Ok {
                flight.status = part.status;
            }
            flight.part_done(Lane::Link, part.slot, part.at, events);
        });
        self.wake_classes();
    }

    fn wake_classes(&mut self) {
        let classes = self.classes.as_mut().expect("a drive made of two");
        if let Some(at) = classes.wake() {
            self.events.push(at, Event::Classes);
        }
    }

    /// Mapping units that host reads asked for, and those that no class ever wrote.
    pub(super) fn tier_pages_read(classes: &ClassPair) -> PagesRead {
        let of_slow = classes.drives()[Class::Slow as usize].pages_read();
        PagesRead {
            all: classes.tier().counters().read,
            unmapped: of_slow.map_or(0, |pages| pages.unmapped),
        }
    }
}
