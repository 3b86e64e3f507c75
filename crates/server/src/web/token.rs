//! The server's token, which every request that changes a drive carries.
//!
//! The token is new with every server. If it is kept in a file, only its owner can read that: such
//! a user could use the management sockets as well. Wrong tokens are logged, and beyond two they
//! make their address wait before the next is looked at, the right one included.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::rand::{GetRandomFlags, getrandom};
use tracing::warn;

use super::attempts::Attempts;
use super::reply::Reply;

const TOKEN_BYTES: usize = 16;

/// The key to everything that changes a drive. Its file is removed when it is dropped.
#[derive(Debug)]
pub struct Token {
    text: String,
    path: Option<PathBuf>,
    attempts: Attempts,
}

impl Token {
    /// Generates one, and writes it to a file, if one is named, in place of an earlier one.
    ///
    /// # Errors
    /// Fails if the file holds something else, or the system refuses.
    pub fn generate(path: Option<PathBuf>) -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        // So few bytes come at once or not at all.
        getrandom(&mut bytes, GetRandomFlags::empty())?;
        let text = format!("{:032x}", u128::from_be_bytes(bytes));
        if let Some(path) = &path {
            remove_old(path)?;
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(text.as_bytes())?;
        }
        Ok(Self { text, path, attempts: Attempts::default() })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The file that holds it; none where it is in memory alone.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Checks the `Authorization` header of a client; the error is the answer to send.
    pub(super) fn check(&self, peer: IpAddr, shown: &str) -> Result<(), Reply> {
        let text = shown.strip_prefix("Bearer ").unwrap_or_default();
        if text.is_empty() {
            return Err(Reply::text(401, "this needs the token that the server generated"));
        }
        let now = Instant::now();
        if let Some(wait) = self.attempts.wait(peer, now) {
            let wait_s = wait.as_secs() + 1;
            let text = format!("too many wrong tokens from this address; retry in {wait_s} s");
            return Err(Reply::text(429, &text).retried_after(wait));
        }
        if self.is(text) {
            self.attempts.note_right(peer);
            return Ok(());
        }
        let (count, wait) = self.attempts.note_wrong(peer, now);
        let wait_s = wait.as_secs();
        warn!(
            %peer, count,
            "wrong token from {peer}, {count} so far; the next attempt is allowed after {wait_s} s"
        );
        Err(Reply::text(401, "wrong token: not the one that the server generated"))
    }

    /// Returns true if a text equals the token; compares in constant time.
    fn is(&self, text: &str) -> bool {
        let differences = self.text.bytes().zip(text.bytes()).map(|(own, other)| own ^ other);
        text.len() == self.text.len() && differences.fold(0, |all, one| all | one) == 0
    }
}

/// Removes the token of an earlier server, which may have been killed.
fn remove_old(path: &Path) -> io::Result<()> {
    match fs::read(path) {
        Ok(old) if old.len() == 2 * TOKEN_BYTES && old.iter().all(u8::is_ascii_hexdigit) => {
            fs::remove_file(path)
        }
        Ok(_) => Err(io::Error::other(
            "the file contains something other than a token; name another file",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What cannot be removed opens nothing any more.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_for_the_owner_alone_and_gone_with_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.token");
        let token = Token::generate(Some(path.clone())).unwrap();
        let file = fs::metadata(&path).unwrap();
        assert_eq!((file.permissions().mode() & 0o777, file.len()), (0o600, 32));
        let text = token.text().to_owned();
        assert!(token.is(&text) && !token.is("") && !token.is(&text[1..]));
        assert!(!token.is(&format!("{}x", &text[..31])));
        drop(token);
        assert!(!path.exists());
        fs::write(&path, &text).unwrap();
        assert_ne!(
            Token::generate(Some(path)).unwrap().text(),
            text,
            "one that was left is replaced"
        );
    }

    #[test]
    fn a_file_that_holds_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        fs::write(&path, "not to be lost").unwrap();
        assert!(Token::generate(Some(path.clone())).is_err());
        assert_eq!(fs::read_to_string(path).unwrap(), "not to be lost");
    }
}
