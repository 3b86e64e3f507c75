//! A served drive, watched: the management socket and `floatgate volume top`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::served::{Served, assert_done, client, create_small_drive, is_there};

#[test]
fn a_served_drive_answers_until_it_is_stopped_and_is_closed_then() {
    let mut served = Served::start_small_drive();
    let asked = served.beside(&["status", "volume", "--json"]);
    let status: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!((&status["schema"], &status["state"]), (&Value::from(2), &Value::from("open")));
    let server = &status["server"];
    assert_eq!(server["pid"], served.pid());
    assert_eq!(server["exports"][0]["size_bytes"], 8 << 20);
    assert_eq!(status["smart"]["host_write_commands"], 0);
    assert_eq!(status["smart"]["percentage_used"], 0);
    assert!(server["memory_bytes"].as_u64().unwrap() > 1 << 20, "{server}");
    let text = served.beside(&["status", "volume", "--all"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(&format!("served by process {}", served.pid())), "{text}");
    assert!(served.stop().success());
    let closed = served.beside(&["status", "volume", "--json"]);
    let closed: Value = serde_json::from_slice(&closed.stdout).unwrap();
    assert_eq!((&closed["state"], &closed["drive"]), (&Value::from("closed"), &status["drive"]));
    assert_eq!(closed["smart"]["percentage_used"], 0);
    assert!(!served.path("volume/manage.sock").exists());
}

#[test]
fn a_second_server_of_a_drive_is_told_which_process_has_it() {
    let served = Served::start_small_drive();
    let second = served.beside(&["serve", "volume", "--nbd", "unix:other"]);
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    let expected = format!("is in use by process {}; stop that first\nhint: ", served.pid());
    assert!(said.contains(&expected) && said.lines().count() == 2, "{said}");
}

#[test]
fn the_locate_led_marks_a_drive_whether_it_is_served_or_not() {
    let mut served = Served::start_small_drive();
    let shown = |served: &Served| {
        let text = served.beside(&["status", "volume"]);
        String::from_utf8_lossy(&text.stdout).into_owned()
    };
    assert!(shown(&served).contains("(o) attached"), "{}", shown(&served));
    assert!(served.beside(&["locate", "volume", "on"]).status.success());
    assert!(shown(&served).contains("(*) LOCATE"), "{}", shown(&served));
    assert!(served.stop().success());
    assert!(shown(&served).contains("(*) LOCATE"), "{}", shown(&served));
    assert!(served.beside(&["locate", "volume", "off"]).status.success());
    assert!(shown(&served).contains("( ) off"), "{}", shown(&served));
    let refused = served.beside(&["locate", "nothing", "on"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("nothing is not the folder of a volume: "), "{said}");
    assert!(said.contains("hint: check the spelling of nothing; "), "{said}");
}

#[test]
fn a_drive_remembers_its_life_and_what_happened_to_it() {
    if !is_there("nbdcopy") {
        return;
    }
    let mut served = Served::start_small_drive();
    let data = served.path("data");
    fs::write(&data, vec![7; 65_536]).unwrap();
    client("nbdcopy", &["--flush", &data.display().to_string(), &served.uri]);
    assert!(served.stop().success());
    let status = |served: &Served| -> Value {
        serde_json::from_slice(&served.beside(&["status", "volume", "--json"]).stdout).unwrap()
    };
    let life = status(&served)["life"].clone();
    assert_eq!(life["host_written_bytes"], 65_536, "{life}");
    assert!(life["media_written_bytes"].as_u64().unwrap() >= 65_536, "{life}");
    let folder = served.kill();
    let volume = folder.path().join("volume").display().to_string();
    let again = Served::start_in(folder, &[&volume]);
    let status = status(&again);
    assert_eq!(status["server"]["traffic"]["writes"]["bytes"], 0);
    assert_eq!(status["life"]["host_written_bytes"], 65_536, "{}", status["life"]);
    let events = status["server"]["events"].to_string();
    for expected in
        ["The server started, process ", "Client 1 disconnected.", "The server stopped."]
    {
        assert!(events.contains(expected), "no `{expected}` in {events}");
    }
}

#[test]
fn latencies_are_those_from_receipt_to_reply_with_the_times_of_a_model() {
    if !is_there("nbdcopy") {
        return;
    }
    // A disk, which takes milliseconds, over a volume in files, which takes microseconds.
    let model = ["--timing", "model", "--model", "savvio-15k1-73"];
    let served = Served::start_small_drive_saying(&model, Stdio::inherit());
    let (data, folder) = (served.path("data"), served.path("volume"));
    fs::write(&data, vec![7; 1 << 20]).unwrap();
    client("nbdcopy", &["--flush", &data.display().to_string(), &served.uri]);
    let status = served.beside(&["status", folder.to_str().unwrap(), "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let writes = &status["server"]["traffic"]["writes"];
    let counts = writes["latency_histogram"].as_array().unwrap().iter();
    let counted: u64 = counts.map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counted, writes["commands"].as_u64().unwrap(), "{writes}");
    let mean_ns = writes["latency_ns_sum"].as_u64().unwrap() / counted.max(1);
    assert!(mean_ns > 1_000_000, "{writes}");
}

#[test]
fn a_drive_at_the_times_of_a_model_tells_its_power_and_heat_everywhere() {
    let served = Served::start_small_drive_saying(&["--timing", "model"], Stdio::inherit());
    let said = |args: &[&str]| String::from_utf8_lossy(&served.beside(args).stdout).into_owned();
    let status: Value = serde_json::from_str(&said(&["status", "volume", "--json"])).unwrap();
    let (model, smart) = (&status["server"]["model"], &status["smart"]);
    assert_eq!(
        (&model["name"], &model["climate"]["throttle_c"]),
        (&"iodrive-duo".into(), &78.0.into())
    );
    assert!((300..330).contains(&smart["composite_temperature"].as_u64().unwrap()), "{smart}");
    let text = said(&["status", "volume"]);
    assert!(text.contains("iodrive-duo, ") && text.contains("°C (throttles at"), "{text}");
    let text = said(&["top", "volume", "--once", "--interval", "1s"]);
    assert!(text.contains("°C, throttles at 78; 11."), "{text}");
    assert!(text.lines().count() <= 24, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_drive_at_the_times_of_a_model_keeps_to_the_power_and_the_air_that_its_file_gives_it() {
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let file = "timing = \"model\"\nslot-power = \"15\"\nambient = 40\n";
    let place = folder.path().join("volume.toml").display().to_string();
    fs::write(&place, file).unwrap();
    let served = Served::start_watched_with(folder, "127.0.0.1:0", &["--config", &place]);
    let said = served.beside(&["status", "volume", "--json"]).stdout;
    let status: Value = serde_json::from_slice(&said).unwrap();
    let climate = &status["server"]["model"]["climate"];
    assert_eq!(climate["power_limit_w"], 15.0);
    assert!(climate["temperature_c"].as_f64().unwrap() >= 40.0, "{climate}");
}

#[test]
fn top_shows_a_screen_of_eighty_columns_and_needs_a_server() {
    let mut served = Served::start_small_drive();
    let args = ["top", "volume", "--once", "--interval", "100ms"];
    assert_done(&served.beside(&["fail-die", "volume", "3"]));
    let shown = served.beside(&args);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let parts =
        ["volume (", "IOPS", "read", "write", "write amplification", "superblocks", "1 of 4"];
    for part in parts.into_iter().chain(["activity", "\n0    good   ", "): degraded\n! Die 3 ("]) {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    let place = |part: &str| text.find(part).expect("it was there");
    assert!(place("\n3    failed") < place("\n0    good"), "a failed die comes first:\n{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().count() <= 24, "{text}");
    assert!(served.stop().success());
    let refused = served.beside(&args);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(said, "error: volume is not served; start `floatgate volume serve volume`\n");
}

#[test]
fn top_fits_fifty_columns_and_q_ends_it() {
    if !is_there("script") {
        return;
    }
    let served = Served::start_small_drive();
    assert_done(&served.beside(&["fail-die", "volume", "3"]));
    let top = format!(
        "stty cols 50 rows 40; {} top {} --interval 100ms; echo ended with $?; stty -a",
        env!("CARGO_BIN_EXE_floatgate"),
        served.path("volume").display()
    );
    let typed = "timeout 60 script --quiet --return --command \"$0\" /dev/null";
    let mut terminal = Command::new("sh")
        .args(["-c", typed, &top])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let mut shown = BufReader::new(terminal.stdout.take().expect("it is piped"));
    let (mut text, mut keys) = (String::new(), terminal.stdin.take().expect("it is piped"));
    while !text.contains("activity") {
        assert_ne!(shown.read_line(&mut text).expect("it shows text"), 0, "{text}");
    }
    keys.write_all(b"q").expect("it is there");
    shown.read_to_string(&mut text).expect("it ends");
    terminal.wait().expect("it has ended");
    assert!(text.contains("ended with 0"), "{text}");
    let (screens, after) = text.split_once("ended with 0").expect("it did");
    assert!(after.contains(" icanon") && after.contains(" echo "), "{after}");
    let wide = screens.lines().filter(|line| !line.contains('\u{1b}'));
    assert!(wide.into_iter().all(|line| line.trim_end().chars().count() <= 50), "{screens}");
}
