//! An answer.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::net::TcpStream;

use serde::Serialize;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// Headers of every answer: nothing is kept, guessed, embedded elsewhere or loaded from there.
const HEADERS: &str = "\
Cache-Control: no-store\r\n\
Connection: close\r\n\
Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
Cross-Origin-Opener-Policy: same-origin\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
Referrer-Policy: no-referrer\r\n\
X-Content-Type-Options: nosniff\r\n";

/// What is answered.
#[derive(Debug)]
pub(super) struct Reply {
    status: u16,
    kind: &'static str,
    body: Cow<'static, str>,
}

impl Reply {
    /// What was asked for.
    pub(super) fn new(kind: &'static str, body: impl Into<Cow<'static, str>>) -> Self {
        Self { status: 200, kind, body: body.into() }
    }

    /// A value.
    pub(super) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(body) => Self::new(JSON, body),
            Err(error) => Self { status: 500, kind: TEXT, body: format!("{error}\n").into() },
        }
    }

    /// A line of text.
    pub(super) fn text(status: u16, line: &str) -> Self {
        Self { status, kind: TEXT, body: format!("{line}\n").into() }
    }

    /// Sends it, or only what stands before the body.
    pub(super) fn send(&self, mut stream: &TcpStream, is_head: bool) -> io::Result<()> {
        let length = format!("Content-Length: {}\r\n", self.body.len());
        let mut bytes = head(self.status, self.kind, &length).into_bytes();
        if !is_head {
            bytes.extend(self.body.as_bytes());
        }
        stream.write_all(&bytes)
    }
}

/// What stands before a body, with further header lines.
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
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    format!("HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\n{further}{HEADERS}\r\n")
}
