//! Check of the origin of a request: host name, page of origin, and method.
//!
//! A browser sends what any page of the web tells it to, to this machine as to any other. So that
//! no such page reads a drive, a request is answered only if its host is a number, this machine by
//! name, or a name that the operator allowed, because a foreign name can be made to lead here (DNS
//! rebinding), and only if it comes from no page or from one of ours.

use std::net::IpAddr;

use super::reply::Reply;
use super::request::{Fault, Request};

/// Path of requests for actions, below the page of each drive.
pub(super) const ORDERS: &str = "/request";

/// The names and the way by which a server is reached.
#[derive(Debug, Default)]
pub(super) struct OriginCheck {
    /// Names beside `localhost`, without ports.
    pub(super) hosts: Vec<String>,
    pub(super) is_encrypted: bool,
}

impl OriginCheck {
    /// Returns the scheme of the addresses of its pages.
    pub(super) const fn scheme(&self) -> &'static str {
        if self.is_encrypted { "https://" } else { "http://" }
    }

    /// Refuses what a foreign page may have sent, and to do anything where one can only look.
    pub(super) fn check(&self, request: &Request) -> Result<(), Reply> {
        self.check_source(request)?;
        check_method(request)
    }

    fn check_source(&self, request: &Request) -> Result<(), Reply> {
        let header = |name| match request.header(name) {
            Ok(value) => Ok(value),
            Err(Fault::Refused(status, why)) => Err(Reply::text(status, why)),
            Err(Fault::Gone(_)) => Err(Reply::text(400, "the request is incomplete")),
        };
        let host = header("host")?.unwrap_or_default();
        if !self.is_own_host(host) {
            let why = "this host name is not served here; use the address, or start the server \
                       with --http-host NAME";
            return Err(Reply::text(403, why));
        }
        let is_own = |origin: &str| origin.strip_prefix(self.scheme()) == Some(host);
        if header("origin")?.is_none_or(is_own) {
            Ok(())
        } else {
            Err(Reply::text(403, "requests from pages of other origins are refused"))
        }
    }

    /// True if a host is an address, `localhost` or an allowed name: no other page can rebind
    /// these.
    fn is_own_host(&self, host: &str) -> bool {
        let is_port = |port: &str| !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit());
        let name = match host.rsplit_once(':') {
            Some((name, port)) if is_port(port) && !name.ends_with(':') => name,
            _ => host,
        };
        let number = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        name.eq_ignore_ascii_case("localhost")
            || number.unwrap_or(name).parse::<IpAddr>().is_ok()
            || self.hosts.iter().any(|allowed| name.eq_ignore_ascii_case(allowed))
    }
}

fn check_method(request: &Request) -> Result<(), Reply> {
    match (request.method.as_str(), request.path.ends_with(ORDERS)) {
        ("GET" | "HEAD", false) | ("POST", true) => Ok(()),
        _ => Err(Reply::text(405, "use GET to read, and POST to /request to change something")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_numbers_this_machine_or_names_that_are_allowed() {
        let hosts = vec!["storage.example".to_owned()];
        let origin_check = OriginCheck { hosts, ..OriginCheck::default() };
        for host in ["127.0.0.1:8480", "127.0.0.1", "localhost:8480", "[::1]:8480", "192.0.2.1"] {
            assert!(origin_check.is_own_host(host), "{host}");
        }
        assert!(
            origin_check.is_own_host("Storage.Example:9100")
                && origin_check.is_own_host("storage.example")
        );
        for host in ["", "a.example", "a.example:8480", "127.0.0.1.a.example", "localhost.a"] {
            assert!(!origin_check.is_own_host(host), "{host}");
        }
        for host in ["x.storage.example", "storage.example.a", "storage.example:8480:1"] {
            assert!(!origin_check.is_own_host(host), "{host}");
        }
        assert!(!OriginCheck::default().is_own_host("storage.example"));
    }

    #[test]
    fn a_page_is_answered_if_it_came_from_the_same_host_and_port_in_the_same_way() {
        let answered = |origin_check: &OriginCheck, origin: &str| {
            let text = format!("GET / HTTP/1.1\nHost: localhost:8480\nOrigin: {origin}");
            origin_check.check_source(&Request::of(&text).unwrap()).is_ok()
        };
        let (plain, encrypted) =
            (OriginCheck::default(), OriginCheck { is_encrypted: true, ..OriginCheck::default() });
        assert!(answered(&plain, "http://localhost:8480"));
        assert!(answered(&encrypted, "https://localhost:8480"));
        assert!(!answered(&encrypted, "http://localhost:8480"));
        for origin in ["null", "http://localhost", "http://localhost:80", "https://localhost:8480"]
        {
            assert!(!answered(&plain, origin), "{origin}");
        }
    }
}
