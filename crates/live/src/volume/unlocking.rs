//! The key of an encrypted volume, from where its operator keeps it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::{OpenError, UnlockingKey};

/// Most bytes that a key takes; one more tells that there are too many.
const BYTES_MAX: usize = 1 << 13;
/// Time that a command for a key may take.
const COMMAND_TIME_MAX: Duration = Duration::from_mins(1);
/// Pause between looks whether a command that has closed its output has ended.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// The key in a file.
///
/// # Errors
/// Fails if the file cannot be read, or holds none.
pub fn key_of_file(path: &Path) -> Result<UnlockingKey, OpenError> {
    let shown = path.display();
    let attempted = format!("reading the key file {shown}");
    let read = File::open(path).and_then(read_key);
    let bytes = read.map_err(|source| OpenError::medium(&attempted, source))?;
    UnlockingKey::of_bytes(&bytes)
        .map_err(|why| OpenError::refused(format!("the key file {shown} holds {why}")))
}

/// True if a key file is one that its group or others may read.
pub fn is_readable_by_others(path: &Path) -> bool {
    let found = fs::metadata(path);
    found.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o077 != 0)
}

/// The key that a command prints, which the shell runs. It is given nothing to read, and a minute.
///
/// # Errors
/// Fails if the command cannot be run, fails, prints none, or does not end in time: then the shell
/// is killed, and what it started and waits for may go on.
pub fn key_of_command(command: &str) -> Result<UnlockingKey, OpenError> {
    key_within(command, COMMAND_TIME_MAX)
}

fn key_within(command: &str, limit: Duration) -> Result<UnlockingKey, OpenError> {
    let attempted = "running the command for the key";
    let failed = |source| OpenError::medium(attempted, source);
    let deadline = Instant::now() + limit;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = shell.spawn().map_err(failed)?;
    let output = child.stdout.take().expect("it is piped");
    let (tell, printed) = mpsc::channel();
    // What the command started may hold its output open for ever.
    thread::spawn(move || tell.send(read_key(output)));
    let ended = printed.recv_timeout(limit).ok().and_then(|read| {
        loop {
            match child.try_wait().transpose() {
                Some(status) => return Some((read, status)),
                None if Instant::now() >= deadline => return None,
                None => thread::sleep(LOOK_PAUSE),
            }
        }
    });
    let Some((read, status)) = ended else {
        // It may have ended by now.
        let _ = child.kill();
        let _ = child.wait();
        let limit_s = limit.as_secs_f64();
        return Err(OpenError::refused(format!(
            "the command for the key has not ended after {limit_s} s: run it by itself; it must \
             not wait for input"
        )));
    };
    let (bytes, status) = (read.map_err(failed)?, status.map_err(failed)?);
    if !status.success() {
        return Err(OpenError::refused(format!("the command for the key ended with {status}")));
    }
    UnlockingKey::of_bytes(&bytes)
        .map_err(|why| OpenError::refused(format!("the command for the key printed {why}")))
}

/// Reads all bytes into memory that is wiped, and never moves.
fn read_key(mut from: impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; BYTES_MAX]);
    let mut length = 0;
    while length < bytes.len() {
        match from.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(100);

    #[test]
    fn a_command_that_does_not_end_is_given_up() {
        for command in ["sleep 20", "printf text; exec >&-; sleep 20", "sleep 20 & exit 0"] {
            let told = key_within(command, SHORT).unwrap_err().to_string();
            assert!(told.contains("has not ended after 0.1 s"), "{command}: {told}");
        }
    }

    #[test]
    fn a_command_is_given_nothing_to_read() {
        let printed = key_of_command("cat; printf text").unwrap();
        assert_eq!(printed, UnlockingKey::of_bytes(b"text").unwrap());
        // Whatever this process has there.
        let found = key_of_command("readlink /proc/self/fd/0").unwrap();
        assert_eq!(found, UnlockingKey::of_bytes(b"/dev/null").unwrap());
    }

    #[test]
    fn a_key_file_that_others_may_read_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "text").unwrap();
        for (mode, expected) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_readable_by_others(&path), expected, "{mode:o}");
        }
        assert!(!is_readable_by_others(folder.path()), "a folder is no key file");
    }
}
