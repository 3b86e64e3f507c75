//! A real device from purge to report: a part of a disk whose other part holds a file system,
//! killed in the middle and resumed. As root with fio, losetup and mkfs.ext4.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{Measured, brief, fio_is_missing, skip};

const MIB: u64 = 1 << 20;
/// First byte and bytes of the part with the file system, and of the one that is tested.
const KEPT: (u64, u64) = (MIB, 32 * MIB);
const TESTED: (u64, u64) = (33 * MIB, 16 * MIB);
/// Time limit for any command, generous for a machine under load.
const PATIENCE: Duration = Duration::from_mins(3);

/// Measurements on a device, after purge and preconditioning.
const MEASURED: [Measured; 2] = [
    Measured { workload: "4k-rand-read", threads: &[1, 2], queues: &[4], seconds: 1 },
    Measured { workload: "8k-70-30", threads: &[2], queues: &[4], seconds: 1 },
];

/// Two parts of one disk image, each a loop device of its own, the first with ext4: not every
/// kernel makes partitions on loop devices. Detached when dropped.
struct Disk {
    kept: String,
    tested: String,
    image: PathBuf,
    folder: TempDir,
}

impl Disk {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("disk.img");
        fs::File::create(&image).unwrap().set_len(64 * MIB).unwrap();
        let kept = attached(&image, KEPT)?;
        let Some(tested) = attached(&image, TESTED) else {
            detach(&kept);
            return None;
        };
        let disk = Self { kept, tested, image, folder };
        let made = Command::new("mkfs.ext4").args(["-q", &disk.kept]).status();
        if !made.is_ok_and(|status| status.success()) {
            skip("mkfs.ext4 does not work here");
            return None;
        }
        Some(disk)
    }

    /// Every byte of the part with the file system.
    fn content_kept(&self) -> Vec<u8> {
        let mut file = fs::File::open(&self.image).unwrap();
        file.seek(SeekFrom::Start(KEPT.0)).unwrap();
        let mut bytes = vec![0; usize::try_from(KEPT.1).unwrap()];
        file.read_exact(&mut bytes).unwrap();
        bytes
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        detach(&self.tested);
        detach(&self.kept);
    }
}

/// A loop device over that part of `image`.
fn attached(image: &Path, (first, count): (u64, u64)) -> Option<String> {
    let output = Command::new("losetup")
        .args(["--find", "--show", "--direct-io=on"])
        .args([format!("--offset={first}"), format!("--sizelimit={count}")])
        .arg(image)
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        skip("losetup cannot attach a loop device here (it needs root)");
        return None;
    };
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

fn detach(node: &str) {
    let _ = Command::new("losetup").args(["-d", node]).status();
}

fn floatgate(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.args(args).current_dir(dir).stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command
}

/// Waits for a command to end, and returns its output. Kills it after `PATIENCE`.
fn ended(mut child: Child) -> Output {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it did not end: {:?}", child.wait_with_output());
        }
        thread::sleep(Duration::from_millis(50));
    }
    child.wait_with_output().unwrap()
}

fn started(dir: &Path, args: &[&str]) -> Child {
    floatgate(dir, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until `found` is.
fn until(what: &str, found: impl Fn() -> bool) {
    let began = Instant::now();
    while !found() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The only run in the folder.
fn run_of(dir: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(dir.join("runs")).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| path.is_dir())
}

/// Returns true if the working directory of any process is below `dir`.
fn is_worked_in(dir: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut at = processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
    at.any(|cwd| cwd.starts_with(dir) && cwd != dir)
}

#[test]
fn a_device_is_tested_from_purge_to_report_and_its_neighbour_is_untouched() {
    if fio_is_missing() {
        return;
    }
    let Some(disk) = Disk::new() else { return };
    let (dir, target) = (disk.folder.path(), disk.tested.clone());
    fs::write(dir.join("brief.toml"), brief(2, &MEASURED)).unwrap();
    let before = disk.content_kept();
    let review = ["review", &target, "--protocol", "brief.toml"];
    let refused = ended(started(dir, &review));
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("hint: add --destroy"));

    let mut child = started(dir, &[review.as_slice(), &["--destroy"]].concat());
    let progress = || fs::read_to_string(run_of(dir)?.join("progress.json")).ok();
    let is_rate_seen = || progress().is_some_and(|told| told.contains(r#""glimpse":{"iops""#));
    until("who looks on sees a rate", is_rate_seen);
    let first_measured = || run_of(dir).is_some_and(|run| run.join("steps/003.json").exists());
    until("the first measurement ends", || {
        first_measured() || run_of(dir).is_some_and(|run| run.join("run.json").exists())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    until("fio dies with it", || !is_worked_in(&run_of(dir).unwrap()));
    let run = run_of(dir).unwrap();
    assert!(!run.join("run.json").exists(), "it was killed before its end");

    let name = run.file_name().unwrap().to_str().unwrap();
    let resumed = ended(started(dir, &["review", "--resume", name, "--destroy"]));
    let said = String::from_utf8_lossy(&resumed.stderr).into_owned();
    assert!(matches!(resumed.status.code(), Some(0 | 3)), "{said}");
    let page = String::from_utf8(resumed.stdout).unwrap();
    let page = fs::read_to_string(dir.join(page.trim_end())).unwrap();
    assert!(page.contains("purge and preconditioning were repeated"));
    assert!(page.contains("blkdiscard"), "the purge is told");
    for step in ["4k/precondition", "4k/4k-rand-read/T1Q4", "4k/8k-70-30/T2Q4"] {
        assert!(page.contains(step), "{step}");
    }
    let shown = ended(started(dir, &["runs"]));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("6/6"), "{shown:?}");
    assert!(disk.content_kept() == before, "the file system beside it changed");
    let checked = Command::new("e2fsck").args(["-fn", &disk.kept]).output();
    assert!(checked.is_ok_and(|output| output.status.success()));
}

/// `floatgate` in a place whose `/run` is a folder in `dir`: there it keeps what it tuned.
fn started_apart(dir: &Path, args: &[&str]) -> Child {
    let run = dir.join("run");
    fs::create_dir_all(&run).unwrap();
    let enter = "mount --bind \"$1\" /run && shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", enter, "sh"]).arg(run);
    command.arg(env!("CARGO_BIN_EXE_floatgate")).args(args).current_dir(dir);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_queue_is_tuned_while_its_device_is_measured_and_put_back_whatever_ends_the_run() {
    if fio_is_missing() {
        return;
    }
    let Some(disk) = Disk::new() else { return };
    let (dir, target) = (disk.folder.path(), disk.tested.as_str());
    let queue = format!("/sys/block/{}/queue", target.trim_start_matches("/dev/"));
    // Not every kernel has another scheduler than none; all merge requests.
    let _ = fs::write(format!("{queue}/scheduler"), "mq-deadline");
    let settings = || {
        let read = |name| fs::read_to_string(format!("{queue}/{name}")).unwrap();
        ["scheduler", "rq_affinity", "nomerges"].map(read)
    };
    let before = settings();
    let is_tuned = || settings()[1..] == ["2\n", "2\n"] && settings()[0].contains("[none]");
    let measured = |runtime: &str| {
        let load = ["run", target, "4k-rand-read", "--threads", "1", "--queue", "1"];
        started_apart(dir, &[&load[..], &["--runtime", runtime, "--destroy", "--tune"]].concat())
    };
    let done = ended(measured("1s"));
    assert!(done.status.success(), "{done:?}");
    assert_eq!(settings(), before, "at its end");

    let stopped = measured("10min");
    until("the queue is tuned", is_tuned);
    let told = Command::new("kill").args(["-INT", &stopped.id().to_string()]).status();
    assert!(told.is_ok_and(|status| status.success()));
    ended(stopped);
    assert_eq!(settings(), before, "after Ctrl-C");

    let mut killed = measured("10min");
    until("the queue is tuned", is_tuned);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(is_tuned(), "no process was left to put it back");
    let doctor = |args: &[&str]| {
        let output = ended(started_apart(dir, &[&["doctor"], args].concat()));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(doctor(&[]).contains("still changed by a run that was killed"));
    assert!(doctor(&["--revert"]).contains("/queue/nomerges  "));
    assert_eq!(settings(), before, "after a kill");
    assert!(doctor(&[]).contains("Floatgate has changed no setting"));
}

/// A memory file system of 256 KiB, unmounted when dropped.
struct Full(TempDir);

impl Full {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "floatgate-test"])
            .arg(folder.path())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            skip("a small file system cannot be mounted here (it needs root)");
            return None;
        }
        Some(Self(folder))
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// Returns stderr of a review in `dir` whose results are on a disk that fills up, and the number of
/// its steps that are kept. None if there is no such disk.
fn said_when_full(dir: &Path, review: &[&str]) -> Option<(String, usize)> {
    let full = Full::new()?;
    let out = full.0.path().join("runs");
    let ended = ended(started(dir, &[review, &["--out", out.to_str().unwrap()]].concat()));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("error: ").count(), 1, "{said}");
    assert!(
        said.contains("finished steps are kept; continue with `floatgate review --resume "),
        "{said}"
    );
    let runs = fs::read_dir(out).unwrap().flatten().map(|entry| entry.path().join("steps"));
    let kept = runs.filter_map(|steps| fs::read_dir(steps).ok()).flatten().count();
    Some((said, kept))
}

#[test]
fn a_full_results_disk_is_one_clear_error_and_keeps_what_was_finished() {
    let dir = tempfile::tempdir().unwrap();
    let review = ["review", "iodrive-duo", "--protocol", "quick", "--time-lapse", "128"];
    let Some((said, kept)) = said_when_full(dir.path(), &review) else { return };
    assert!(said.contains("error: writing ") && said.contains("No space left on device"), "{said}");
    assert!(said.ends_with("hint: free some space, or choose another --out\n"), "{said}");
    assert!(kept > 0);
}

#[test]
fn a_results_disk_that_fio_fills_is_one_clear_error_and_keeps_what_was_finished() {
    if fio_is_missing() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("brief.toml"), brief(2, &MEASURED)).unwrap();
    let review = ["review", "./disk.img", "--size", "16MiB", "--protocol", "brief.toml"];
    let Some((said, kept)) = said_when_full(dir.path(), &review) else { return };
    assert!(
        said.contains("No space left on device") || said.contains("is the disk full?"),
        "{said}"
    );
    assert!(kept > 0, "{said}");
}
