//! A served drive, watched: the management socket and `floatgate top`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use blockio::Bytes;
use live::{CreateOptions, Device as _, Drive, Durability};
use serde_json::Value;
use tempfile::TempDir;

/// How long a server may take to start, to answer, or to stop.
const PATIENCE: Duration = Duration::from_secs(30);

/// A served drive of 8 MiB on four dies.
struct Served {
    server: Child,
    folder: TempDir,
}

fn floatgate(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    floatgate(folder, args).output().expect("the command was built")
}

fn create(folder: &Path) {
    let options = CreateOptions {
        vault: folder.join("vault"),
        dies: (0..4).map(|die| folder.join(format!("d{die}.img"))).collect(),
        size: Bytes::from_kib(8 << 10),
        is_protected: true,
        over_provisioning: 0.15,
    };
    let drive = Drive::create(&options).expect("there is room");
    drive.write(0, &vec![7; 2 << 20], Durability::Volatile).expect("a new drive takes it");
    drive.close().expect("nothing fails");
}

impl Served {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder is made");
        create(folder.path());
        let mut server = floatgate(folder.path(), &["serve", "vault", "--nbd", "unix:s"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command was built");
        let stdout = server.stdout.take().expect("it is piped");
        let served = Self { server, folder };
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            // The test may have given up on it.
            let _ = sender.send(BufReader::new(stdout).read_line(&mut line));
        });
        let read = receiver.recv_timeout(PATIENCE).expect("it says where it is");
        assert!(read.expect("text") > 0, "it did not start");
        served
    }

    fn stop(&mut self) -> ExitStatus {
        let process = self.server.id().to_string();
        let sent = Command::new("kill").args(["-s", "TERM", &process]).status();
        assert!(sent.expect("there is a `kill`").success());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.server.try_wait().expect("it is ours") {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not stop");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It is gone already where the test stopped it.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_served_drive_answers_until_it_is_stopped_and_is_closed_then() {
    let mut served = Served::start();
    let asked = run(served.folder.path(), &["status", "vault", "--json"]);
    let status: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!((&status["schema"], &status["state"]), (&Value::from(1), &Value::from("open")));
    let server = &status["server"];
    assert_eq!(server["pid"], served.server.id());
    assert_eq!(server["exports"][0]["size_bytes"], 8 << 20);
    assert_eq!(status["smart"]["host_write_commands"], 0);
    assert!(server["memory_bytes"].as_u64().unwrap() > 1 << 20, "{server}");
    let text = run(served.folder.path(), &["status", "vault", "--all"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(&format!("served by process {}", served.server.id())), "{text}");
    assert!(served.stop().success());
    let closed = run(served.folder.path(), &["status", "vault", "--json"]);
    let closed: Value = serde_json::from_slice(&closed.stdout).unwrap();
    assert_eq!((&closed["state"], &closed["drive"]), (&Value::from("closed"), &status["drive"]));
    assert!(!served.folder.path().join("vault/manage.sock").exists());
}

#[test]
fn a_second_server_of_a_drive_is_told_which_process_has_it() {
    let served = Served::start();
    let second = run(served.folder.path(), &["serve", "vault", "--nbd", "unix:other"]);
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    let expected = format!("is in use by process {}; stop that first\n", served.server.id());
    assert!(said.ends_with(&expected) && said.lines().count() == 1, "{said}");
}

#[test]
fn top_shows_a_screen_of_eighty_columns_and_needs_a_server() {
    let mut served = Served::start();
    let args = ["top", "vault", "--once", "--interval", "100ms"];
    let shown = run(served.folder.path(), &args);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    for part in ["drive ", "IOPS", "read", "write", "write amplification", "superblocks", "0 of 4"]
    {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().count() <= 24, "{text}");
    assert!(served.stop().success());
    let refused = run(served.folder.path(), &args);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(said, "error: nobody serves vault; `floatgate serve vault` does\n");
}
