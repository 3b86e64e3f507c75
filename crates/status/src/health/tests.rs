//! Health by hand: each problem from the status alone, its sentence, its next step, its bit.

use super::*;
use crate::Compression;
use crate::{
    Climate, Export, Format, Lateness, Life, MaintenanceStatus, Model, NamespaceTraffic, Rebuild,
    SCHEMA, Scrub, Scrubs, Server, Smart, Space, Traffic,
};

/// A closed drive of four dies with nothing wrong.
pub(crate) fn status() -> Status {
    let format = Format {
        capacity_bytes: 1 << 30,
        data_bytes: 1 << 30,
        raw_bytes: 1 << 31,
        physical_bytes: 1 << 30,
        over_provisioning_percent: 15.0,
        dies: 4,
        is_protected: true,
        is_compressed: false,
        compression: Compression::None,
        is_encrypted: false,
        superblocks: 100,
        superblock_bytes: 1 << 20,
        journal_bytes: 1 << 20,
        mapping_bytes: 1 << 20,
    };
    let smart = Smart {
        available_spare: Some(100),
        available_spare_threshold: 10,
        power_cycles: 1,
        ..Smart::default()
    };
    let die = |index: u32| Die { path: Some(format!("/dev/d{index}")), ..Die::default() };
    Status {
        schema: SCHEMA,
        drive: "0000000000000007".into(),
        name: "it".into(),
        folder: "volume".into(),
        health: Health::default(),
        state: State::Closed,
        reason: None,
        refusal: None,
        led: super::super::Led::Off,
        is_locate_led_on: false,
        format,
        smart,
        pages_lost: Some(0),
        lost_lbas: Vec::new(),
        acknowledged_survives: None,
        write_through_reason: None,
        write_buffer: None,
        dies: (0..4).map(die).collect(),
        hot_spares: 0,
        namespaces: Vec::new(),
        space: None,
        wear: None,
        writes: None,
        life: Life::default(),
        maintenance: MaintenanceStatus::default(),
        server: None,
    }
}

/// Status of the drive while it is served.
pub(crate) fn served() -> Status {
    let server = Server {
        pid: 1,
        version: "0.1.0".into(),
        uptime_s: 1.0,
        cpu_s: 0.0,
        memory_bytes: 0,
        exports: vec![Export {
            name: String::new(),
            size_bytes: 1 << 30,
            is_read_only: false,
            uris: Vec::new(),
        }],
        namespaces: Vec::new(),
        controllers: Vec::new(),
        clients: Vec::new(),
        connections_accepted: 0,
        clients_refused: 0,
        traffic: Traffic::default(),
        model: None,
        events: Vec::new(),
    };
    Status { state: State::Open, server: Some(server), ..status() }
}

/// The health of the drive with this change.
fn judged(change: impl FnOnce(&mut Status)) -> Status {
    let mut status = served();
    change(&mut status);
    status.judged()
}

/// Its only problem.
fn problem_of(change: impl FnOnce(&mut Status)) -> (Problem, u8) {
    let status = judged(change);
    let [problem] = status.health.problems.as_slice() else { panic!("{:?}", status.health) };
    assert!(problem.text.ends_with('.') && problem.remedy.ends_with('.'), "{problem:?}");
    assert_eq!(status.health.state, problem.severity);
    (problem.clone(), status.smart.critical_warning)
}

#[test]
fn a_drive_with_nothing_wrong_is_ok() {
    let status = judged(|_| ());
    assert_eq!(status.health, Health::default());
    assert_eq!((status.health.state, status.smart.critical_warning), (HealthState::Ok, 0));
}

#[test]
fn a_drive_that_takes_no_writes_is_critical_and_says_why() {
    let (problem, bits) = problem_of(|it| it.reason = Some("the journal is full".into()));
    assert_eq!((problem.kind, problem.severity), (ProblemKind::ReadOnly, HealthState::Critical));
    assert_eq!(problem.text, "The volume accepts no more writes: the journal is full.");
    assert!(problem.remedy.contains("`floatgate volume check volume`"), "{}", problem.remedy);
    assert_eq!(bits, WARNS_OF_READ_ONLY);
}

#[test]
fn what_may_be_without_redundancy_is_a_problem_until_a_scrub_has_read_everything() {
    let (problem, bits) = problem_of(|it| it.maintenance.batches_lacking = 2);
    assert_eq!((problem.kind, problem.severity), (ProblemKind::Scrub, HealthState::Degraded));
    assert!(problem.text.contains("2 journal records that had been"), "{problem:?}");
    assert_eq!(bits, WARNS_OF_RELIABILITY);
    let (problem, _) = problem_of(|it| it.maintenance.units_lost = 1);
    assert!(problem.text.contains("could not restore 1 unit from"), "{problem:?}");
    let status = judged(|it| {
        it.maintenance.units_lost = 1;
        it.maintenance.scrub = Some(Scrub::default());
        it.maintenance.end_scrub(None, false);
    });
    assert_eq!(status.health, Health::default());
}

#[test]
fn namespaces_that_refuse_commands_make_a_drive_critical() {
    let namespace = |id, refusal| NamespaceTraffic {
        id,
        is_write_protected: true,
        refusal,
        ..NamespaceTraffic::default()
    };
    let of = |refusals: &[Option<Refusal>]| {
        judged(|it| {
            let namespaces = (1..).zip(refusals).map(|(id, refusal)| namespace(id, *refusal));
            it.server.as_mut().unwrap().namespaces = namespaces.collect();
        })
    };
    let protected = of(&[None, None]);
    assert_eq!(protected.health, Health::default(), "the owner wanted that");
    let cases = [
        (Refusal::WritesFail, "An injected fault has namespace 2 refuse writes."),
        (Refusal::SanitizeUnfinished, "A sanitize has not ended, and all reads and writes"),
        (Refusal::SanitizeFailed, "A sanitize failed, and all reads and writes are refused."),
    ];
    for (refusal, text) in cases {
        let status = of(&[None, Some(refusal)]);
        let [problem] = status.health.problems.as_slice() else { panic!("{:?}", status.health) };
        assert!(problem.text.starts_with(text), "{}", problem.text);
        assert_eq!((problem.kind, problem.severity), (ProblemKind::ReadOnly, status.health.state));
        assert_eq!(status.health.state, HealthState::Critical);
        assert_eq!(status.smart.critical_warning, WARNS_OF_READ_ONLY);
    }
}

#[test]
fn lost_pages_are_counted_and_the_first_of_them_are_named() {
    let of = |pages: u64| {
        problem_of(|it| {
            it.pages_lost = Some(pages);
            it.lost_lbas = (0..pages).map(|page| page * 8).collect();
        })
    };
    let (one, bits) = of(1);
    let text = "1 page of 4 KiB cannot be read back (8 sectors each, from sector 0): reading it \
                fails.";
    assert_eq!((one.text.as_str(), one.count, bits), (text, 1, WARNS_OF_RELIABILITY));
    let (many, _) = of(6);
    assert!(many.text.contains("from sector 0, 8, 16, 24 and more): reading them fails"));
    assert_eq!((many.count, many.severity), (6, HealthState::Critical));
    let (unnamed, _) = problem_of(|it| it.pages_lost = Some(2));
    assert!(unnamed.text.starts_with("2 pages of 4 KiB cannot be read back:"), "{unnamed:?}");
}

#[test]
fn space_is_a_problem_from_a_twentieth_on() {
    let space = |supply| {
        Some(Space {
            logical_bytes: 4 << 20,
            stored_bytes: 2 << 20,
            stored_bytes_max: 2 << 20,
            compression_ratio: None,
            supply,
            superblocks_free: 1,
            superblocks: String::new(),
            host_shortage: None,
        })
    };
    for supply in [Supply::Ample, Supply::Low] {
        assert!(judged(|it| it.space = space(supply)).health.problems.is_empty(), "{supply:?}");
    }
    let (short, bits) = problem_of(|it| it.space = space(Supply::Short));
    assert_eq!((short.severity, bits), (HealthState::Degraded, 0));
    let (gone, _) = problem_of(|it| it.space = space(Supply::Gone));
    assert_eq!(gone.severity, HealthState::Critical);
    assert!(gone.text.contains("writes fail with ENOSPC"), "{}", gone.text);
    let (full, _) = problem_of(|it| {
        it.space = space(Supply::Short);
        let shortage = HostShortage { needed_bytes: 34_000_000, free_bytes: 1000 };
        it.space.as_mut().unwrap().host_shortage = Some(shortage);
    });
    assert_eq!((full.kind, full.severity), (ProblemKind::Space, HealthState::Critical));
    let told = "The file system beneath the dies is full, and writes fail with ENOSPC: ";
    assert!(full.text.starts_with(told), "{}", full.text);
    assert_eq!(full.remedy, "Free space there.");
}

#[test]
fn a_failed_die_says_whether_another_failure_loses_data() {
    let failed = |has_degraded_rows, failure: Option<&str>| {
        problem_of(|it| {
            it.dies[2].is_lost = true;
            it.dies[2].has_degraded_rows = has_degraded_rows;
            it.dies[2].failure = failure.map(str::to_owned);
        })
    };
    let (problem, bits) = failed(true, Some("a read: Input/output error"));
    let text = "Die 2 (/dev/d2) failed: a read: Input/output error; no redundancy left: another \
                failure loses data.";
    assert_eq!((problem.text.as_str(), bits), (text, WARNS_OF_RELIABILITY));
    assert_eq!(problem.die, Some(2));
    assert_eq!(problem.remedy, "Replace it: `floatgate volume replace-die volume 2 --with PATH`.");
    let (rebuilt, bits) = failed(false, None);
    let restored = "; redundancy is restored: the volume tolerates 1 more failure.";
    assert!(rebuilt.text.ends_with(restored), "{}", rebuilt.text);
    assert_eq!(bits, 0, "redundancy is restored");
}

#[test]
fn a_die_that_is_not_there_is_missing_whatever_it_failed_with() {
    let (problem, _) = problem_of(|it| {
        let die = &mut it.dies[0];
        (die.is_lost, die.is_missing, die.failure) = (true, true, Some("a sync".into()));
    });
    let expected = "Die 0 is missing: nothing is at /dev/d0; ";
    assert!(problem.text.starts_with(expected), "{}", problem.text);
}

#[test]
fn a_rebuild_tells_how_far_it_is() {
    let rebuilding = |rebuild: Option<Rebuild>| {
        problem_of(|it| {
            it.dies[1].state = DieState::Rebuilding;
            it.maintenance.rebuild = rebuild;
        })
        .0
        .text
    };
    let of = |die, rows_done, rows| Some(Rebuild { die, rows_done, rows, ..Rebuild::default() });
    assert!(rebuilding(of(1, 25, 200)).contains("is being rebuilt, 12.5 % done;"));
    assert!(rebuilding(of(3, 25, 200)).contains("0.0 % done"), "that is another die's");
    assert!(rebuilding(of(1, 0, 0)).contains("0.0 % done"), "nothing to go through yet");
    assert!(rebuilding(None).contains("0.0 % done"));
}

#[test]
fn a_die_that_failed_requests_is_watched() {
    let (problem, bits) = problem_of(|it| {
        it.dies[3].failures = 2;
        it.dies[3].failure = Some("a write: timed out".into());
    });
    let text = "Die 3 (/dev/d3) failed 2 requests since the volume was opened, last a write: \
                timed out.";
    assert_eq!((problem.text.as_str(), problem.count, bits), (text, 2, 0));
    assert_eq!((problem.kind, problem.severity), (ProblemKind::DieErrors, HealthState::Degraded));
}

#[test]
fn the_last_scrub_is_a_problem_if_it_failed_or_left_something() {
    let scrubs = |change: fn(&mut Scrubs)| problem_of(|it| change(&mut it.maintenance.scrubs));
    let (left, bits) = scrubs(|it| it.units_left = 1);
    assert!(left.text.contains("found 1 corrupt unit that it could not repair"), "{}", left.text);
    assert_eq!((left.count, bits), (1, WARNS_OF_RELIABILITY));
    let (many, _) = scrubs(|it| it.units_left = 3);
    assert!(many.text.contains("3 corrupt units that it"), "{}", many.text);
    let (copies, bits) = scrubs(|it| it.copies_left = 2);
    assert!(copies.text.contains("could not write 2 copies of headers"), "{}", copies.text);
    assert_eq!((copies.count, bits), (2, WARNS_OF_RELIABILITY));
    let (failed, _) = scrubs(|it| it.failure = Some("die 1 does not answer".into()));
    assert_eq!(failed.text, "The last scrub failed: die 1 does not answer.");
    let clean = judged(|it| {
        (it.maintenance.scrubs.ended, it.maintenance.scrubs.completed) = (3, 3);
        it.maintenance.scrub = Some(Scrub { is_running: true, units_bad: 9, ..Scrub::default() });
    });
    assert!(clean.health.problems.is_empty(), "one that is under way has not ended");
}

#[test]
fn spare_wear_and_heat_are_problems_at_their_limits() {
    let spare = |left| judged(|it| it.smart.available_spare = Some(left));
    assert!(spare(10).health.problems.is_empty());
    assert_eq!(spare(9).health.problems[0].kind, ProblemKind::SpareLow);
    assert_eq!(spare(9).smart.critical_warning, WARNS_OF_SPARE);
    let worn = |used| judged(|it| it.smart.percentage_used = Some(used));
    assert!(worn(99).health.problems.is_empty());
    assert_eq!(worn(100).health.problems[0].kind, ProblemKind::WornOut);
    let warm = |temperature_c| {
        judged(|it| {
            let climate = Climate {
                temperature_c,
                throttle_c: 70.0,
                shutdown_c: 85.0,
                energy_j: 0.0,
                power_limit_w: None,
                throttled_s: 0.0,
            };
            let model =
                Model { name: "duo".into(), climate: Some(climate), lateness: Lateness::default() };
            it.server.as_mut().unwrap().model = Some(model);
        })
    };
    assert!(warm(69.9).health.problems.is_empty());
    let hot = warm(70.0);
    assert_eq!(hot.health.problems[0].kind, ProblemKind::Temperature);
    assert_eq!(hot.smart.critical_warning, WARNS_OF_TEMPERATURE);
    let on_disk = |temperature_c, limit| {
        judged(|it| {
            (it.dies[2].temperature_c, it.dies[2].temperature_warning_c) = (temperature_c, limit);
        })
    };
    for (now, limit) in [(Some(74), Some(75)), (Some(75), None), (None, Some(75))] {
        assert!(on_disk(now, limit).health.problems.is_empty(), "{now:?} of {limit:?}");
    }
    let hot = on_disk(Some(75), Some(75));
    assert!(hot.health.problems[0].text.starts_with("Die 2"), "{:?}", hot.health.problems);
    assert_eq!(hot.smart.critical_warning, WARNS_OF_TEMPERATURE);
}

#[test]
fn problems_are_told_the_worst_first_and_dies_in_their_order() {
    let status = judged(|it| {
        it.pages_lost = Some(1);
        it.smart.available_spare = Some(0);
        it.dies[3].is_lost = true;
        it.dies[1].is_lost = true;
        it.reason = Some("two dies are gone".into());
    });
    let told: Vec<(ProblemKind, Option<u32>)> =
        status.health.problems.iter().map(|it| (it.kind, it.die)).collect();
    let expected = [
        (ProblemKind::ReadOnly, None),
        (ProblemKind::PagesLost, None),
        (ProblemKind::DieFailed, Some(1)),
        (ProblemKind::DieFailed, Some(3)),
        (ProblemKind::SpareLow, None),
    ];
    assert_eq!(told, expected);
    assert_eq!(status.health.state, HealthState::Critical);
    let all = WARNS_OF_SPARE | WARNS_OF_RELIABILITY | WARNS_OF_READ_ONLY;
    assert_eq!(status.smart.critical_warning, all);
}

#[test]
fn bits_of_a_warning_have_the_names_of_nvme_cli() {
    let names = |bits| warning_names(bits).collect::<Vec<_>>();
    assert!(names(0).is_empty());
    assert_eq!(names(0b11001), ["available spare", "read-only", "volatile memory backup"]);
    assert_eq!(names(0xe0), Vec::<&str>::new(), "bits that are never set");
}

#[test]
fn every_kind_of_problem_and_state_has_the_word_that_json_has() {
    for kind in ProblemKind::ALL {
        let json = serde_json::to_string(&kind).unwrap();
        assert_eq!(json, format!("\"{}\"", kind.word()));
    }
    for state in [HealthState::Ok, HealthState::Degraded, HealthState::Critical] {
        let json = serde_json::to_string(&state).unwrap();
        assert_eq!(json, format!("\"{}\"", state.word()));
    }
    assert!(HealthState::Ok < HealthState::Degraded);
    assert!(HealthState::Degraded < HealthState::Critical);
}

#[test]
fn a_lost_die_of_an_earlier_server_counts_as_failed() {
    // It told no state, and so is read as good.
    let status = judged(|it| it.dies[0].is_lost = true);
    assert_eq!(status.dies[0].state, DieState::Failed);
    assert_eq!(status.health.problems[0].kind, ProblemKind::DieFailed);
}

#[test]
fn traffic_of_a_server_is_told_in_the_units_of_the_smart_log() {
    let mut with = status();
    let mut server = served().server.unwrap();
    server.traffic.reads.bytes = 512_001;
    server.traffic.reads.commands = 3;
    server.traffic.writes.bytes = 0;
    with = with.served(server);
    assert_eq!(with.smart.data_units_read, Some(2), "rounded up");
    assert_eq!(with.smart.data_units_written, Some(0));
    assert_eq!(with.smart.host_read_commands, Some(3));
    assert_eq!(with.smart.composite_temperature, None, "no model has told one");
}
