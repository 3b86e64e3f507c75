//! The guard on real loop devices. They need root and `losetup`; each test says so where it cannot
//! run.

use super::permit;
use crate::machine_fixture::LoopDisk;

#[test]
fn a_loop_disk_is_refused_while_its_partition_is_mounted() {
    let Some(mut disk) = LoopDisk::partitioned() else { return };
    if !disk.mount() {
        return;
    }
    let error = permit(disk.node(), true).unwrap_err().to_string();
    assert!(error.contains(&format!("{} is mounted at", disk.partition().display())), "{error}");
    let error = permit(&disk.image(), true).unwrap_err().to_string();
    assert!(error.contains("it is the backing file of"), "{error}");
}

#[test]
fn an_idle_disk_with_a_partition_table_is_held_with_its_partitions() {
    let Some(disk) = LoopDisk::partitioned() else { return };
    let permitted = permit(disk.node(), true).unwrap();
    let error = permit(&disk.partition(), true).unwrap_err().to_string();
    assert!(error.ends_with("it is open elsewhere exclusively"), "{error}");
    drop(permitted);
    permit(&disk.partition(), true).unwrap();
}

#[test]
fn a_disk_is_refused_while_a_partition_is_open_exclusively() {
    let Some(disk) = LoopDisk::partitioned() else { return };
    let partition = permit(&disk.partition(), true).unwrap();
    let error = permit(disk.node(), true).unwrap_err().to_string();
    assert!(error.ends_with("it is open elsewhere exclusively"), "{error}");
    drop(partition);
}
