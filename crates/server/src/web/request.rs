//! HTTP requests, read from untrusted clients.

use std::io;
use std::time::{Duration, Instant};

use super::connection::Connection;

/// Most bytes of a request's line and headers.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Most headers.
const HEADERS_MAX: usize = 64;
/// Most bytes of its body.
const BODY_BYTES_MAX: usize = 4096;
/// Bytes that are asked of the system at once.
const CHUNK_BYTES: usize = 4096;

/// HTTP request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// Begins with `/`, and has no query.
    pub(super) path: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// Failure to receive a request.
#[derive(Debug)]
pub(super) enum Fault {
    /// Connection that failed or ended; there is no client to answer.
    Gone(io::Error),
    /// Malformed request: the status of the answer, and the reason.
    Refused(u16, &'static str),
}

impl Request {
    /// Reads one, of which all must have come within `patience`.
    pub(super) fn read(connection: &Connection, patience: Duration) -> Result<Self, Fault> {
        let deadline = Instant::now() + patience;
        let mut bytes = Vec::new();
        let more = |bytes: &mut Vec<u8>| {
            let mut chunk = [0; CHUNK_BYTES];
            match connection.receive(&mut chunk, deadline) {
                Ok(0) => Err(Fault::Gone(io::ErrorKind::UnexpectedEof.into())),
                Ok(length) => {
                    bytes.extend(&chunk[..length]);
                    Ok(())
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    Err(Fault::Refused(408, "the request took too long"))
                }
                Err(error) => Err(Fault::Gone(error)),
            }
        };
        let (mut request, head_bytes) = loop {
            if let Some(parsed) = Self::parse(&bytes)? {
                break parsed;
            }
            if bytes.len() >= HEAD_BYTES_MAX {
                return Err(Fault::Refused(431, "the headers are too long"));
            }
            more(&mut bytes)?;
        };
        let body_bytes = request.body_bytes()?;
        while bytes.len() < head_bytes + body_bytes {
            more(&mut bytes)?;
        }
        request.body = bytes[head_bytes..head_bytes + body_bytes].to_vec();
        Ok(request)
    }

    /// The request without its body, and the bytes before that; nothing while some are missing.
    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Fault> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let head_bytes = match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Fault::Refused(431, "there are too many headers"));
            }
            Err(_) => return Err(Fault::Refused(400, "this is not an HTTP/1.1 request")),
        };
        let target = parsed.path.unwrap_or_default();
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        if !path.starts_with('/') {
            return Err(Fault::Refused(400, "the request target must begin with /"));
        }
        let header = |header: &httparse::Header<'_>| {
            let value = String::from_utf8_lossy(header.value).trim().to_owned();
            (header.name.to_ascii_lowercase(), value)
        };
        let request = Self {
            method: parsed.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            headers: parsed.headers.iter().map(header).collect(),
            body: Vec::new(),
        };
        Ok(Some((request, head_bytes)))
    }

    /// The one value of a header, whose name is in small letters; none if it is missing.
    ///
    /// # Errors
    /// Fails if it is there twice: a proxy might take the other one.
    pub(super) fn header(&self, name: &str) -> Result<Option<&str>, Fault> {
        let mut values = self.headers.iter().filter(|(it, _)| it == name).map(|(_, value)| value);
        let first = values.next().map(String::as_str);
        match values.next() {
            None => Ok(first),
            Some(_) => Err(Fault::Refused(400, "a header is repeated")),
        }
    }

    fn body_bytes(&self) -> Result<usize, Fault> {
        if self.header("transfer-encoding")?.is_some() {
            return Err(Fault::Refused(411, "a body needs its length"));
        }
        let Some(length) = self.header("content-length")? else { return Ok(0) };
        match length.parse() {
            Ok(length) if length <= BODY_BYTES_MAX => Ok(length),
            Ok(_) => Err(Fault::Refused(413, "the body is too long")),
            Err(_) => Err(Fault::Refused(400, "the length of the body is no number")),
        }
    }
}

#[cfg(test)]
impl Request {
    /// Parses the request line and headers of `text`, which lack line ends and a body.
    pub(super) fn of(text: &str) -> Result<Self, Fault> {
        let text = format!("{}\r\n\r\n", text.replace('\n', "\r\n"));
        Self::parse(text.as_bytes()).map(|parsed| parsed.expect("the text is whole").0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal<T>(result: &Result<T, Fault>) -> u16 {
        match result {
            Err(Fault::Refused(status, _)) => *status,
            _ => panic!("it was not refused"),
        }
    }

    #[test]
    fn the_query_is_no_part_of_the_path() {
        let request = Request::of("GET /metrics?name=x HTTP/1.1\nHost: a").unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/metrics"));
        assert_eq!(request.header("host").unwrap(), Some("a"));
        assert_eq!(request.header("origin").unwrap(), None);
    }

    #[test]
    fn what_has_two_meanings_is_refused() {
        let twice = Request::of("GET / HTTP/1.1\nHost: a\nHost: b").unwrap();
        assert_eq!(refusal(&twice.header("host")), 400);
        assert_eq!(refusal(&Request::of("GET http://a/ HTTP/1.1\nHost: b")), 400);
        let chunked = "POST / HTTP/1.1\nTransfer-Encoding: chunked\nContent-Length: 1";
        assert_eq!(refusal(&Request::of(chunked).unwrap().body_bytes()), 411);
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_read() {
        let long = "POST / HTTP/1.1\nContent-Length: 4097";
        assert_eq!(refusal(&Request::of(long).unwrap().body_bytes()), 413);
        let many = format!("GET / HTTP/1.1{}", "\nA: b".repeat(65));
        assert_eq!(refusal(&Request::of(&many)), 431);
        assert_eq!(refusal(&Request::of("\u{0}\u{1}")), 400);
    }
}
