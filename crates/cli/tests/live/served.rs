//! A `floatgate volume serve` of its own for each test, drives to serve, and programs that are
//! clients.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use blockio::Bytes;
use live::{Compression, CreateOptions, Device as _, Drive, Durability};
use serde_json::Value;
use tempfile::TempDir;

/// Time limit for a server to start, or to stop.
const PATIENCE: Duration = Duration::from_mins(3);
/// Seconds that a client may take.
const CLIENT_PATIENCE_S: &str = "300";

/// A running server with a folder of its own, in which its socket lies.
pub(crate) struct Served {
    server: Child,
    folder: Option<TempDir>,
    /// NBD URI for clients.
    pub(crate) uri: String,
    /// Address that it answers HTTP at, such as `127.0.0.1:8480`; empty without HTTP.
    pub(crate) http: String,
}

impl Served {
    /// Starts a server with these arguments.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder is made"), args)
    }

    /// Starts a server in a folder that another one may have left something in.
    pub(crate) fn start_in(folder: TempDir, args: &[&str]) -> Self {
        Self::start_saying(folder, args, Stdio::inherit())
    }

    fn start_saying(folder: TempDir, args: &[&str], stderr: Stdio) -> Self {
        let mut command = serve(&folder);
        command.args(args).stderr(stderr);
        Self::start_as(folder, command)
    }

    /// Starts a server by a command of its own, in its folder.
    pub(crate) fn start_as(folder: TempDir, mut command: Command) -> Self {
        let server = command.stdout(Stdio::piped()).spawn();
        let mut server = server.expect("the command was built");
        let stdout = server.stdout.take().expect("it is piped");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let (mut line, mut said) = (String::new(), BufReader::new(stdout));
            let read = said.read_line(&mut line);
            // The test may have given up on it.
            let _ = sender.send(read.map(|_| line));
        });
        let said = receiver.recv_timeout(PATIENCE).expect("it says where it is").expect("text");
        let uri = said.trim_end().to_owned();
        let is_uri = uri.starts_with("nbd+unix:///") || uri.starts_with("nbds+unix:///");
        assert!(is_uri, "it said {said:?}");
        Self { server, folder: Some(folder), uri, http: String::new() }
    }

    /// Starts a server of a small drive, named `volume` in its folder.
    pub(crate) fn start_small_drive() -> Self {
        let folder = tempfile::tempdir().expect("a folder is made");
        create_small_drive(folder.path());
        let volume = folder.path().join("volume").display().to_string();
        Self::start_in(folder, &[&volume])
    }

    /// Starts a server of a small drive with these arguments more, and something to say things to.
    pub(crate) fn start_small_drive_saying(args: &[&str], stderr: Stdio) -> Self {
        let folder = tempfile::tempdir().expect("a folder is made");
        create_small_drive(folder.path());
        let volume = folder.path().join("volume").display().to_string();
        Self::start_saying(folder, &[&[volume.as_str()], args].concat(), stderr)
    }

    /// Starts a server of a small drive whose stdout no process reads. It says things to `stderr`.
    pub(crate) fn start_small_drive_unheard(args: &[&str], stderr: Stdio) -> Self {
        let folder = tempfile::tempdir().expect("a folder is made");
        create_small_drive(folder.path());
        let (reader, stdout) = io::pipe().expect("a pipe is made");
        drop(reader);
        let mut command = serve(&folder);
        command.arg(folder.path().join("volume")).args(args).stdout(stdout).stderr(stderr);
        let server = command.spawn().expect("the command was built");
        Self { server, folder: Some(folder), uri: String::new(), http: String::new() }
    }

    /// Starts a server of a small drive that answers over HTTP, too.
    pub(crate) fn start_watched() -> Self {
        let folder = tempfile::tempdir().expect("a folder is made");
        create_small_drive(folder.path());
        Self::start_watched_in(folder, "127.0.0.1:0")
    }

    /// Starts a server of the drive in a folder that answers over HTTP at an address.
    pub(crate) fn start_watched_in(folder: TempDir, address: &str) -> Self {
        Self::start_watched_with(folder, address, &[])
    }

    /// Starts such a server with these further arguments.
    pub(crate) fn start_watched_with(folder: TempDir, address: &str, args: &[&str]) -> Self {
        let said = folder.path().join("said");
        let stderr = File::create(&said).expect("the folder takes files");
        let volume = folder.path().join("volume").display().to_string();
        let args = [&[&volume, "--http", address], args].concat();
        let mut served = Self::start_saying(folder, &args, stderr.into());
        let said = fs::read_to_string(said).expect("it is there");
        let place = said.split_once("http://").or_else(|| said.split_once("https://"));
        let (_, place) = place.unwrap_or_else(|| panic!("it said {said:?}"));
        place.split('/').next().unwrap_or_default().clone_into(&mut served.http);
        served
    }

    /// Sends an HTTP request of these lines, and returns the answer.
    pub(crate) fn ask(&self, lines: &[&str]) -> String {
        ask(&self.http, lines)
    }

    /// The whole answer to a page of its own that asks for a path.
    pub(crate) fn get(&self, path: &str) -> String {
        self.ask(&[&format!("GET {path} HTTP/1.1"), &format!("Host: {}", self.http)])
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Runs `floatgate` in its folder.
    pub(crate) fn beside(&self, args: &[&str]) -> Output {
        floatgate(self.folder.as_ref().expect("it runs").path(), args)
    }

    /// A path in its folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.as_ref().expect("it runs").path().join(name)
    }

    /// Tells it to stop and waits until it has.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let process = self.pid().to_string();
        let sent = Command::new("kill").args(["-s", "TERM", &process]).status();
        assert!(sent.expect("there is a `kill`").success());
        self.ended()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.server.try_wait().expect("it is ours") {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not stop");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it. Returns its folder, with what it left there.
    pub(crate) fn kill(mut self) -> TempDir {
        self.server.kill().expect("it runs");
        self.server.wait().expect("it ended");
        self.folder.take().expect("it ran")
    }

    /// Runs a second server at the same socket, and returns its output.
    pub(crate) fn second_server(&self) -> Output {
        let folder = self.folder.as_ref().expect("it runs");
        serve(folder).args(["--memory", "64MiB"]).output().expect("the command was built")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It is gone already where the test stopped it.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn serve(folder: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    let address = format!("unix:{}", folder.path().join("s").display());
    command.args(["serve", "--nbd", &address]).stdin(Stdio::null());
    command
}

/// A command that serves the small drive of a folder at a socket that it is given, as systemd
/// does: the socket is descriptor 3 of the process that is named.
pub(crate) fn activated(folder: &Path, descriptor: &str, socket: &OwnedFd) -> Command {
    let script = "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\" 3<&0 </dev/null";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_floatgate"), "serve"]);
    command.arg(folder.join("volume")).args(["--nbd", descriptor]);
    command.stdin(socket.try_clone().expect("a descriptor is left"));
    command
}

/// Runs `floatgate` in a folder.
pub(crate) fn floatgate(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.output().expect("the command was built")
}

/// Makes an empty drive of 8 MiB on four dies, named `volume` in `folder`.
///
/// By a process of its own: one that this process had open would, for a moment, still be held by
/// whatever program another test starts.
pub(crate) fn create_small_drive(folder: &Path) {
    let dies = "d0.img,d1.img,d2.img,d3.img";
    let options = ["--dies", dies, "--size", "8MiB", "--protect", "3+1", "--rated-cycles", "3000"];
    let made = floatgate(folder, &[&["create", "volume"][..], &options].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A drive of 8 MiB on four dies, of which a quarter was written, named `volume` in `folder`.
pub(crate) fn small_drive(folder: &Path) -> Drive {
    let options = CreateOptions {
        volume: folder.join("volume"),
        dies: (0..4).map(|die| folder.join(format!("d{die}.img"))).collect(),
        size: Bytes::from_kib(8 << 10),
        is_protected: true,
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    };
    let drive = Drive::create(&options).expect("there is room");
    drive.write(0, &vec![7; 2 << 20], Durability::Volatile).expect("a new drive takes it");
    drive
}

/// Returns true if a program is installed; prints that the test is skipped otherwise.
pub(crate) fn is_there(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output();
    let is_there = found.is_ok_and(|found| found.status.success());
    if !is_there {
        eprintln!("{program} is missing: this test is skipped");
    }
    is_there
}

/// Runs a client, which must succeed. Returns what it printed to stdout.
pub(crate) fn client(program: &str, args: &[&str]) -> String {
    let output = Command::new("timeout")
        .args(["--kill-after=5", CLIENT_PATIENCE_S, program])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("coreutils are there");
    let [said, complained] =
        [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    assert!(output.status.success(), "{program} {args:?}: {}\n{said}{complained}", output.status);
    said
}

/// Sends an HTTP request of these lines to an address, and returns the answer.
pub(crate) fn ask(http: &str, lines: &[&str]) -> String {
    let mut stream = TcpStream::connect(http).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes it");
    let request = format!("{}\r\n\r\n", lines.join("\r\n"));
    stream.write_all(request.as_bytes()).expect("it receives");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers in time");
    answer
}

/// Returns stdout and stderr of a command.
pub(crate) fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{out}{err}")
}

/// Has a command succeed.
pub(crate) fn assert_done(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

/// The status of the drive named `volume` as a command prints it.
pub(crate) fn status(floatgate: impl Fn(&[&str]) -> Output) -> Value {
    let status = floatgate(&["status", "volume", "--json"]);
    serde_json::from_slice(&status.stdout).expect("it is JSON")
}
