//! An answer.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use serde::Serialize;

use super::connection::Connection;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// Headers of every answer: nothing is kept, guessed, embedded elsewhere or loaded from there.
const HEADERS: &str = "\
Cache-Control: no-store\r\n\
Connection: close\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
Referrer-Policy: no-referrer\r\n\
X-Content-Type-Options: nosniff\r\n";

/// Header lines with the content security policy of the program's own pages.
pub(super) const OWN: &str = "\
Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
Cross-Origin-Opener-Policy: same-origin\r\n";

/// Header line with the content security policy of a page from a file: it has an origin of its own,
/// which nothing here answers, and loads nothing.
const FOREIGN: &str = "\
Content-Security-Policy: sandbox allow-scripts allow-downloads; default-src 'none'; \
script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
form-action 'none'; frame-ancestors 'none'\r\n";

/// HTTP response, before it is sent.
#[derive(Debug)]
pub(super) struct Reply {
    status: u16,
    kind: &'static str,
    policy: &'static str,
    /// Time after which to ask again.
    retry_after: Option<Duration>,
    body: Cow<'static, str>,
}

impl Reply {
    /// A response of status 200.
    pub(super) fn new(kind: &'static str, body: impl Into<Cow<'static, str>>) -> Self {
        Self { status: 200, kind, policy: OWN, retry_after: None, body: body.into() }
    }

    /// A page from a file, which this program may not have written.
    pub(super) fn foreign(html: String) -> Self {
        Self { policy: FOREIGN, ..Self::new("text/html; charset=utf-8", html) }
    }

    /// A value.
    pub(super) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(body) => Self::new(JSON, body),
            Err(error) => Self::text(500, &error.to_string()),
        }
    }

    /// A line of text.
    pub(super) fn text(status: u16, line: &str) -> Self {
        Self { status, ..Self::new(TEXT, format!("{line}\n")) }
    }

    /// Adds the time after which to ask again.
    pub(super) fn retried_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// Sends it, or only what stands before the body.
    pub(super) fn send(&self, connection: &Connection, is_head: bool) -> io::Result<()> {
        // Whole seconds, and never too early.
        let wait = |wait: Duration| format!("Retry-After: {}\r\n", wait.as_secs() + 1);
        let retry = self.retry_after.map_or_else(String::new, wait);
        let further = format!("Content-Length: {}\r\n{}{retry}", self.body.len(), self.policy);
        connection.send(head(self.status, self.kind, &further).as_bytes())?;
        if is_head { Ok(()) } else { connection.send(self.body.as_bytes()) }
    }
}

/// Returns the status line and headers of a response, up to the empty line before its body;
/// `further` holds more header lines.
pub(super) fn head(status: u16, kind: &str, further: &str) -> String {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed\r\nAllow: GET, HEAD, POST",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    format!("HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\n{further}{HEADERS}\r\n")
}
