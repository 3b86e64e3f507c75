//! Clients of the NBD protocol that others wrote, on drives that `floatgate volume serve` serves.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::served::{Served, client, is_there};

/// Ways to access the dies of a drive.
const ACCESSES: [&[&str]; 3] = [&[], &["--no-io-uring"], &["--direct"]];

/// A file of bytes that neither repeat nor compress.
pub(crate) fn noise(path: &Path, length: usize) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    fs::write(path, words.flatten().take(length).collect::<Vec<u8>>()).expect("a file is written");
}

#[test]
fn nbdinfo_finds_what_is_promised() {
    if !is_there("nbdinfo") {
        return;
    }
    let served = Served::start(&["--memory", "64MiB", "--export", "served", "--read-only"]);
    let info: Value = serde_json::from_str(&client("nbdinfo", &["--json", &served.uri])).unwrap();
    let export = &info["exports"][0];
    assert_eq!(export["export-size"], 64 << 20);
    for (ability, expected) in [
        ("is_read_only", true),
        ("can_multi_conn", true),
        ("can_flush", true),
        ("can_fua", true),
        ("can_df", true),
        ("can_trim", false),
    ] {
        assert_eq!(export[ability], expected, "{ability}");
    }
    assert!(client("nbdinfo", &["--list", &served.uri]).contains("export=\"served\""));
    assert!(client("nbdinfo", &["--map", &served.uri]).contains("hole,zero"));
}

#[test]
fn nbdcopy_brings_back_what_it_took_there() {
    if !is_there("nbdcopy") {
        return;
    }
    check_copies(&Served::start(&["--memory", "64MiB"]));
}

/// Copies 64 MiB to the drive and back, and compares.
fn check_copies(served: &Served) {
    let (there, back) = (served.path("there.img"), served.path("back.img"));
    noise(&there, 64 << 20);
    let [from, to] = [&there, &back].map(|path| path.to_str().expect("the folder's name is text"));
    client("nbdcopy", &["--flush", from, &served.uri]);
    client("nbdcopy", &[&served.uri, to]);
    let [there, back] = [&there, &back].map(|path| fs::read(path).expect("it was made"));
    assert!(there == back);
}

#[test]
fn libnbd_finds_the_protocol_as_it_is_written() {
    // Bindings belong to the system's own Python.
    if !is_there("nbdsh") {
        return;
    }
    check_conformance(&Served::start(&["--memory", "64MiB", "--export", "served"]));
}

/// A drive is to libnbd what the protocol says.
fn check_conformance(served: &Served) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/conformance.py");
    let said = client("/usr/bin/python3", &[script, &served.uri]);
    assert_eq!(said.lines().count(), 8, "{said}");
}

#[test]
fn qemu_img_converts_compares_and_maps() {
    if !is_there("qemu-img") {
        return;
    }
    let served = Served::start(&["--memory", "64MiB"]);
    let image = served.path("image.raw");
    noise(&image, 8 << 20);
    fs::File::options().write(true).open(&image).unwrap().set_len(64 << 20).unwrap();
    let (image, uri) = (image.to_str().unwrap(), served.uri.as_str());
    let raw = ["-f", "raw", "-O", "raw"];
    client("qemu-img", &[&["convert", "-n"], &raw[..], &[image, uri]].concat());
    client("qemu-img", &["compare", "-f", "raw", "-F", "raw", image, uri]);
    assert!(client("qemu-img", &["info", uri]).contains("64 MiB"));
    let map = client("qemu-img", &["map", "--output=json", "-f", "raw", uri]);
    let map: Value = serde_json::from_str(&map).unwrap();
    let zeroes: u64 =
        map.as_array().unwrap().iter().filter(|run| run["zero"] == true).map(length).sum();
    assert_eq!(zeroes, 56 << 20, "{map}");
}

fn length(run: &Value) -> u64 {
    run["length"].as_u64().expect("a run has a length")
}

#[test]
fn qemu_io_reads_the_patterns_that_it_wrote() {
    if !is_there("qemu-io") {
        return;
    }
    let served = Served::start(&["--memory", "64MiB"]);
    let commands = [
        "write -P 0x5a 0 1M",
        "write -f -P 0xa5 1M 64k",
        "aio_write -P 0x77 2M 1M",
        "aio_flush",
        "flush",
        "discard 512k 512k",
        "write -z -u 64k 4k",
        "read -P 0x5a 0 64k",
        "read -P 0 64k 4k",
        "read -P 0x5a 68k 444k",
        "read -P 0 512k 512k",
        "read -P 0xa5 1M 64k",
        "read -P 0x77 2M 1M",
    ];
    let mut args = vec!["-f", "raw"];
    args.extend(commands.iter().flat_map(|command| ["-c", command]));
    args.push(&served.uri);
    let said = client("qemu-io", &args);
    assert!(!said.contains("failed"), "{said}");
    assert_eq!(said.matches("read ").count(), 6, "{said}");
}

#[test]
fn fio_verifies_every_block_that_it_wrote() {
    if !is_there("fio") || !client("fio", &["--enghelp"]).contains("nbd") {
        return;
    }
    let served = Served::start(&["--memory", "64MiB"]);
    let uri = format!("--uri={}", served.uri);
    let load = ["--name=t", "--ioengine=nbd", &uri, "--size=64m", "--rw=randrw", "--iodepth=16"];
    let how = ["--bsrange=512-64k", "--bs_unaligned=1", "--verify=crc32c", "--verify_fatal=1"];
    client("fio", &[&load[..], &how, &["--fsync=32", "--do_verify=1"]].concat());
}

#[test]
fn a_file_system_on_it_is_clean_and_keeps_its_files() {
    for program in ["nbdfuse", "fusermount3", "losetup", "mkfs.ext4"] {
        if !is_there(program) {
            return;
        }
    }
    let served = Served::start(&["--memory", "256MiB"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/filesystem.sh");
    let folder = served.path("mnt");
    let said = client("bash", &[script, &served.uri, folder.to_str().unwrap()]);
    if said.contains("cannot mount") {
        eprintln!("no file system: {said}");
        return;
    }
    assert!(said.ends_with("clean\n"), "{said}");
}

#[test]
fn a_server_that_is_told_to_stop_leaves_nothing() {
    let mut served = Served::start(&["--memory", "64MiB"]);
    let socket = served.path("s");
    assert!(socket.exists());
    assert!(served.stop().success());
    assert!(!socket.exists());
}

#[test]
fn a_killed_server_is_replaced_and_a_running_one_is_not() {
    let killed = Served::start(&["--memory", "64MiB"]);
    let folder = killed.kill();
    let mut served = Served::start_in(folder, &["--memory", "64MiB"]);
    let refused = served.second_server();
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("is in use by process"), "{said}");
    assert!(served.stop().success());
}

/// Makes a drive of 64 MiB over eight files in `folder`. Returns its path.
fn volume(folder: &Path) -> String {
    let dies: Vec<String> =
        (0..8).map(|die| folder.join(format!("d{die}.img")).display().to_string()).collect();
    let volume = folder.join("volume").display().to_string();
    let floatgate = env!("CARGO_BIN_EXE_floatgate");
    let dies = dies.join(",");
    client(floatgate, &["create", &volume, "--dies", &dies, "--size", "64MiB", "--protect", "7+1"]);
    volume
}

#[test]
fn what_was_durable_survives_a_kill_at_any_moment() {
    if !is_there("nbdsh") {
        return;
    }
    let cycles = std::env::var("FLOATGATE_CRASHES").unwrap_or_else(|_| "5".into());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/crash.py");
    let floatgate = env!("CARGO_BIN_EXE_floatgate");
    for options in [&[][..], &["--direct"]] {
        let folder = tempfile::tempdir().unwrap();
        let (volume, socket) =
            (volume(folder.path()), folder.path().join("s").display().to_string());
        let what = [script, floatgate, &volume, &socket, &cycles, "1"];
        let said = client("/usr/bin/python3", &[&what, options].concat());
        assert!(said.ends_with("none lost\n"), "{options:?}: {said}");
    }
}

#[test]
fn a_drive_over_dies_is_to_clients_what_one_in_memory_is() {
    let folder = tempfile::tempdir().unwrap();
    let volume = volume(folder.path());
    let mut served = Served::start(&[&volume, "--export", "served"]);
    if is_there("nbdsh") {
        check_conformance(&served);
    }
    if is_there("nbdcopy") {
        check_copies(&served);
    }
    assert!(served.stop().success());
    for (seed, options) in ["1", "2", "3"].into_iter().zip(ACCESSES) {
        let mut again = Served::start(&[&[volume.as_str()], options].concat());
        if is_there("fio") {
            let (uri, seed) = (format!("--uri={}", again.uri), format!("--randseed={seed}"));
            let load = ["--name=t", "--ioengine=nbd", &uri, "--size=64m", "--rw=randrw", &seed];
            let how = ["--iodepth=16", "--bsrange=512-64k", "--bs_unaligned=1", "--verify=crc32c"];
            client("fio", &[&load[..], &how, &["--verify_fatal=1", "--fsync=32"]].concat());
        }
        assert!(again.stop().success());
    }
}

#[test]
fn what_was_written_one_way_is_read_every_other_way() {
    if !is_there("nbdcopy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let volume = volume(folder.path());
    let [there, back] = ["there.img", "back.img"].map(|name| folder.path().join(name));
    noise(&there, 64 << 20);
    let [from, to] = [&there, &back].map(|path| path.to_str().expect("the folder's name is text"));
    for writing in ACCESSES {
        let mut served = Served::start(&[&[volume.as_str()], writing].concat());
        client("nbdcopy", &["--flush", from, &served.uri]);
        assert!(served.stop().success());
        for reading in ACCESSES {
            let served = Served::start(&[&[volume.as_str(), "--read-only"], reading].concat());
            client("nbdcopy", &[&served.uri, to]);
            let is_same = fs::read(&there).unwrap() == fs::read(&back).unwrap();
            assert!(is_same, "{writing:?} {reading:?}");
        }
    }
}

#[test]
fn exports_are_files_while_the_server_runs_and_after_it_was_killed_nothing_is_mounted() {
    if !Path::new("/dev/fuse").exists() || !is_there("fio") {
        return;
    }
    let is_mounted = |path: &Path| {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        mounts.contains(path.to_str().unwrap())
    };
    for is_killed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().canonicalize().unwrap().join("files");
        let path = files.to_str().unwrap().to_owned();
        let model = ["--timing", "model", "--model", "p5800x"];
        let args = [&["--memory", "64MiB", "--fuse", &path][..], &model].concat();
        let mut served = Served::start_in(folder, &args);
        assert!(is_mounted(&files));
        let file = format!("--filename={path}/drive");
        let load = ["--name=t", "--ioengine=libaio", "--direct=1", &file, "--size=16m"];
        let how = ["--rw=randrw", "--bsrange=4k-64k", "--iodepth=16", "--fsync=64"];
        client("fio", &[&load[..], &how, &["--verify=crc32c", "--verify_fatal=1"]].concat());
        if is_killed {
            // Its folder goes once nothing is mounted in it.
            let folder = served.kill();
            let mut looks = 0;
            while is_mounted(&files) && looks < 1000 {
                std::thread::sleep(std::time::Duration::from_millis(10));
                looks += 1;
            }
            assert!(!is_mounted(&files), "a mount is left behind");
            drop(folder);
        } else {
            assert!(served.stop().success());
            assert!(!is_mounted(&files), "a mount is left behind");
        }
    }
}

#[test]
fn a_folder_for_files_that_has_something_in_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine"), "1").unwrap();
    let path = folder.path().to_str().unwrap();
    let output =
        super::served::floatgate(folder.path(), &["serve", "--memory", "1m", "--fuse", path]);
    assert_eq!(output.status.code(), Some(1));
    let said = super::served::said(&output);
    assert!(said.contains("is not empty: a mount would hide its contents"), "{said}");
}
