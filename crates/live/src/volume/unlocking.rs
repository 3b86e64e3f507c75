//! The key of an encrypted volume, from where its operator keeps it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use zeroize::Zeroizing;

use crate::{OpenError, UnlockingKey};

/// Most bytes that a key takes; one more tells that there are too many.
const BYTES_MAX: usize = 1 << 13;

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

/// The key that a command prints, which the shell runs.
///
/// # Errors
/// Fails if the command cannot be run, fails, or prints none.
pub fn key_of_command(command: &str) -> Result<UnlockingKey, OpenError> {
    let attempted = "running the command for the key";
    let failed = |source| OpenError::medium(attempted, source);
    let mut shell = Command::new("sh");
    let mut child = shell.args(["-c", command]).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let output = child.stdout.take().expect("it is piped");
    let read = read_key(output);
    let status = child.wait().map_err(failed)?;
    let bytes = read.map_err(failed)?;
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
