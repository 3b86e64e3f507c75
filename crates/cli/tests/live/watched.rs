//! A served drive, watched: the management socket and `floatgate top`.

use serde_json::Value;

use super::served::Served;

#[test]
fn a_served_drive_answers_until_it_is_stopped_and_is_closed_then() {
    let mut served = Served::start_small_drive();
    let asked = served.beside(&["status", "vault", "--json"]);
    let status: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!((&status["schema"], &status["state"]), (&Value::from(1), &Value::from("open")));
    let server = &status["server"];
    assert_eq!(server["pid"], served.pid());
    assert_eq!(server["exports"][0]["size_bytes"], 8 << 20);
    assert_eq!(status["smart"]["host_write_commands"], 0);
    assert!(server["memory_bytes"].as_u64().unwrap() > 1 << 20, "{server}");
    let text = served.beside(&["status", "vault", "--all"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(&format!("served by process {}", served.pid())), "{text}");
    assert!(served.stop().success());
    let closed = served.beside(&["status", "vault", "--json"]);
    let closed: Value = serde_json::from_slice(&closed.stdout).unwrap();
    assert_eq!((&closed["state"], &closed["drive"]), (&Value::from("closed"), &status["drive"]));
    assert!(!served.path("vault/manage.sock").exists());
}

#[test]
fn a_second_server_of_a_drive_is_told_which_process_has_it() {
    let served = Served::start_small_drive();
    let second = served.beside(&["serve", "vault", "--nbd", "unix:other"]);
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    let expected = format!("is in use by process {}; stop that first\n", served.pid());
    assert!(said.ends_with(&expected) && said.lines().count() == 1, "{said}");
}

#[test]
fn top_shows_a_screen_of_eighty_columns_and_needs_a_server() {
    let mut served = Served::start_small_drive();
    let args = ["top", "vault", "--once", "--interval", "100ms"];
    let shown = served.beside(&args);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    for part in ["drive ", "IOPS", "read", "write", "write amplification", "superblocks", "0 of 4"]
    {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().count() <= 24, "{text}");
    assert!(served.stop().success());
    let refused = served.beside(&args);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(said, "error: nobody serves vault; `floatgate serve vault` does\n");
}
