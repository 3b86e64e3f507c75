//! Two servers of fio on loopback addresses, each with a file of its own under the same name.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::thread;

use lab::driver::{Driver as _, Load};
use lab::target::address::Address;
use lab::{PurgeMethod, Rate};
use results::{TargetKind, WarningKind};
use tempfile::TempDir;
use workload::catalogue;

use super::*;
use crate::fio::tests::{Meddler, Trial, Waiter, fio_is_missing, load};
use crate::machine_fixture::LoopDisk;

/// A server that ends when dropped.
struct FioServer {
    child: Child,
    address: String,
    port: u16,
    folder: TempDir,
}

impl FioServer {
    /// Serves on `address` from a folder of its own that has `disk.img` of `bytes`.
    fn start(address: &str, bytes: u64) -> Self {
        let folder = TempDir::new().unwrap();
        File::create(folder.path().join("disk.img")).unwrap().set_len(bytes).unwrap();
        Self::start_in(folder, address)
    }

    /// Serves on `address` from a folder of its own in which `disk.img` is `disk`.
    fn start_with(address: &str, disk: &LoopDisk) -> Self {
        let folder = TempDir::new().unwrap();
        symlink(disk.node(), folder.path().join("disk.img")).unwrap();
        Self::start_in(folder, address)
    }

    fn start_in(folder: TempDir, address: &str) -> Self {
        let port = TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().port();
        let child = process::dying_with_us("fio")
            .arg(format!("--server={address},{port}"))
            .current_dir(folder.path())
            .process_group(0)
            .stdout(File::create(folder.path().join("said")).unwrap())
            .stderr(File::create(folder.path().join("said-too")).unwrap())
            .spawn()
            .unwrap();
        let server = Self { child, address: address.to_owned(), port, folder };
        let began = Instant::now();
        while TcpStream::connect((address, port)).is_err() {
            assert!(began.elapsed() < PATIENCE, "fio --server does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        server
    }

    fn name(&self) -> String {
        format!("{}:{}", self.address, self.port)
    }

    /// Bytes of its file that were written.
    fn written_bytes(&self) -> u64 {
        fs::metadata(self.folder.path().join("disk.img")).unwrap().blocks() * 512
    }
}

impl Drop for FioServer {
    fn drop(&mut self) {
        // Each connection has a process of its own.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}

fn request(hosts: &str, folder: &TempDir) -> Trial {
    let address = Address::parse("./disk.img", hosts).unwrap();
    Trial::new(address, folder.path().join("raw")).with(|it| it.destroy = true)
}

const MIB: u64 = 1 << 20;
const STEP: &str = "hosts/T2Q4";

#[test]
fn two_hosts_carry_out_a_load_and_their_results_are_added() {
    if fio_is_missing() {
        return;
    }
    let servers =
        [FioServer::start("127.0.0.1", 64 * MIB), FioServer::start("127.0.0.2", 70 * MIB)];
    let folder = TempDir::new().unwrap();
    let hosts = servers.each_ref().map(FioServer::name).join(",");
    let mut fio = request(&hosts, &folder).open().unwrap();
    let target = fio.target();
    assert_eq!((target.kind, target.devices), (TargetKind::Remote, 2));
    assert_eq!(target.user_capacity_bytes, 64 * MIB, "the smaller one's");

    assert_eq!(fio.purge().unwrap(), super::super::purge::OVERWRITTEN);
    let workload = catalogue::find_workload("8k-70-30").unwrap();
    let loaded = fio.load(&load(&workload, STEP), &mut Waiter::patient()).unwrap();
    assert!(servers.iter().all(|server| server.written_bytes() >= 64 * MIB), "both were filled");
    assert_eq!(loaded.intervals.len(), 3);
    for server in &servers {
        let argument = format!("--client={},{} job.fio", server.address, server.port);
        assert!(loaded.how.contains(&argument), "{}", loaded.how);
    }
    assert!(loaded.warnings.iter().any(|it| it.text.starts_with("only fio runs on")));
    let shortfall = loaded.warnings.iter().find(|it| it.kind == WarningKind::Purge).unwrap();
    assert!(shortfall.text.contains("Inappropriate ioctl"), "a file: {}", shortfall.text);

    let raw = folder.path().join("raw/hosts/T2Q4");
    let logged = |host: &str| -> u64 {
        let rows = (1..=2).flat_map(|job| log::rows(&raw, host, job).unwrap());
        rows.flat_map(|row| row.counts).map(|(_, count)| count).sum()
    };
    let all = logged("127.0.0.1") + logged("127.0.0.2");
    assert!(logged("127.0.0.1") > 0 && logged("127.0.0.2") > 0);
    let kept: u64 = loaded.intervals.iter().map(|it| it.read.count() + it.write.count()).sum();
    assert!(kept <= all && kept as f64 > all as f64 * 0.5, "{kept} of {all}");
}

#[test]
fn devices_of_hosts_are_trimmed_through_fio() {
    if fio_is_missing() {
        return;
    }
    let Some(disks) = LoopDisk::new().zip(LoopDisk::new()) else { return };
    let disks = [disks.0, disks.1];
    let servers = [("127.0.0.4", &disks[0]), ("127.0.0.5", &disks[1])]
        .map(|(address, disk)| FioServer::start_with(address, disk));
    let stored = || disks.each_ref().map(|disk| fs::metadata(disk.image()).unwrap().blocks());
    for disk in &disks {
        fs::write(disk.node(), vec![1; 16 << 20]).unwrap();
        File::open(disk.node()).unwrap().sync_all().unwrap();
    }
    assert!(stored().iter().all(|blocks| *blocks >= 16 * MIB / 512));
    let folder = TempDir::new().unwrap();
    let hosts = servers.each_ref().map(FioServer::name).join(",");
    let mut fio = request(&hosts, &folder).open().unwrap();
    let how = "all 16 MiB trimmed on each of 127.0.0.4, 127.0.0.5 through fio (rw=trim)";
    assert_eq!(fio.purge().unwrap(), how);
    assert_eq!(stored(), [0, 0], "nothing is stored any more");
    let format = request(&hosts, &folder).with(|it| it.purge = PurgeMethod::Format);
    let error = format.open().unwrap().purge().unwrap_err();
    let said = "purging by format: fio's servers support trims only";
    assert_eq!(error.to_string(), said);
}

#[test]
fn without_leave_to_destroy_no_host_is_asked() {
    let folder = TempDir::new().unwrap();
    let request = request("nowhere.invalid", &folder).with(|it| it.destroy = false);
    if fio_is_missing() {
        return;
    }
    let error = request.open().unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.to_string().contains("on nowhere.invalid, and what is on it, cannot be seen"));
    assert!(error.remedy().contains("--destroy"));
    assert!(!folder.path().join("raw").exists());
}

#[test]
fn a_host_without_a_server_is_one_clear_error() {
    if fio_is_missing() {
        return;
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let folder = TempDir::new().unwrap();
    let error = request(&format!("127.0.0.1:{port}"), &folder).open().unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(cause.contains(&format!("failed to connect to 127.0.0.1:{port}")), "{error}: {cause}");
    assert!(error.remedy().contains("fio --server"), "{}", error.remedy());
}

#[test]
fn a_host_that_goes_away_under_a_load_is_an_error_that_names_it() {
    if fio_is_missing() {
        return;
    }
    let stays = FioServer::start("127.0.0.1", 16 * MIB);
    let mut goes = Some(FioServer::start("127.0.0.3", 16 * MIB));
    let hosts = format!("{},{}", stays.name(), goes.as_ref().unwrap().name());
    let folder = TempDir::new().unwrap();
    let mut fio = request(&hosts, &folder).open().unwrap();
    let workload = catalogue::find_workload("4k-rand-read").unwrap();
    // As long as a very busy machine may take until the watch has looked ten times.
    let load = Load { duration_s: 10.0, ..load(&workload, STEP) };
    let mut watch = Meddler::new(|| drop(goes.take()));
    let error = fio.load(&load, &mut watch).unwrap_err();
    assert!(error.to_string().contains("127.0.0.3"), "{error}");
}

#[test]
fn hosts_are_names_with_ports_each_once() {
    let hosts = Hosts::parse("a, node-2.example:9000,10.0.0.7").unwrap();
    assert_eq!(hosts.to_string(), "a, node-2.example, 10.0.0.7");
    let arguments = hosts.arguments("job.fio").join(" ");
    let expected = "--client=a job.fio --client=node-2.example,9000 job.fio --client=10.0.0.7 \
                    job.fio";
    assert_eq!(arguments, expected);
    for (text, said) in [
        ("", "`` in `` is not a host"),
        ("a,,b", "`` in `a,,b` is not a host"),
        ("a:x", "`a:x` in `a:x` is not a host"),
        ("--output=b", "`--output=b` in `--output=b` is not a host"),
        ("a,b,a:9000", "host a is in `a,b,a:9000` twice"),
    ] {
        assert_eq!(Hosts::parse(text).unwrap_err().to_string(), said);
    }
}

#[test]
fn a_rate_is_that_of_all_hosts() {
    let hosts = Hosts::parse("a,b").unwrap();
    let workload = catalogue::find_workload("4k-rand-read").unwrap();
    let rate = Some(Rate { iops: 8000.0, gaps: workload::Gaps::Exponential });
    let load = Load { rate, ..load(&workload, STEP) };
    let place = JobTarget {
        hosts: Some(&hosts),
        path: Path::new("/dev/nvme0n1"),
        group: &[],
        capacity_bytes: 1 << 30,
        sector_bytes: 512,
    };
    let engine = Engine { name: "io_uring", direct: true };
    let logging = job::Logging::of(&load, 1).unwrap();
    let text = job::of_load(&load, place, engine, logging).unwrap();
    assert!(text.contains("\nrate_iops=2000\n"), "two hosts of two threads: {text}");
    assert!(text.contains("--client=a job.fio --client=b job.fio\n"), "{text}");
}

#[test]
fn the_size_that_a_place_at_99_percent_leaves_open_holds_the_true_one() {
    for bytes in [64 * MIB, 3_840_755_982_336, 7 * MIB + 512, 1_000_204_886_016] {
        let exact = bytes * 99 / 100;
        for offset in [exact / 4096 * 4096, exact.div_ceil(4096) * 4096, exact / 512 * 512] {
            let (least, most) = sizes_from(offset);
            assert!(least <= bytes && bytes <= most + 100, "{bytes}: {least} to {most}");
            assert!(most - least < 9000);
        }
    }
}
