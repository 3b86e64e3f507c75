//! One die: the host's reads first, then those for relocation, then programs and erases.
//!
//! What has not begun waits in order: a read for relocation overtakes programs and erases that
//! would begin no earlier, and the host's reads overtake everything that has not begun. A read
//! waits for a program or an erase under way, unless the NAND can suspend it for the host. Reads
//! follow each other; what they suspended goes on after the last of them.

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
    /// Programs and erases that have not begun, in order.
    programs: VecDeque<Waiting>,
    /// Reads for relocation that have not begun, in order.
    reads: VecDeque<Waiting>,
}

/// Work of a die that has not begun.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Time from which it may begin.
    ready: Nanos,
    span: Nanos,
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
        if self.programs.len() == self.programs.capacity() {
            // Now and then rather than each time; only a read needs to know.
            self.begin_until(now);
        }
        self.programs.push_back(Waiting { ready, span });
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

    /// Books a read for relocation that may begin at `ready`; returns its end unless more reads of
    /// the host delay it.
    pub(crate) fn book_read(&mut self, now: Nanos, ready: Nanos, span: Nanos) -> Nanos {
        debug_assert!(ready >= now, "a die is booked for what is still to come");
        self.begin_until(now);
        self.reads.push_back(Waiting { ready, span });
        self.free_at = self.free_at.max(now) + span;
        let mut free = self.busy_until.max(self.read_until);
        let mut programs = self.programs.iter().peekable();
        for read in &self.reads {
            while let Some(program) = programs.next_if(|it| begins_first(it, read, free)) {
                free = free.max(program.ready) + program.span;
            }
            free = free.max(read.ready) + read.span;
        }
        debug_assert!(free >= ready + span, "a read takes as long as the media at least");
        free
    }

    /// Lets everything begin that would have begun before `at`.
    #[inline]
    fn begin_until(&mut self, at: Nanos) {
        loop {
            let free = self.busy_until.max(self.read_until);
            let (program, read) = (self.programs.front(), self.reads.front());
            let is_read = match (program, read) {
                (Some(program), Some(read)) => !begins_first(program, read, free),
                (program, _) => program.is_none(),
            };
            let queue = if is_read { &mut self.reads } else { &mut self.programs };
            let begins = |it: &mut Waiting| free.max(it.ready) < at;
            let Some(Waiting { ready, span }) = queue.pop_front_if(begins) else { return };
            let until = if is_read { &mut self.read_until } else { &mut self.busy_until };
            *until = free.max(ready) + span;
        }
    }
}

/// True if a program or an erase begins before a read for relocation where both wait for a die that
/// is free at `free`: one that is ready while the read is not.
#[inline]
fn begins_first(program: &Waiting, read: &Waiting, free: Nanos) -> bool {
    free.max(program.ready) < free.max(read.ready)
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
    fn the_host_overtakes_a_read_for_relocation_until_it_has_begun() {
        let mut die = Die::default();
        let (ready, now) = (Nanos::from_micros(300), Nanos::ZERO);
        assert_eq!(die.book_read(now, ready, READ), Nanos::from_micros(350));
        assert_eq!(die.read(Nanos::from_micros(290), READ, None), Nanos::from_micros(340));
        // What was overtaken begins when the host has been served, and the next waits for it.
        assert_eq!(die.read(Nanos::from_micros(360), READ, None), Nanos::from_micros(440));
    }

    #[test]
    fn a_read_for_relocation_overtakes_programs_that_would_begin_no_earlier() {
        let mut die = Die::default();
        let now = Nanos::ZERO;
        die.book(now, now, PROGRAM);
        die.book(now, now, PROGRAM);
        let ready = Nanos::from_micros(500);
        assert_eq!(die.book_read(now, ready, READ), Nanos::from_micros(1_050));
        // One that is ready before the read is does not wait for it.
        let mut die = Die::default();
        assert_eq!(die.book_read(now, ready, READ), Nanos::from_micros(550));
        die.book(now, now, PROGRAM);
        let at = Nanos::from_micros(600);
        assert_eq!(die.read(at, READ, None), Nanos::from_micros(1_050));
        assert_eq!(die.book_read(at, at, READ), Nanos::from_micros(1_150));
    }

    #[test]
    fn an_idle_die_reads_at_once() {
        let mut die = Die::default();
        die.book(Nanos::ZERO, Nanos::ZERO, PROGRAM);
        assert_eq!(die.read(Nanos::from_micros(5_000), READ, None), Nanos::from_micros(5_050));
    }
}
