//! One die: reads at once, programs and erases when it can.
//!
//! Programs and erases wait in order; a read overtakes those that have not begun and waits for the
//! one under way, unless the NAND can suspend it. Reads follow each other; what they suspended goes
//! on after the last of them.

use std::collections::VecDeque;

use blockio::Nanos;

/// A die and what it has been told to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Die {
    /// End of the program or erase that began last, unless more reads suspend it.
    busy_until: Nanos,
    /// End of the last read.
    read_until: Nanos,
    /// End of all that it has been told, as far as is known now.
    free_at: Nanos,
    /// Programs and erases not begun: when they may begin, and how long they take.
    waiting: VecDeque<(Nanos, Nanos)>,
}

impl Die {
    /// Books a program or an erase that will be ready at `ready`; returns its end unless reads
    /// delay it.
    ///
    /// It takes its share of the die from `now` on, so that nothing that is ready sooner waits for
    /// it to arrive.
    #[inline]
    pub(crate) fn book(&mut self, now: Nanos, ready: Nanos, span: Nanos) -> Nanos {
        debug_assert!(ready >= now, "a die is booked for what is still to come");
        if self.waiting.len() == self.waiting.capacity() {
            // Now and then rather than each time; only a read needs to know.
            self.begin_until(now);
        }
        self.waiting.push_back((ready, span));
        self.free_at = self.free_at.max(now) + span;
        self.free_at.max(ready + span)
    }

    /// Time at which the die has done everything that is booked.
    #[inline]
    pub(crate) const fn free_at(&self) -> Nanos {
        self.free_at
    }

    /// Books a read at `at`; returns its end. `suspend` is the time to interrupt what is under way,
    /// none if that is not possible.
    #[inline]
    pub(crate) fn read(&mut self, at: Nanos, span: Nanos, suspend: Option<Nanos>) -> Nanos {
        self.begin_until(at);
        let free = self.read_until.max(at);
        let is_suspended = self.read_until > at && self.busy_until > self.read_until;
        let cost = match suspend {
            Some(_) if is_suspended => Some(Nanos::ZERO),
            Some(suspend) if free + suspend < self.busy_until => Some(suspend),
            _ => None,
        };
        let start = cost.map_or(self.busy_until.max(free), |cost| free + cost);
        let delay = span + cost.unwrap_or(Nanos::ZERO);
        if cost.is_some() {
            // What is under way resumes after the read and ends later by as much.
            self.busy_until += delay;
        }
        debug_assert!(start >= free, "a die reads when its last read has ended");
        self.read_until = start + span;
        self.free_at = self.free_at.max(at) + delay;
        self.read_until
    }

    /// Lets everything begin that would have begun before `at`.
    #[inline]
    fn begin_until(&mut self, at: Nanos) {
        while let Some(&(ready, span)) = self.waiting.front() {
            let start = self.busy_until.max(self.read_until).max(ready);
            if start >= at {
                break;
            }
            self.busy_until = start + span;
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Nanos = Nanos::from_micros(50);
    const PROGRAM: Nanos = Nanos::from_micros(1_000);

    #[test]
    fn a_read_waits_for_the_program_under_way_and_overtakes_the_next() {
        let mut die = Die::default();
        die.book(Nanos::ZERO, Nanos::ZERO, PROGRAM);
        die.book(Nanos::ZERO, Nanos::ZERO, PROGRAM);
        let end = die.read(Nanos::from_micros(400), READ, None);
        assert_eq!(end, Nanos::from_micros(1_050));
        let now = Nanos::from_micros(400);
        assert_eq!(die.book(now, now, PROGRAM), Nanos::from_micros(3_050));
    }

    #[test]
    fn a_read_suspends_a_program_where_the_nand_can() {
        let mut die = Die::default();
        die.book(Nanos::ZERO, Nanos::ZERO, PROGRAM);
        let end = die.read(Nanos::from_micros(400), READ, Some(Nanos::from_micros(10)));
        assert_eq!(end, Nanos::from_micros(460));
        let next = die.read(Nanos::from_micros(2_000), READ, None);
        assert_eq!(next, Nanos::from_micros(2_050));
    }

    #[test]
    fn reads_of_a_suspended_program_follow_each_other_and_suspend_it_once() {
        let mut die = Die::default();
        let suspend = Some(Nanos::from_micros(10));
        die.book(Nanos::ZERO, Nanos::ZERO, PROGRAM);
        assert_eq!(die.read(Nanos::from_micros(400), READ, suspend), Nanos::from_micros(460));
        assert_eq!(die.read(Nanos::from_micros(420), READ, suspend), Nanos::from_micros(510));
        // The program ends 110 us late; a read right before that waits for it.
        let at = Nanos::from_micros(1_105);
        assert_eq!(die.read(at, READ, suspend), Nanos::from_micros(1_160));
    }

    #[test]
    fn reads_wait_for_each_other_where_nothing_is_to_be_suspended() {
        let mut die = Die::default();
        let suspend = Some(Nanos::from_micros(10));
        assert_eq!(die.read(Nanos::ZERO, READ, suspend), READ);
        assert_eq!(die.read(Nanos::from_micros(1), READ, suspend), READ * 2);
    }

    #[test]
    fn an_idle_die_reads_at_once() {
        let mut die = Die::default();
        die.book(Nanos::ZERO, Nanos::ZERO, PROGRAM);
        assert_eq!(die.read(Nanos::from_micros(5_000), READ, None), Nanos::from_micros(5_050));
    }
}
