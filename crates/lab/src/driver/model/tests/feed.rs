//! Requests of the threads of a load.

use std::collections::BTreeSet;

use blockio::Request;
use workload::trace::{self, Addresses, Trace};

use super::*;
use crate::replay::Replay;

/// A trace of `count` reads of 4 KiB, one after the other, without times.
fn trace(count: u64) -> Trace {
    let lines = (0..count).map(|nth| format!("/d read {} 4096\n", nth * 4096));
    let text = format!("fio version 2 iolog\n/d add\n{}", lines.collect::<String>());
    trace::read(text.as_bytes(), "mine").unwrap()
}

fn replaying<'a>(trace: &'a Trace, workload: &'a Workload, threads: u16) -> Load<'a> {
    let replay = Replay { trace, addresses: Addresses::Wrapped, speed: None };
    Load { threads, replay: Some(replay), ..load(workload) }
}

fn blocks(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|request| request.lba.0 / 8).collect()
}

#[test]
fn threads_address_the_device_that_they_are_for_and_no_other() {
    let (drive, workload) = (in_place("p5800x-pair"), workload("4k-rand-write"));
    let threads = issued(&load(&workload), &drive, 500).unwrap();
    assert_eq!(threads.len(), 4, "two threads on each of two devices");
    let half = drive.user_sectors() / 2;
    for (number, requests) in threads.iter().enumerate() {
        let device = u64::from(number >= 2);
        let own = device * half..(device + 1) * half;
        assert!(requests.iter().all(|it| usize::from(it.thread) == number));
        assert!(requests.iter().all(|it| own.contains(&it.lba.0)), "thread {number}");
    }
}

#[test]
fn no_two_threads_and_no_two_devices_draw_the_same_addresses() {
    let (drive, workload) = (in_place("p5800x-pair"), workload("4k-rand-read"));
    let threads = issued(&load(&workload), &drive, 100).unwrap();
    let half = drive.user_sectors() / 2;
    let within = |requests: &Vec<Request>| -> Vec<u64> {
        requests.iter().map(|request| request.lba.0 % half).collect()
    };
    let distinct: BTreeSet<Vec<u64>> = threads.iter().map(within).collect();
    assert_eq!(distinct.len(), 4);
}

#[test]
fn the_first_of_two_devices_is_asked_what_one_alone_is() {
    let workload = workload("4k-rand-read");
    let lbas = |drive: &Drive| -> Vec<u64> {
        issued(&load(&workload), drive, 100).unwrap()[0].iter().map(|it| it.lba.0).collect()
    };
    assert_eq!(lbas(&in_place("p5800x-pair")), lbas(&in_place("p5800x")));
}

#[test]
fn threads_beyond_all_numbers_are_refused_and_none_is_left_out() {
    let mut spec = ssd::catalogue::find("p5800x-pair").unwrap();
    spec.devices.as_mut().unwrap().count = 64;
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    let setup = Setup { format, host, time_lapse: 1, seed: 1 };
    let drive = Drive::new(&spec, &setup).unwrap();
    let workload = workload("4k-rand-read");
    let feeds = |threads| Feed::of_all(&Load { threads, ..load(&workload) }, &drive);
    assert_eq!(feeds(1023).unwrap().len(), 65_472);
    let refused = feeds(1024).unwrap_err();
    assert_eq!(refused.to_string(), "1024 threads on each of 64 devices, at most 65535 in all");
    assert_eq!((refused.kind(), refused.remedy()), (Kind::Input, "lower the number of threads"));
}

#[test]
fn a_request_has_the_tag_that_it_was_asked_for_under() {
    let (drive, workload) = (small(), workload("4k-rand-read"));
    let mut feeds = Feed::of_all(&load(&workload), &drive).unwrap();
    let tags: Vec<u32> = (0..40).map(|tag| feeds[1].request(tag, &drive).tag).collect();
    assert!(tags.into_iter().eq(0..40), "over more than one batch");
    assert_eq!(feeds[0].replayed(0, 1), None, "no trace is replayed");
}

#[test]
fn threads_take_a_trace_in_turn_and_begin_it_again() {
    let (drive, workload, trace) = (in_place("p5800x"), workload("4k-rand-read"), trace(5));
    let threads = issued(&replaying(&trace, &workload, 2), &drive, 7).unwrap();
    assert_eq!(blocks(&threads[0]), [0, 2, 4, 1, 3, 0, 2]);
    assert_eq!(blocks(&threads[1]), [1, 3, 0, 2, 4, 1, 3]);
}

#[test]
fn more_threads_than_requests_still_have_some_each() {
    let (drive, workload, trace) = (in_place("p5800x"), workload("4k-rand-read"), trace(2));
    let threads = issued(&replaying(&trace, &workload, 5), &drive, 3).unwrap();
    let first: Vec<u64> = threads.iter().map(|requests| blocks(requests)[0]).collect();
    assert_eq!(first, [0, 1, 0, 1, 0]);
}

#[test]
fn every_device_replays_the_whole_trace_on_its_own_addresses() {
    let (drive, workload, trace) = (in_place("p5800x-pair"), workload("4k-rand-read"), trace(3));
    let threads = issued(&replaying(&trace, &workload, 1), &drive, 4).unwrap();
    let half = drive.user_sectors() / 2;
    assert_eq!(blocks(&threads[0]), [0, 1, 2, 0]);
    let second: Vec<u64> = threads[1].iter().map(|it| (it.lba.0 - half) / 8).collect();
    assert_eq!(second, [0, 1, 2, 0]);
}

#[test]
fn a_request_of_a_trace_is_found_by_its_number_over_all_repetitions() {
    let (drive, workload, trace) = (in_place("p5800x"), workload("4k-rand-read"), trace(3));
    let feeds = Feed::of_all(&replaying(&trace, &workload, 2), &drive).unwrap();
    let request = feeds[1].replayed(10, 77).unwrap();
    assert_eq!((request.lba.0 / 8, request.tag, request.thread), (1, 77, 1));
}
