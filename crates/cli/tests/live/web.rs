//! A served drive over HTTP: what is answered, to whom, and what is not.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::logged::wait_for;
use super::served::{Served, create_small_drive, floatgate};

/// Returns the body of an answer, which must be of status 200.
pub(crate) fn body(answer: &str) -> &str {
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer.split_once("\r\n\r\n").expect("headers end").1
}

fn code(answer: &str) -> &str {
    answer.get(9..12).unwrap_or("none")
}

#[test]
fn http_and_the_management_socket_tell_the_same() {
    let served = Served::start_watched();
    let over_http: Value = serde_json::from_str(body(&served.get("/status.json"))).unwrap();
    let asked = served.beside(&["status", "volume", "--json"]);
    let over_socket: Value = serde_json::from_slice(&asked.stdout).unwrap();
    for field in ["schema", "drive", "state", "format", "smart", "space", "wear", "writes", "dies"]
    {
        assert_eq!(over_http[field], over_socket[field], "{field}");
    }
    assert_eq!(over_http["server"]["exports"], over_socket["server"]["exports"]);
}

#[test]
fn pages_of_the_web_get_no_answer() {
    let served = Served::start_watched();
    let own = format!("Host: {}", served.http);
    for path in ["/", "/metrics", "/status.json", "/stream"] {
        let is_endless = path == "/stream";
        let get = format!("GET {path} HTTP/1.1");
        let code_of = |lines: &[&str]| code(&served.ask(lines)).to_owned();
        assert_eq!(code_of(&[&get, "Host: evil.example:8480"]), "403", "rebinding, {path}");
        assert_eq!(code_of(&[&get]), "403", "no host, {path}");
        assert_eq!(code_of(&[&get, &own, "Host: localhost"]), "400", "two hosts, {path}");
        assert_eq!(code_of(&[&get, &own, "Origin: http://evil.example"]), "403", "{path}");
        assert_eq!(code_of(&[&get, &own, "Origin: null"]), "403", "{path}");
        let same = format!("Origin: http://{}", served.http);
        if !is_endless {
            assert_eq!(code_of(&[&get, &own, &same]), "200", "{path}");
        }
    }
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let served = Served::start_watched();
    let own = format!("Host: {}", served.http);
    let code_of = |first: &str, more: &str| code(&served.ask(&[first, &own, more])).to_owned();
    assert_eq!(code_of("GET /nothing HTTP/1.1", "A: b"), "404");
    assert_eq!(code_of("DELETE /metrics HTTP/1.1", "A: b"), "405");
    assert_eq!(code_of("GET /metrics", "A: b"), "400");
    assert_eq!(code_of("GET http://evil.example/metrics HTTP/1.1", "A: b"), "400");
    let long = format!("A: {}", "b".repeat(20_000));
    assert_eq!(code_of("GET /metrics HTTP/1.1", &long), "431");
    assert_eq!(code_of("GET /request HTTP/1.1", "A: b"), "405");
    assert_eq!(code_of("POST /metrics HTTP/1.1", "Content-Length: 1000000"), "413");
    assert_eq!(code_of("POST /metrics HTTP/1.1", "Transfer-Encoding: chunked"), "411");
    let head = served.ask(&["HEAD /metrics HTTP/1.1", &own]);
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("\r\nContent-Security-Policy: default-src 'none';"), "{head}");
}

#[test]
fn a_client_that_sends_half_a_request_keeps_no_other_waiting_and_is_dropped() {
    let served = Served::start_watched();
    let mut halves: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(&served.http).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: ").unwrap();
            stream
        })
        .collect();
    let begun = Instant::now();
    body(&served.get("/metrics"));
    assert!(begun.elapsed() < Duration::from_secs(4), "it waited for the others");
    let half = &mut halves[0];
    half.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut rest = Vec::new();
    half.read_to_end(&mut rest).expect("it is dropped");
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408 "), "{rest:?}");
}

#[test]
fn the_stream_tells_the_status_each_second_and_a_viewer_that_takes_nothing_harms_no_other() {
    let served = Served::start_watched();
    let look_on = || {
        let mut stream = TcpStream::connect(&served.http).unwrap();
        let request = format!("GET /stream HTTP/1.1\r\nHost: {}\r\n\r\n", served.http);
        stream.write_all(request.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    };
    let _idle: Vec<TcpStream> = (0..9).map(|_| look_on()).collect();
    let mut messages = BufReader::new(look_on()).lines().filter_map(|line| {
        let line = line.expect("it goes on");
        Some(serde_json::from_str::<Value>(line.strip_prefix("data: ")?).expect("JSON"))
    });
    let uptimes: Vec<f64> =
        (0..3).map(|_| messages.next().unwrap()["server"]["uptime_s"].as_f64().unwrap()).collect();
    for pair in uptimes.windows(2) {
        assert!(pair[1] - pair[0] >= 0.9, "{uptimes:?}");
    }
}

/// Sends an action with these headers, and returns the answer.
fn ordered(served: &Served, drive: &str, headers: &[&str]) -> String {
    let order =
        format!("{{\"drive\":{drive:?},\"request\":{{\"request\":\"locate\",\"is_lit\":true}}}}");
    let length = format!("Content-Length: {}", order.len());
    let mut lines = vec!["POST /request HTTP/1.1", &length];
    lines.extend(headers);
    // What follows the empty line is the body.
    lines.extend(["", &order]);
    served.ask(&lines)
}

#[test]
fn only_who_has_the_token_and_names_the_drive_changes_anything() {
    let served = Served::start_watched();
    let status = || -> Value {
        serde_json::from_slice(&served.beside(&["status", "volume", "--json"]).stdout).unwrap()
    };
    let drive = status()["drive"].as_str().unwrap().to_owned();
    let token = fs::read_to_string(served.path("volume/web.token")).unwrap();
    let host = format!("Host: {}", served.http);
    let bearer = format!("Authorization: Bearer {token}");
    let json = "Content-Type: application/json";
    let same = format!("Origin: http://{}", served.http);
    let wrong = format!("Authorization: Bearer {}", "0".repeat(32));
    for (expected, named, headers) in [
        ("403", &*drive, vec!["Host: evil.example", json, &bearer]),
        ("403", &drive, vec![&host, json, &bearer, "Origin: http://evil.example"]),
        ("403", &drive, vec![&host, json, &bearer, "Origin: null"]),
        ("401", &drive, vec![&host, json]),
        ("401", &drive, vec![&host, json, &wrong]),
        ("415", &drive, vec![&host, "Content-Type: text/plain", &bearer]),
        ("409", "0000000000000000", vec![&host, json, &bearer]),
    ] {
        let answer = ordered(&served, named, &headers);
        assert_eq!(code(&answer), expected, "{headers:?}: {answer}");
    }
    assert_eq!(status()["is_locate_led_on"], false, "nothing of this changed anything");
    let done = ordered(&served, &drive, &[&host, json, &bearer, &same]);
    assert_eq!(body(&done), "{\"answer\":\"done\"}");
    assert_eq!((&status()["is_locate_led_on"], &status()["led"]), (&true.into(), &"locate".into()));
}

#[test]
fn wrong_tokens_are_logged_and_slowed_down() {
    let served = Served::start_watched();
    let host = format!("Host: {}", served.http);
    let guess = |number: u8| {
        let bearer = format!("Authorization: Bearer {number:032x}");
        ordered(&served, "0", &[&host, "Content-Type: application/json", &bearer])
    };
    let codes: Vec<String> = (0..4).map(|number| code(&guess(number)).to_owned()).collect();
    assert_eq!(codes, ["401", "401", "401", "429"]);
    assert!(guess(5).contains("\r\nRetry-After: "), "it is told when to come again");
    let logged = "warning: wrong token from 127.0.0.1, 3 so far";
    // The log is written beside the answers.
    wait_for(&served.path("said"), logged);
    let said = fs::read_to_string(served.path("said")).unwrap();
    assert_eq!(said.matches("wrong token from").count(), 3, "those that were looked at: {said}");
}

#[test]
fn the_pages_are_reached_by_names_that_were_allowed() {
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let args = ["--http-host", "storage.example", "--http-host", "other.example"];
    let served = Served::start_watched_with(folder, "127.0.0.1:0", &args);
    let code_of = |host: &str| {
        code(&served.ask(&["GET /metrics HTTP/1.1", &format!("Host: {host}")])).to_owned()
    };
    assert_eq!(code_of("storage.example:8480"), "200");
    assert_eq!(code_of("other.example"), "200");
    assert_eq!(code_of("evil.example"), "403");
    let refused = served.beside(&["serve", "volume", "--nbd", "unix:t", "--http-host", "a:1"]);
    assert_eq!(refused.status.code(), Some(2), "a port is no part of a name");
}

#[test]
fn a_port_in_use_is_one_clear_error_and_the_drive_stays_closed() {
    let served = Served::start_watched();
    let other = tempfile::tempdir().unwrap();
    create_small_drive(other.path());
    let args = ["serve", "volume", "--nbd", "unix:s", "--http", &served.http];
    let refused = floatgate(other.path(), &args);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let in_use = format!("error: http://{} is in use; stop the program that uses it,", served.http);
    assert!(said.starts_with(&in_use) && said.lines().count() == 1, "{said}");
    let status = floatgate(other.path(), &["status", "volume", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["state"], "closed");
}
