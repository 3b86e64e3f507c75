//! Real fio on servers of NBD. Each test says so where it cannot run.

use super::*;

/// A disk in memory behind nbdkit, ended when dropped; nothing where the machine lacks it.
struct NbdServer {
    child: std::process::Child,
    uri: String,
}

impl NbdServer {
    #[expect(clippy::print_stderr, reason = "a skipped test says why")]
    fn start(folder: &TempDir, arguments: &[&str]) -> Option<Self> {
        let socket = folder.path().join("it.sock");
        let child = std::process::Command::new("nbdkit")
            .args(["--foreground", "--exit-with-parent", "--unix"])
            .arg(&socket)
            .args(arguments)
            .spawn();
        let Ok(child) = child else {
            eprintln!("skipped: nbdkit is not installed");
            return None;
        };
        let server = Self { child, uri: format!("nbd+unix:///?socket={}", socket.display()) };
        for _ in 0..100 {
            if socket.exists() {
                return Some(server);
            }
            thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("nbdkit made no socket in five seconds");
    }

    fn request(&self, folder: &TempDir) -> Trial {
        let address = Address::Export(self.uri.clone());
        Trial::new(address, folder.path().join("raw")).with(|it| it.destroy = true)
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        // One that has ended already needs no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn nbd_is_missing() -> bool {
    let engines = std::process::Command::new("fio").arg("--enghelp=nbd").output();
    let missing = !engines.is_ok_and(|output| output.status.success());
    if missing {
        eprintln!("skipped: this fio has no nbd engine");
    }
    missing
}

#[test]
fn an_nbd_server_is_trimmed_filled_and_loaded() {
    let folder = TempDir::new().unwrap();
    if nbd_is_missing() {
        return;
    }
    let Some(server) = NbdServer::start(&folder, &["memory", "64M"]) else { return };
    let mut fio = server.request(&folder).open().unwrap();
    assert_eq!(fio.target().kind, TargetKind::Nbd);
    assert_eq!(fio.target().user_capacity_bytes, SIZE.0);
    assert_eq!(fio.purge().unwrap(), "all 64 MiB trimmed through NBD");
    let workload = catalogue::find_workload("8k-70-30").unwrap();
    let load = Load { duration_s: 1.0, ..load(&workload, "nbd") };
    let loaded = fio.load(&load, &mut Waiter::patient()).unwrap();
    assert!(loaded.how.starts_with("all 64 MiB written twice in order before"), "{}", loaded.how);
    assert!(loaded.intervals[0].read.count() > 0 && loaded.intervals[0].write.count() > 0);
}

#[test]
fn an_nbd_server_tells_how_much_of_what_is_read_was_never_written() {
    let folder = TempDir::new().unwrap();
    if nbd_is_missing() {
        return;
    }
    // A disk in memory of which its second quarter holds data.
    let disk = ["--readonly", "data", "@16777216 (0x5a)*16777216", "size=64M"];
    let Some(server) = NbdServer::start(&folder, &disk) else { return };
    let asked = server.request(&folder).with(|it| (it.destroy, it.read_only) = (false, true));
    let mut fio = asked.open().unwrap();
    let workload = catalogue::find_workload("4k-rand-read").unwrap();
    let load = Load { duration_s: 0.5, ..load(&workload, "reads") };
    let loaded = fio.load(&load, &mut Waiter::patient()).unwrap();
    let told = loaded.warnings.iter().find(|it| it.kind == WarningKind::UnwrittenReads).unwrap();
    let expected = "75.0 % of the target holds no data (48 MiB of 64 MiB), says the NBD server";
    assert!(told.text.starts_with(expected), "{}", told.text);
    drop((fio, server));

    let folder = TempDir::new().unwrap();
    let mute = ["memory", "64M", "--filter=noextents"];
    let Some(server) = NbdServer::start(&folder, &mute) else { return };
    let asked = server.request(&folder).with(|it| (it.destroy, it.read_only) = (false, true));
    let loaded = asked.open().unwrap().load(&load, &mut Waiter::patient()).unwrap();
    let told = loaded.warnings.iter().find(|it| it.kind == WarningKind::UnwrittenReads);
    assert!(told.is_none(), "all of it is data: {told:?}");
}

#[test]
fn an_nbd_server_needs_leave_to_be_destroyed_and_to_take_writes() {
    let folder = TempDir::new().unwrap();
    if nbd_is_missing() {
        return;
    }
    let Some(server) = NbdServer::start(&folder, &["--readonly", "memory", "64M"]) else { return };
    let request = server.request(&folder);
    let error = request.open().unwrap_err();
    assert!(error.to_string().ends_with("it is read-only"), "{error}");
    drop(server);
    let gone = request.open().unwrap_err();
    assert!(gone.to_string().starts_with("asking the NBD server"), "{gone}");
    let other = TempDir::new().unwrap();
    let Some(server) = NbdServer::start(&other, &["memory", "64M"]) else { return };
    let error = server.request(&other).with(|it| it.destroy = false).open().unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.to_string().ends_with("everything on it (64 MiB) would be lost"), "{error}");
}

#[test]
fn a_server_that_goes_away_is_an_error_that_says_so() {
    let folder = TempDir::new().unwrap();
    if nbd_is_missing() {
        return;
    }
    let Some(server) = NbdServer::start(&folder, &["memory", "64M"]) else { return };
    let mut fio = server.request(&folder).open().unwrap();
    let workload = catalogue::find_workload("4k-rand-read").unwrap();
    let load = Load { duration_s: 60.0, ..load(&workload, "gone") };
    let mut server = Some(server);
    let mut watch = Meddler::new(|| drop(server.take()));
    let error = fio.load(&load, &mut watch).unwrap_err();
    assert!(error.to_string().ends_with("is gone: it does not answer any more"), "{error}");
}
