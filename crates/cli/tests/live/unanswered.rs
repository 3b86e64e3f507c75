//! Commands whose server ends before it has answered: each fails, says what may be unfinished, and
//! which command goes on.

#![expect(clippy::unwrap_used, reason = "a server that cannot be played fails the test")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Output;
use std::thread;

use serde_json::{Value, json};
use status::{Purge, Rebuild, Scrub};

use super::served::{create_small_drive, floatgate, said};

/// Runs a command on the volume in `folder`, whose server gives so many answers and then ends.
fn beside_one_that_ends(folder: &Path, args: &[&str], status: &Value, answers: usize) -> Output {
    let socket = folder.join("volume/manage.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let output = thread::scope(|scope| {
        let server = scope.spawn(move || {
            let (client, _) = listener.accept().unwrap();
            drop(listener);
            let mut requests = BufReader::new(&client);
            for _ in 0..answers {
                let mut line = String::new();
                requests.read_line(&mut line).unwrap();
                let asked: Value = serde_json::from_str(&line).unwrap();
                let is_status = asked["request"] == "status";
                let answer = if is_status {
                    json!({ "answer": "status", "status": status })
                } else {
                    json!({ "answer": "done" })
                };
                writeln!(&client, "{answer}").unwrap();
            }
        });
        let output = floatgate(folder, args);
        server.join().unwrap();
        output
    });
    fs::remove_file(socket).unwrap();
    output
}

#[test]
fn no_command_succeeds_whose_server_ends_before_it_has_answered() {
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let status = floatgate(folder.path(), &["status", "volume", "--json"]);
    let mut status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let maintenance = &mut status["maintenance"];
    maintenance["scrub"] = json!(Scrub { is_running: true, ..Scrub::default() });
    maintenance["rebuild"] = json!(Rebuild { is_running: true, ..Rebuild::default() });
    maintenance["purge"] = json!(Purge { is_running: true, ..Purge::default() });
    let id = status["drive"].as_str().unwrap().to_owned();
    let destroy = ["--destroy", &id, "--while-served"];
    let (ended, running) = ("ended before it answered; ", "for the progress: the server, process ");
    let commands: [(&[&str], usize, [&str; 2]); 14] = [
        (&["scrub", "volume"], 0, [ended, "check --repair volume"]),
        (&["scrub", "volume"], 1, [running, "check --repair volume"]),
        (&["purge", "volume"], 1, [ended, "`floatgate volume status volume`"]),
        (&["purge", "volume"], 2, [running, "without --while-served"]),
        (
            &["format", "volume", "--capacity", "4MiB"],
            1,
            [ended, "`floatgate volume status volume`"],
        ),
        (
            &["format", "volume", "--capacity", "4MiB"],
            2,
            [running, "same `floatgate volume format`"],
        ),
        (&["resize", "volume", "--size", "4MiB"], 1, [ended, "run this again"]),
        (&["fail-die", "volume", "1"], 0, [ended, "status volume --all"]),
        (&["replace-die", "volume", "1", "--with", "n.img"], 0, [ended, "volume 1 --with n.img"]),
        (&["replace-die", "volume", "1", "--with", "n.img"], 1, [running, "begins it again"]),
        (&["add-spare", "volume", "n.img"], 0, [ended, "run this again"]),
        (&["remove-spare", "volume", "n.img"], 0, [ended, "run this again"]),
        (&["locate", "volume", "on"], 0, [ended, "run the same command again"]),
        (&["inject", "volume", "fill"], 0, [ended, "whether the volume is served"]),
    ];
    for (args, answers, expected) in commands {
        let takes_leave = ["purge", "format", "resize"].contains(&args[0]);
        let args = if takes_leave { [args, &destroy].concat() } else { args.to_vec() };
        let output = beside_one_that_ends(folder.path(), &args, &status, answers);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains("\nhint: "), "{args:?}: {said}");
        assert!(expected.iter().all(|part| said.contains(part)), "{args:?}: {said}");
    }
    for args in [&["status", "volume"][..], &["top", "volume", "--once"]] {
        let output = beside_one_that_ends(folder.path(), args, &status, 0);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", said(&output));
        assert!(said(&output).contains("ended before it answered"), "{}", said(&output));
    }
}
