//! What is asked to be done to a drive: by POST, with the server's token, and naming the drive.
//!
//! The token is new with every server. It lies in the drive's folder, for the drive's owner alone:
//! whoever can read it could use the management socket as well.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use live::management::{Answer, Request as Asked};
use serde::Deserialize;

use super::reply::Reply;
use super::request::Request;
use crate::observed::Observed;

const NAME: &str = "web.token";
const TOKEN_BYTES: usize = 16;

/// The key to everything that changes a drive. Its file is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Token {
    text: String,
    path: PathBuf,
}

/// The body of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    /// The drive that is meant, so that nobody changes another one by mistake.
    drive: String,
    /// What is asked, as over the management socket.
    request: Asked,
}

impl Token {
    /// Draws one, and writes it into the drive's folder.
    ///
    /// # Errors
    /// What the system answered.
    pub(super) fn draw(vault: &Path) -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let text = format!("{:032x}", u128::from_be_bytes(bytes));
        let path = vault.join(NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(Self { text, path })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a text is the token, in a time that does not depend on how much of it is right.
    fn is(&self, text: &str) -> bool {
        let differences = self.text.bytes().zip(text.bytes()).map(|(own, other)| own ^ other);
        text.len() == self.text.len() && differences.fold(0, |all, one| all | one) == 0
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // What cannot be removed opens nothing any more.
        let _ = fs::remove_file(&self.path);
    }
}

/// Does what is asked, of whoever has the token and names the drive.
pub(super) fn carry_out(request: &Request, token: &Token, observed: &Observed) -> Reply {
    let header = |name| request.header(name).ok().flatten().unwrap_or_default();
    if !header("content-type").starts_with("application/json") {
        return Reply::text(415, "what is to be done is told as application/json");
    }
    let is_known = header("authorization").strip_prefix("Bearer ").is_some_and(|it| token.is(it));
    if !is_known {
        return Reply::text(401, "this needs the token of web.token in the drive's folder");
    }
    let Order { drive, request } = match serde_json::from_slice(&request.body) {
        Ok(order) => order,
        Err(error) => return Reply::text(400, &format!("no request: {error}")),
    };
    if drive != observed.number() {
        return Reply::text(409, &format!("drive {} is served here", observed.number()));
    }
    match observed.answer(&request) {
        Answer::Refused { reason } => Reply::text(409, &reason),
        answer => Reply::json(&answer),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_for_the_owner_alone_and_gone_with_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let token = Token::draw(folder.path()).unwrap();
        let file = fs::metadata(token.path()).unwrap();
        assert_eq!((file.permissions().mode() & 0o777, file.len()), (0o600, 32));
        let path = token.path().to_owned();
        let text = token.text().to_owned();
        assert!(token.is(&text) && !token.is("") && !token.is(&text[1..]));
        assert!(!token.is(&format!("{}x", &text[..31])));
        drop(token);
        assert!(!path.exists());
        assert_ne!(Token::draw(folder.path()).unwrap().text(), text);
    }
}
