//! Log of a server: for people, for programs, and with no reader at all; also its reload of the
//! configuration, and the sockets that it is given.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::clients::noise;
use super::served::{Served, activated, client, create_small_drive, floatgate, is_there};

/// Time limit for a server to log something.
const PATIENCE: Duration = Duration::from_mins(3);

/// Waits until a file has a line with this part.
pub(crate) fn wait_for(said: &Path, part: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(said).expect("it is there");
        if text.contains(part) {
            return;
        }
        assert!(Instant::now() < deadline, "no {part} in\n{text}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Connects to the default export of a server, as NBD has it with `NBD_OPT_EXPORT_NAME`, and leaves
/// without a word.
fn come_and_go(served: &Served) {
    come_and_go_at(&served.path("s"));
}

fn come_and_go_at(socket: &Path) {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).expect("it greets");
    assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
    let (flags, export_name, length) = (3_u32, 1_u32, 0_u32);
    let [flags, export_name, length] = [flags, export_name, length].map(u32::to_be_bytes);
    let option = [&flags[..], b"IHAVEOPT", &export_name, &length].concat();
    stream.write_all(&option).expect("it reads");
    let mut size_and_flags = [0; 10];
    stream.read_exact(&mut size_and_flags).expect("the export is there");
}

fn signal(served: &Served, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &served.pid().to_string()]).status();
    assert!(sent.expect("there is a `kill`").success());
}

#[test]
fn programs_are_told_each_event_as_a_line_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let log = File::create(&said).unwrap();
    let args = ["--log-json", "--log-level", "debug", "--http", "127.0.0.1:0"];
    let mut served = Served::start_small_drive_saying(&args, log.into());
    come_and_go(&served);
    wait_for(&said, "\"client\":1");
    assert!(served.stop().success());
    let text = fs::read_to_string(&said).unwrap();
    let events: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let what = |event: &Value| event["what"].as_str().unwrap().to_owned();
    let is_start = |event: &Value| what(event).starts_with("The server started, process ");
    assert!(
        events[..3].iter().any(is_start),
        "after the way to the dies and the promise at most: {text}"
    );
    assert_eq!(what(events.last().unwrap()), "The server stopped.");
    assert!(events.iter().all(|event| event["at_unix_ms"].as_u64().unwrap() > 0), "{text}");
    let of_client = events.iter().find(|event| event["client"] == 1).unwrap();
    assert!(["debug", "warn"].contains(&of_client["level"].as_str().unwrap()), "{of_client}");
    assert!(!text.contains("token"), "{text}");
}

#[test]
fn a_log_that_takes_nothing_harms_nothing() {
    if !is_there("nbdcopy") {
        return;
    }
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut served = Served::start_small_drive_saying(&["--log-level", "debug"], full.into());
    let stored = served.path("there.img");
    noise(&stored, 1 << 20);
    client("nbdcopy", &["--flush", stored.to_str().unwrap(), &served.uri]);
    assert!(served.stop().success());
    assert!(served.beside(&["check", "volume"]).status.success());
}

#[test]
fn a_server_whose_stdout_is_closed_serves_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let log = File::create(&said).unwrap();
    let other = format!("unix:{}", folder.path().join("other").display());
    let args = ["--nbd", &other, "--log-level", "debug"];
    let mut served = Served::start_small_drive_unheard(&args, log.into());
    wait_for(&said, "warning: could not print the addresses for clients to stdout");
    come_and_go(&served);
    wait_for(&said, "client 1 ");
    come_and_go_at(&folder.path().join("other"));
    wait_for(&said, "client 2 ");
    assert!(served.beside(&["status", "volume"]).status.success());
    assert!(served.stop().success());
}

#[test]
fn a_log_that_no_process_reads_holds_no_client_up() {
    let args = ["--log-json", "--log-level", "debug"];
    let mut served = Served::start_small_drive_saying(&args, Stdio::piped());
    // Far more lines than a pipe and the queue before it hold.
    (0..3000).for_each(|_| come_and_go(&served));
    assert!(served.beside(&["status", "volume"]).status.success());
    assert!(served.stop().success());
}

#[test]
fn a_server_reads_its_configuration_again_and_says_what_takes_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let [config, said] = ["c.toml", "said"].map(|name| folder.path().join(name));
    let (volume, socket) = (folder.path().join("volume"), folder.path().join("s"));
    let own = format!("volume = {volume:?}\nnbd = \"unix:{}\"\n", socket.display());
    fs::write(&config, &own).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.args(["serve", "--config"]).arg(&config).stdin(Stdio::null());
    command.stderr(File::create(&said).unwrap());
    let mut served = Served::start_as(folder, command);
    come_and_go(&served);

    let changed = own.replace("unix:", "unix:/elsewhere") + "scrub = \"1d\"\nlog-level = \"debug\"";
    fs::write(&config, changed).unwrap();
    signal(&served, "HUP");
    wait_for(&said, "the configuration was reloaded\n");
    wait_for(&said, "warning: nbd changed; this takes effect after a restart\n");
    come_and_go(&served);
    wait_for(&said, "client 2 ");
    let status = served.beside(&["status", "volume", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert!(!status["maintenance"]["scrub"].is_null(), "it scrubs from now on: {status}");

    fs::write(&config, "bnd = 1").unwrap();
    signal(&served, "HUP");
    wait_for(&said, "error: the configuration was not reloaded: reading ");
    assert!(served.stop().success());
}

#[test]
fn a_server_takes_over_the_sockets_that_it_is_given() {
    if !is_there("nbdinfo") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let path = folder.path().join("passed");
    let socket = OwnedFd::from(UnixListener::bind(&path).unwrap());
    let missing = activated(folder.path(), "fd:4", &socket).output().unwrap();
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(said.contains("error: no socket fd:4 was passed"), "{said}");
    let command = activated(folder.path(), "fd:3", &socket);
    let mut served = Served::start_as(folder, command);
    assert!(served.uri.ends_with("/passed"), "{}", served.uri);
    client("nbdinfo", &["--size", &served.uri]);
    assert!(served.stop().success());
    assert!(path.exists(), "it is not the server's");
    let typed = floatgate(Path::new("/"), &["serve", "volume", "--nbd", "fd:2"]);
    assert_eq!(typed.status.code(), Some(2));
}
