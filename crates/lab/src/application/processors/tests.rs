//! Think times on processors that they share, and what is left of a recording's.

use proptest::prelude::*;
use workload::recording;

use super::super::tests::{reads, reads_apart};
use super::*;

const US: fn(u64) -> Nanos = Nanos::from_micros;

fn two() -> Option<NonZeroU32> {
    NonZeroU32::new(2)
}

#[test]
fn up_to_as_many_think_times_as_processors_pass_as_the_clock_does() {
    let mut host = SharedProcessors::new(two(), US(100));
    let first = host.begin(US(100), US(50));
    let second = host.begin(US(110), US(50));
    assert_eq!((host.reaches(first), host.reaches(second)), (US(150), US(160)));
    host.end(US(150));
    assert_eq!(host.reaches(second), US(160), "no other think time was in its way");
}

#[test]
fn more_share_the_processors_equally() {
    let mut host = SharedProcessors::new(two(), Nanos::ZERO);
    let marks = [(); 4].map(|()| host.begin(Nanos::ZERO, US(50)));
    for mark in marks {
        assert_eq!(host.reaches(mark), US(100) + Nanos(1), "half of a processor each");
    }
    // Half way two of them end, and the others have a processor each.
    host.end(US(50));
    host.end(US(50));
    assert_eq!(host.reaches(marks[3]), US(75));
}

#[test]
fn without_a_number_there_is_a_processor_for_each() {
    let mut host = SharedProcessors::new(None, Nanos::ZERO);
    let marks: Vec<Nanos> = (0..100).map(|_| host.begin(Nanos::ZERO, US(50))).collect();
    assert!(marks.iter().all(|mark| host.reaches(*mark) == US(50)));
}

#[test]
fn a_completion_that_is_told_late_begins_its_think_time_when_it_came() {
    let mut host = SharedProcessors::new(two(), Nanos::ZERO);
    host.begin(US(100), US(1));
    let late = host.begin(US(90), US(50));
    assert_eq!(host.reaches(late), US(140));
    let over = host.begin(US(80), US(5));
    assert_eq!(host.reaches(over), US(85), "it is over by now");
}

#[test]
fn time_in_which_others_had_the_processors_is_no_work() {
    // One completion, after which four threads go on: the two processors are shared by all.
    let woken = reads(&[(0, 100), (180, 900), (190, 900), (190, 900), (190, 900)]);
    let parents = recording::parents(&woken);
    let of = |count| work(&woken, &parents, NonZeroU32::new(count).unwrap());
    let us = |of: Vec<Nanos>| of.into_iter().map(|it| it.0 / 1000).collect::<Vec<_>>();
    assert_eq!(us(of(4)), [0, 80, 90, 90, 90], "enough processors: as it was recorded");
    // Half of 80 us, then two thirds of 10 us.
    assert_eq!(us(of(2)), [0, 40, 46, 46, 46]);
    assert_eq!(us(of(1)), [0, 20, 23, 23, 23]);
}

proptest! {
    #[test]
    fn work_on_as_many_processors_takes_as_long_as_it_did(
        spans in prop::collection::vec((0_u64..100, 1_u64..400), 1..60),
        count in 1_u32..5,
    ) {
        let recorded = reads_apart(&spans);
        let parents = recording::parents(&recorded);
        let count = NonZeroU32::new(count).unwrap();
        let work = work(&recorded, &parents, count);
        let mut host = SharedProcessors::new(Some(count), Nanos::ZERO);
        let mut events: Vec<(Nanos, bool, usize)> = Vec::new();
        for (index, parent) in parents.iter().enumerate() {
            let Some(parent) = parent.index else { continue };
            events.push((recorded[parent as usize].completed_at, false, index));
            events.push((recorded[index].issued_at, true, index));
        }
        events.sort_unstable();
        let mut marks = vec![Nanos::ZERO; recorded.len()];
        for (at, ends, index) in events {
            if ends {
                let off = host.reaches(marks[index]).0.abs_diff(at.0);
                prop_assert!(off <= 1000, "{off} ns off at {at}");
                host.end(at);
            } else {
                marks[index] = host.begin(at, work[index]);
            }
        }
    }
}
