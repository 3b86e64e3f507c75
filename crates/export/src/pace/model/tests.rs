//! A model with commands, in virtual time.

use super::*;
use crate::pace::tests::drive;

fn model() -> Model {
    Model::new(Box::new(drive()))
}

fn asked(op: Op, offset: u64) -> PacedCommand {
    PacedCommand { op, offset, length: 4096, fua: false }
}

/// Lets time pass until nothing is outstanding. Returns the tickets, each once it was due.
fn drained(model: &mut Model, mut now: Nanos) -> (Vec<u32>, Nanos) {
    let mut due = Vec::new();
    model.take_due(now, &mut due);
    while let Some(next) = model.next() {
        assert!(next > now, "asked again at the same time");
        now = next;
        model.take_due(now, &mut due);
    }
    (due.iter().map(|due| due.ticket).collect(), now)
}

#[test]
fn a_command_is_due_when_the_model_completes_it() {
    let mut model = model();
    let lane = model.take_lane().unwrap();
    let mut alone = drive();
    for (second, op) in [(1, Op::Write), (2, Op::Read), (3, Op::Flush), (6, Op::Trim)] {
        let at = Nanos::from_secs(second);
        let ticket = model.submit(lane, at, asked(op, 1 << 20));
        let (due, now) = drained(&mut model, at);
        assert_eq!(due, [ticket]);

        let sectors = if op == Op::Flush { 0 } else { 8 };
        let request = Request { tag: 0, thread: 0, op, handle: 0, lba: Lba(2048), sectors };
        alone.submit(at, request);
        let expected = alone.next_completion(Nanos::MAX).unwrap().completed_at;
        assert_eq!(now, expected, "{op:?}");
    }
}

#[test]
fn a_command_that_was_told_late_is_due_by_its_own_issue() {
    let mut model = model();
    let lane = model.take_lane().unwrap();
    let (early, late) = (Nanos::from_millis(1), Nanos::from_millis(2));
    // Another client was heard first.
    model.submit(lane, late, asked(Op::Read, 0));
    let ticket = model.submit(lane, early, asked(Op::Read, 1 << 30));
    let mut due = Vec::new();
    model.take_due(Nanos::from_secs(1), &mut due);
    let found = due.iter().find(|due| due.ticket == ticket).unwrap();
    assert_eq!(found.at, early + found.latency);
}

#[test]
fn what_a_device_stores_is_read_from_the_flash_of_the_model() {
    use device::{Durability, MemoryDevice};
    let latency = |model: &mut Model, offset| {
        let lane = model.take_lane().unwrap();
        model.submit(lane, Nanos::ZERO, asked(Op::Read, offset));
        drained(model, Nanos::ZERO).1
    };
    let device = MemoryDevice::new(16 << 20);
    device.write(8 << 20, &vec![1; 1 << 20], Durability::Volatile).unwrap();
    let mut holds = model();
    holds.hold(&device).unwrap();
    let stored = latency(&mut holds, (8 << 20) + 4096);
    let empty = latency(&mut model(), (8 << 20) + 4096);
    assert!(stored > empty + Nanos::from_micros(20), "{stored} and {empty}: a NAND read apart");
    let mut another = model();
    another.hold(&device).unwrap();
    assert_eq!(latency(&mut another, 4096), empty, "nothing is stored there");
}

#[test]
fn a_model_cools_while_no_client_asks_for_anything_and_is_due_when_it_was() {
    let mut model = model();
    let lane = model.take_lane().unwrap();
    for page in 0..2000 {
        model.submit(lane, Nanos::ZERO, asked(Op::Write, page * 4096));
    }
    let now = drained(&mut model, Nanos::ZERO).1;
    let at = |later| model.climate(now + later).expect("the Duo tells").temperature_c;
    let (warm, cool) = (at(Nanos::from_millis(100)), at(Nanos::from_secs(60)));
    assert!(warm > cool, "{warm} and {cool} °C");
    let ticket = model.submit(lane, now, asked(Op::Read, 0));
    let (due, now) = drained(&mut model, now);
    assert_eq!(due, [ticket]);
    assert!(now < Nanos::from_secs(60), "asking for the heat moved no time: {now}");
}

#[test]
fn nothing_is_due_before_its_time_and_each_ticket_once() {
    let mut model = model();
    let lane = model.take_lane().unwrap();
    let submitted: Vec<u32> =
        (0..32).map(|page| model.submit(lane, Nanos::ZERO, asked(Op::Write, page << 12))).collect();
    let (mut due, _) = drained(&mut model, Nanos::ZERO);
    due.sort_unstable();
    assert_eq!(due, submitted);
}

#[test]
fn a_client_is_not_told_of_what_another_left_behind() {
    let mut model = model();
    let left = model.take_lane().unwrap();
    model.submit(left, Nanos::ZERO, asked(Op::Write, 0));
    model.give_back(left);
    model.take_lane().unwrap();
    let mut due = Vec::new();
    model.take_due(Nanos::from_secs(1), &mut due);
    assert!(due.is_empty());
    assert_eq!(model.next(), None);
}

#[test]
fn a_client_is_not_told_of_what_was_done_when_another_left() {
    let mut model = model();
    let left = model.take_lane().unwrap();
    model.submit(left, Nanos::ZERO, asked(Op::Write, 0));
    // Done, and the client was not told yet.
    model.advance(Nanos::from_secs(1));
    model.give_back(left);
    assert_eq!(model.take_lane(), Some(left));
    let mut due = Vec::new();
    model.take_due(Nanos::from_secs(2), &mut due);
    assert!(due.is_empty());
}

#[test]
fn a_range_beyond_the_model_begins_again() {
    let ask =
        |offset, length| place(PacedCommand { op: Op::Read, offset, length, fua: false }, 1000);
    assert_eq!(ask(0, 512), (Lba(0), 1));
    assert_eq!(ask(1, 512), (Lba(0), 2));
    assert_eq!(ask(1000 * 512, 512), (Lba(0), 1));
    assert_eq!(ask(999 * 512, 1024), (Lba(998), 2));
    assert_eq!(ask(0, u64::MAX), (Lba(0), 1000));
}
