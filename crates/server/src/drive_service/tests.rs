//! A served drive under observation, over volumes and memory.

#[expect(dead_code, reason = "the tests of the controller use the rest of it")]
#[path = "../../../export/tests/nvme/host.rs"]
mod host;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use blockio::Bytes;
use live::fault_injection::{Fault, FaultInjector, Schedule};
use live::operator::PersistentState;
use live::{
    Compression, CreateOptions, Durability, Exit, FormatRequest, InjectedError, InjectedErrorKind,
    NamespaceRequest, OperationError, Operations as _, SanitizeState, SelfTest, SelfTestEnd,
    VolumeOptions,
};
use status::management::{Answer, Request};
use status::{HealthState, ProblemKind};

use self::host::{Data, Host, Inner, Order, io};
use super::*;

/// A namespace that several controllers may have.
fn shared(size: u64, block_bytes: u32) -> NamespaceRequest {
    NamespaceRequest { size, block_bytes, is_private: false }
}

const PATTERN: &[u8] = b"nobody may find this on a die";

/// A volume of one die in a folder.
fn volume(folder: &Path) -> PathBuf {
    volume_of(folder, &["die"])
}

/// A volume of these dies in a folder, with parity if there are several.
fn volume_of(folder: &Path, dies: &[&str]) -> PathBuf {
    let volume = folder.join("volume");
    let options = CreateOptions {
        volume: volume.clone(),
        dies: dies.iter().map(|die| folder.join(die)).collect(),
        size: Bytes(32 << 20),
        is_protected: dies.len() > 1,
        over_provisioning: 0.5,
        compression: Compression::None,
        physical: None,
        unit: None,
    };
    live::create(&options, &VolumeOptions::default()).unwrap();
    volume
}

/// Opens a volume as a server does.
fn serve(volume: &Path) -> (Arc<DriveService>, Arc<Operator>) {
    let drive = Arc::new(Drive::open(volume).unwrap());
    let service = Arc::new(DriveService::new(volume, drive, None));
    let kept = live::load_operations(volume, 512).unwrap();
    operate(&service, kept)
}

fn operate(
    service: &Arc<DriveService>,
    kept: PersistentState,
) -> (Arc<DriveService>, Arc<Operator>) {
    let backing = Arc::<DriveService>::clone(service);
    let operator = Arc::new(Operator::open(service.device(), backing, kept, false).unwrap());
    service.operate_by(&operator);
    (Arc::clone(service), operator)
}

/// A drive in memory, which is one namespace.
fn in_memory() -> (Arc<DriveService>, Arc<Operator>) {
    let service = Arc::new(DriveService::in_memory(1 << 20, None).unwrap());
    operate(&service, PersistentState::whole(512))
}

fn await_end(operator: &Operator) {
    let deadline = Instant::now() + Duration::from_mins(2);
    loop {
        let status = operator.operation_status();
        let is_sanitizing = status.sanitize.state == SanitizeState::Running;
        if !status.is_formatting && !is_sanitizing && status.self_test.is_none() {
            return;
        }
        assert!(Instant::now() < deadline, "{status:?}");
        std::thread::yield_now();
    }
}

/// True if the die of a volume holds the pattern.
fn is_on_die(folder: &Path) -> bool {
    let die = fs::read(folder.join("die")).unwrap();
    die.windows(PATTERN.len()).any(|bytes| bytes == PATTERN)
}

#[test]
fn a_drive_in_memory_counts_what_clients_move_and_claims_no_media() {
    let (service, operator) = in_memory();
    let device = Arc::clone(&operator.namespaces()[0].device);
    device.write(0, &[1; 8192], Durability::Volatile).unwrap();
    device.read(0, &mut [0; 4096]).unwrap();
    let health = service.health();
    assert_eq!((health.host_written_bytes, health.host_read_bytes), (8192, 4096));
    assert_eq!((health.host_write_commands, health.host_read_commands), (1, 1));
    assert_eq!((health.media_written_bytes, health.erase_count_max), (None, None));
    assert_eq!(service.identity().model, "Floatgate memory drive");
    let status = service.status();
    let namespaces = status.server.unwrap().namespaces;
    assert_eq!((namespaces[0].id, namespaces[0].writes.bytes), (1, 8192));
    assert_eq!(status.space.unwrap().stored_bytes, 8192);
    assert!(service.volume().is_none() && service.maintenance().is_none());
    let (other, _) = in_memory();
    assert_ne!(service.number(), other.number());
    operator.begin_sanitize(Exit::Restricted.into()).unwrap();
    await_end(&operator);
    assert_eq!(service.status().space.unwrap().stored_bytes, 0);
}

#[test]
fn a_path_that_is_relative_is_refused_since_the_server_has_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (service, _operator) = serve(&volume_of(folder.path(), &["a", "b"]));
    let path = PathBuf::from("spare.img");
    for request in [
        Request::AddSpare { path: path.clone(), destroy: false },
        Request::RemoveSpare { path: path.clone() },
        Request::ReplaceDie { die: 0, path: path.clone(), destroy: false },
    ] {
        let Answer::Refused { reason } = service.answer(&request) else {
            panic!("{request:?} was accepted");
        };
        assert!(reason.starts_with("the path spare.img is relative, must be abs"), "{reason}");
    }
    assert!(!path.exists());
}

#[test]
fn faults_of_hosts_change_what_health_says() {
    let (service, operator) = in_memory();
    assert_eq!(service.health().critical_warning, 0);
    service.inject_for_hosts(Fault::Heat { celsius: 60 }).unwrap();
    assert_eq!(service.health().critical_warning, 0, "warm, and not too warm");
    service.inject_for_hosts(Fault::Heat { celsius: 90 }).unwrap();
    let health = service.health();
    assert_eq!((health.critical_warning, health.composite_temperature_k), (2, Some(363)));
    service.inject_for_hosts(Fault::FailWrites { namespace: 1 }).unwrap();
    assert_eq!(service.health().critical_warning, 2 | 8);
    let status = service.status();
    assert_eq!((status.smart.critical_warning, status.health.state), (8, HealthState::Critical));
    assert_eq!(status.health.problems[0].kind, ProblemKind::ReadOnly);
    assert!(status.server.unwrap().namespaces[0].is_write_protected);
    service.inject_for_hosts(Fault::FailWrites { namespace: 7 }).unwrap_err();
    service.inject_for_hosts(Fault::ResetControllers {}).unwrap_err();
    drop(operator);
}

#[test]
fn injected_wear_is_that_of_status_and_hosts() {
    let (service, operator) = in_memory();
    for (used_percent, spare_percent, warning) in [(99, 10, 0), (101, 9, 1)] {
        service.inject_for_hosts(Fault::Wear { used_percent, spare_percent }).unwrap();
        let (health, status) = (service.health(), service.status());
        assert_eq!(health.critical_warning, warning, "only below the threshold");
        assert_eq!(
            (health.percentage_used, health.available_spare_percent),
            (used_percent, spare_percent)
        );
        assert_eq!(status.smart.percentage_used, Some(used_percent));
        let kinds: Vec<_> = status.health.problems.iter().map(|it| it.kind).collect();
        let expected = [ProblemKind::SpareLow, ProblemKind::WornOut];
        assert_eq!(kinds, if warning == 1 { &expected[..] } else { &[] });
    }
    drop(operator);
}

#[test]
fn errors_that_a_host_injects_are_faults() {
    let injector = FaultInjector::new(Schedule::default(), |_| (), |_, _| ());
    let service = DriveService::in_memory(1 << 20, Some(Arc::clone(&injector))).unwrap();
    let (service, operator) = operate(&Arc::new(service), PersistentState::whole(512));
    let own = Arc::clone(&service);
    injector.call_for_hosts(Box::new(move |fault| own.inject_for_hosts(fault)));
    let error = |kind, after_reads| InjectedError { kind, after_reads };
    let (hot, worn) = (InjectedErrorKind::CriticalTemperature, InjectedErrorKind::NoSpares);
    let errors = [error(hot, 1), error(worn, 2)];
    operator.inject_errors(&errors).unwrap();
    assert_eq!(operator.injected_errors(), errors);
    injector.keep_time().unwrap();
    let device = Arc::clone(&operator.namespaces()[0].device);
    for (warning, left) in [(2, &errors[1..]), (2 | 8, &[])] {
        device.read(0, &mut [0; 512]).unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        while service.health().critical_warning != warning {
            assert!(Instant::now() < deadline, "{left:?}");
            std::thread::yield_now();
        }
        assert_eq!(operator.injected_errors(), left);
    }
    let (_, operator) = in_memory();
    assert!(!operator.injects_errors(), "only where faults may be injected");
}

#[test]
fn a_volume_that_was_divided_by_a_host_is_found_so_by_the_next_server() {
    let folder = tempfile::tempdir().unwrap();
    let volume = volume(folder.path());
    let (service, operator) = serve(&volume);
    operator.delete_namespace(None).unwrap();
    assert_eq!(operator.create_namespace(&shared(1 << 20, 4096)).unwrap(), 1);
    assert_eq!(operator.create_namespace(&shared(2 << 20, 512)).unwrap(), 2);
    operator.delete_namespace(Some(1)).unwrap();
    let device = Arc::clone(&operator.namespaces()[0].device);
    device.write(0, PATTERN, Durability::Durable).unwrap();
    operator.mark_unreadable(2, 64, 1).unwrap();
    drop((device, operator, service));
    let (service, operator) = serve(&volume);
    let found = operator.namespaces();
    assert_eq!((found.len(), found[0].id, &*found[0].name), (1, 2, "ns2"));
    let mut back = [0; PATTERN.len()];
    found[0].device.read(0, &mut back).unwrap();
    assert_eq!(back, PATTERN);
    assert!(found[0].device.read(64 * 512, &mut [0; 1]).is_err());
    let full = operator.create_namespace(&shared(1 << 30, 512)).unwrap_err();
    assert!(matches!(full, OperationError::NoSpace { .. }), "{full}");
    operator.begin_self_test(SelfTest::Extended, Some(2)).unwrap();
    await_end(&operator);
    let end = operator.operation_status().self_tests[0].end;
    assert_eq!(end, SelfTestEnd::Passed, "a mark is not a fault of the media");
    let told: Vec<String> = service.events().into_iter().map(|event| event.text).collect();
    assert!(told.iter().any(|text| text.contains("`ns2`, of 2097152 bytes was created")));
    assert!(service.events().iter().any(|event| event.kind == EventKind::Namespace));
}

#[test]
fn what_is_sanitized_or_formatted_securely_is_on_no_die() {
    let folder = tempfile::tempdir().unwrap();
    let volume = volume(folder.path());
    let (_service, operator) = serve(&volume);
    let device = Arc::clone(&operator.namespaces()[0].device);
    for is_format in [false, true] {
        for page in 0..300 {
            device.write(page * 4096, PATTERN, Durability::Volatile).unwrap();
        }
        device.flush().unwrap();
        assert!(is_on_die(folder.path()));
        if is_format {
            let request = FormatRequest { namespace: Some(1), block_bytes: 4096, is_secure: true };
            operator.begin_format(&request).unwrap();
        } else {
            operator.begin_sanitize(Exit::Restricted.into()).unwrap();
        }
        await_end(&operator);
        assert!(!is_on_die(folder.path()));
        let mut back = [1; PATTERN.len()];
        device.read(0, &mut back).unwrap();
        assert_eq!(back, [0; PATTERN.len()]);
    }
    assert_eq!(operator.namespaces()[0].block_bytes, 4096);
}

#[test]
fn a_sanitize_that_a_crash_ended_goes_on_with_the_next_server() {
    let folder = tempfile::tempdir().unwrap();
    let volume = volume(folder.path());
    {
        let (_service, operator) = serve(&volume);
        let device = Arc::clone(&operator.namespaces()[0].device);
        device.write(0, PATTERN, Durability::Durable).unwrap();
    }
    // As a server leaves it that was killed just after it had begun.
    let kept = live::load_operations(&volume, 512).unwrap();
    live::keep_operations(&volume, &PersistentState { sanitize: SanitizeState::Running, ..kept })
        .unwrap();
    assert!(is_on_die(folder.path()));
    let (_service, operator) = serve(&volume);
    await_end(&operator);
    assert_eq!(operator.operation_status().sanitize.state, SanitizeState::Done);
    assert!(!is_on_die(folder.path()));
    operator.stop();
    assert_eq!(live::load_operations(&volume, 512).unwrap().sanitize, SanitizeState::Done);
}

/// A host of an operated drive: its admin queue and an I/O queue.
fn nvme_host(operator: &Arc<Operator>, identifier: u8) -> (Host<Inner>, Host<Inner>) {
    let subsystem = Arc::new(Subsystem::operated(Arc::<Operator>::clone(operator)));
    Host::queues(&subsystem, [identifier; 16])
}

#[test]
fn a_reservation_outlasts_a_killed_server_if_a_host_wants_it_to() {
    const PERSISTENT: u32 = 3 << 30;
    for persistence in [0, PERSISTENT] {
        let folder = tempfile::tempdir().unwrap();
        let volume = volume(folder.path());
        {
            let (_service, operator) = serve(&volume);
            let (mut admin, mut queue) = nvme_host(&operator, 1);
            assert_eq!(admin.identify(0, 1).data[31] & 1, 1, "RESCAP");
            let mut reserve = |opcode, dword: u32, keys: [u64; 2]| {
                let data = keys.map(u64::to_le_bytes).concat();
                queue.run(&Order::new(opcode, 1, &[dword]).with(Data::Capsule(&data))).status
            };
            assert_eq!(reserve(0x0D, persistence, [0, 0xA]), 0);
            assert_eq!(reserve(0x11, 3 << 8, [0xA, 0]), 0);
            // Nothing is closed.
        }
        let (_service, operator) = serve(&volume);
        let client = operator.namespaces()[0].fenced_device();
        let is_open = client.write(0, &[1; 512], Durability::Volatile).is_ok();
        assert_eq!(is_open, persistence == 0, "to clients of other protocols");
        for identifier in [1, 2] {
            let (_admin, mut queue) = nvme_host(&operator, identifier);
            let write = io(0x01, 1, 0, 1);
            let status = queue.run(&write.with(Data::Capsule(&[1; 512]))).status;
            let is_admitted = identifier == 1 || persistence == 0;
            assert_eq!(status, if is_admitted { 0 } else { 0x83 }, "host {identifier}");
        }
    }
}

#[test]
fn a_drive_in_memory_does_not_promise_to_keep_reservations() {
    let (_service, operator) = in_memory();
    let (mut admin, _) = nvme_host(&operator, 1);
    assert_eq!(admin.identify(0, 1).data[31], 0xFE, "RESCAP");
    assert_eq!(admin.run(&Order::new(0x09, 1, &[0x83, 1])).status, 0x02);
}

#[test]
fn a_drive_that_refuses_all_commands_after_a_sanitize_is_critical() {
    for is_read_only in [false, true] {
        let service = Arc::new(DriveService::in_memory(1 << 20, None).unwrap());
        let backing = Arc::<DriveService>::clone(&service);
        let sanitize = if is_read_only { SanitizeState::Running } else { SanitizeState::Failed };
        let kept = PersistentState { sanitize, exit_is_free: true, ..PersistentState::whole(512) };
        let operator = Operator::open(service.device(), backing, kept, is_read_only).unwrap();
        let operator = Arc::new(operator);
        service.operate_by(&operator);
        let device = Arc::clone(&operator.namespaces()[0].device);
        device.read(0, &mut [0; 512]).unwrap_err();
        let status = service.status();
        assert_eq!(status.health.state, HealthState::Critical, "read-only: {is_read_only}");
        assert_eq!((status.smart.critical_warning, service.health().critical_warning), (8, 8));
        if !is_read_only {
            service.look();
            operator.exit_failure().unwrap();
            assert_eq!(service.look().health.state, HealthState::Ok);
            let events = service.status().server.unwrap().events;
            let is_told = |it: &str| events.iter().any(|event| event.what.starts_with(it));
            assert!(is_told("A sanitize failed, and all reads and writes are refused. Look"));
            assert!(is_told("The volume accepts reads and writes again."));
        }
    }
}

#[test]
fn commands_that_a_gate_refuses_are_counted_in_all_and_for_their_namespace() {
    let (service, operator) = in_memory();
    let device = Arc::clone(&operator.namespaces()[0].device);
    device.write(0, &[1; 4096], Durability::Volatile).unwrap();
    operator.fail_writes(1).unwrap();
    device.write(0, &[1; 4096], Durability::Volatile).unwrap_err();
    operator.begin_self_test(SelfTest::Extended, None).unwrap();
    await_end(&operator);
    let Server { traffic, namespaces, .. } = service.status().server.unwrap();
    assert_eq!((traffic.writes.commands, traffic.writes.failures), (2, 1));
    assert_eq!((namespaces[0].writes.commands, namespaces[0].writes.failures), (2, 1));
    assert_eq!(traffic.reads.commands, 0, "a self-test is no command of a client");
}

#[test]
fn a_die_that_failed_before_a_sanitize_or_secure_format_fails_it_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let volume = volume_of(folder.path(), &["other", "die", "third"]);
    let (service, operator) = serve(&volume);
    let device = Arc::clone(&operator.namespaces()[0].device);
    for page in 0..300 {
        device.write(page * 4096, PATTERN, Durability::Durable).unwrap();
    }
    assert!(matches!(service.answer(&Request::FailDie { die: 1 }), Answer::Done));
    let die = folder.path().join("die");
    let reason = format!(
        "Die 1 ({}) has failed and was not erased: destroy it, or erase it by other means",
        die.display()
    );
    let request = FormatRequest { namespace: Some(1), block_bytes: 4096, is_secure: true };
    operator.begin_format(&request).unwrap();
    await_end(&operator);
    assert_eq!(operator.operation_status().format_failure.as_ref(), Some(&reason));
    operator.begin_sanitize(Exit::Restricted.into()).unwrap();
    await_end(&operator);
    assert_eq!(operator.operation_status().sanitize.state, SanitizeState::Failed);
    let events = service.events();
    let failed = format!("The sanitize failed: {reason}.");
    assert!(events.iter().any(|event| event.text == failed), "{events:?}");
    assert!(is_on_die(folder.path()), "the failed die still holds what it held");
}
