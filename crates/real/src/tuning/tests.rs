//! Tuning a machine made of plain files.

use super::*;
use crate::machine_fixture::Machine;

const QUEUE_OF_SDA: &str = "sys/devices/block/sda/queue";
const GOVERNOR_OF_0: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor";

/// A machine whose every setting is as it comes.
fn machine() -> Machine {
    let machine = Machine::with_disk();
    machine.write(&format!("{QUEUE_OF_SDA}/scheduler"), "none [mq-deadline] kyber");
    machine.write(&format!("{QUEUE_OF_SDA}/nomerges"), "0");
    machine.write(&format!("{QUEUE_OF_SDA}/rq_affinity"), "2");
    machine.write(GOVERNOR_OF_0, "powersave");
    machine.write(&GOVERNOR_OF_0.replace("policy0", "policy1"), "powersave");
    machine.write(LINKS, "[default] performance powersave");
    machine
}

fn disk(machine: &Machine) -> Block {
    machine.system().block_at("/dev/sda".as_ref()).unwrap()
}

fn tuned(machine: &Machine) -> TunedMachine {
    TunedMachine::begin(&machine.system(), &[disk(machine)]).unwrap()
}

/// Current values of scheduler, merging, governors and links.
fn settings(machine: &Machine) -> [String; 5] {
    let second = GOVERNOR_OF_0.replace("policy0", "policy1");
    let queue = |name: &str| format!("{QUEUE_OF_SDA}/{name}");
    let paths = [queue("scheduler"), queue("nomerges"), GOVERNOR_OF_0.into(), second, LINKS.into()];
    paths.map(|path| setting(&machine.system(), &path).unwrap())
}

/// Leaves what a run leaves that is killed: its settings and its journal.
fn kill(tuned: TunedMachine) {
    let (system, changes) = (tuned.system.clone(), tuned.changes.clone());
    let journal = fs::read_to_string(system.path(JOURNAL)).unwrap();
    drop(tuned);
    fs::write(system.path(JOURNAL), journal).unwrap();
    for Change { path, after, .. } in changes {
        system.set(path, &after).unwrap();
    }
}

const AS_IT_COMES: [&str; 5] = ["mq-deadline", "0", "powersave", "powersave", "default"];
const AS_WISHED: [&str; 5] = ["none", "2", "performance", "performance", "performance"];

#[test]
fn a_machine_is_tuned_for_as_long_as_it_is_measured() {
    let machine = machine();
    let tuned = tuned(&machine);
    assert_eq!(settings(&machine), AS_WISHED);
    assert_eq!(
        tuned.shown(),
        "scheduler none (was mq-deadline), nomerges 2 (was 0), CPU governor performance (was \
         powersave), PCIe ASPM performance (was default)",
        "what was right, and what is not there, is not told"
    );
    assert_eq!(tuned.warnings().count(), 0);
    drop(tuned);
    assert_eq!(settings(&machine), AS_IT_COMES);
    assert_eq!(left_on(&machine.system()), 0);
}

#[test]
fn what_a_killed_run_changed_is_put_back_from_its_journal() {
    let machine = machine();
    kill(tuned(&machine));
    assert_eq!(settings(&machine), AS_WISHED);
    assert_eq!(left_on(&machine.system()), 5);
    let reverted = revert_on(&machine.system()).unwrap();
    assert_eq!(settings(&machine), AS_IT_COMES);
    assert!(reverted.iter().all(|it| it.is_done));
    assert_eq!(reverted[4].setting, "/sys/class/block/sda/queue/scheduler", "last first");
    assert_eq!(reverted[4].text, "is mq-deadline again, was none");
    assert_eq!(revert_on(&machine.system()).unwrap(), [], "once is enough");
}

#[test]
fn the_next_run_puts_back_what_a_killed_one_found() {
    let machine = machine();
    kill(tuned(&machine));
    drop(tuned(&machine));
    assert_eq!(settings(&machine), AS_IT_COMES);
}

#[test]
fn a_setting_that_another_process_changed_meanwhile_stays() {
    let machine = machine();
    let tuned = tuned(&machine);
    machine.write(&format!("{QUEUE_OF_SDA}/scheduler"), "none mq-deadline [kyber]");
    drop(tuned);
    assert_eq!(settings(&machine), ["kyber", "0", "powersave", "powersave", "default"]);
}

#[test]
fn one_run_at_a_time_tunes_a_machine() {
    let machine = machine();
    let _first = tuned(&machine);
    let second = TunedMachine::begin(&machine.system(), &[]).unwrap_err();
    assert_eq!(second.to_string(), "another run has tuned this machine and is still in progress");
    let refused = revert_on(&machine.system()).unwrap_err();
    assert_eq!(refused.to_string(), "another run has tuned this machine and is still in progress");
    assert_eq!(settings(&machine), AS_WISHED);
}

#[test]
fn a_file_leaves_the_queue_of_the_disk_that_it_shares_as_it_is() {
    let machine = machine();
    let _tuned = TunedMachine::begin(&machine.system(), &[]).unwrap();
    assert_eq!(
        settings(&machine),
        ["mq-deadline", "0", "performance", "performance", "performance"]
    );
}

#[test]
fn a_line_that_was_cut_off_is_of_a_change_that_was_not_made() {
    let machine = machine();
    kill(tuned(&machine));
    let journal = machine.system().path(JOURNAL);
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, &text[..text.len() - 4]).unwrap();
    assert_eq!(left_on(&machine.system()), 4);
}
