//! Who is answered.
//!
//! A browser sends what any page of the web tells it to, to this machine as to any other. So that
//! no such page reads a drive, a request is answered only if its host is a number or this machine
//! by name, because a foreign name can be made to lead here (DNS rebinding), and only if it comes
//! from no page or from one of ours.

use std::net::IpAddr;

use super::reply::Reply;
use super::request::{Fault, Request};

/// Where things are asked to be done, below the page of each drive.
pub(super) const ORDERS: &str = "/request";

/// Refuses what a foreign page may have sent, and to do anything where one can only look.
pub(super) fn check(request: &Request) -> Result<(), Reply> {
    check_source(request)?;
    match (request.method.as_str(), request.path.ends_with(ORDERS)) {
        ("GET" | "HEAD", false) | ("POST", true) => Ok(()),
        _ => Err(Reply::text(405, "GET shows, and POST to /request has something done")),
    }
}

fn check_source(request: &Request) -> Result<(), Reply> {
    let header = |name| match request.header(name) {
        Ok(value) => Ok(value),
        Err(Fault::Refused(status, why)) => Err(Reply::text(status, why)),
        Err(Fault::Gone(_)) => Err(Reply::text(400, "the request is not whole")),
    };
    let host = header("host")?.unwrap_or_default();
    if !is_own_host(host) {
        return Err(Reply::text(403, "this host name is not served here; use the number"));
    }
    let is_own = |origin: &str| origin.strip_prefix("http://") == Some(host);
    if header("origin")?.is_none_or(is_own) {
        Ok(())
    } else {
        Err(Reply::text(403, "pages of other origins are not answered"))
    }
}

/// Whether a host cannot be a name that somebody else made lead here.
fn is_own_host(host: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && !name.ends_with(':') => name,
        _ => host,
    };
    let number = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || number.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_numbers_or_this_machine() {
        for host in ["127.0.0.1:8480", "127.0.0.1", "localhost:8480", "[::1]:8480", "192.0.2.1"] {
            assert!(is_own_host(host), "{host}");
        }
        for host in ["", "a.example", "a.example:8480", "127.0.0.1.a.example", "localhost.a"] {
            assert!(!is_own_host(host), "{host}");
        }
    }

    #[test]
    fn a_page_is_answered_if_it_came_from_the_same_host_and_port() {
        let answered = |origin: &str| {
            let text = format!("GET / HTTP/1.1\nHost: localhost:8480\nOrigin: {origin}");
            check_source(&Request::of(&text).unwrap()).is_ok()
        };
        assert!(answered("http://localhost:8480"));
        for origin in ["null", "http://localhost", "http://localhost:80", "https://localhost:8480"]
        {
            assert!(!answered(origin), "{origin}");
        }
    }
}
