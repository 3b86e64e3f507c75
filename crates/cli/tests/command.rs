//! The built command: what it says to right and wrong input, where, and how it exits.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn floatgate(args: &[&str]) -> Output {
    floatgate_in(Path::new("."), args)
}

fn floatgate_in(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .args(args)
        .current_dir(dir)
        .env("COLUMNS", "100")
        .env_remove("RUST_BACKTRACE")
        .output()
        .expect("the command was built")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command that must print nothing to stdout. Returns its exit status and stderr.
fn refused(args: &[&str]) -> (Option<i32>, String) {
    let output = floatgate(args);
    assert_eq!(stdout(&output), "", "a refusal is no result");
    (output.status.code(), stderr(&output))
}

#[test]
fn an_unknown_drive_is_refused_once_with_the_nearest_name() {
    let (status, said) = refused(&["run", "iodrive-dou"]);
    assert_eq!(status, Some(2));
    assert_eq!(said, "error: unknown drive `iodrive-dou`\nhint: did you mean `iodrive-duo`?\n");
}

#[test]
fn an_unknown_format_is_refused_with_those_there_are() {
    let (status, said) = refused(&["plan", "iodrive-duo", "--format", "turbo"]);
    assert_eq!(status, Some(2));
    assert_eq!(
        said,
        "error: iodrive-duo has no format `turbo`\nhint: it has stock, high-performance\n"
    );
}

#[test]
fn a_sweep_of_nothing_or_of_a_key_that_is_not_there_is_refused_once() {
    let (status, said) = refused(&["sweep", "iodrive-duo"]);
    assert_eq!(status, Some(2));
    assert_eq!(
        said,
        "error: no parameter to sweep was given\n\
         hint: give a range, such as --user-capacity 400G..720G\n"
    );
    let (_, said) = refused(&["sweep", "iodrive-duo", "--set", "nand.t_raed_us=40,50"]);
    assert_eq!(
        said,
        "error: the drive's file has no `nand.t_raed_us`\nhint: did you mean `nand.t_read_us`?\n"
    );
    let (_, said) = refused(&["sweep", "iodrive-duo", "--user-capacity", "400..720"]);
    let expected = "error: sweeping user_capacity_gb over `400..720`: no unit: write `400G` or";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains("hint: values look like `400G..720G`, "), "{said}");
    let (_, said) = refused(&["run", "iodrive-duo", "--fail-die", "999@10s"]);
    assert!(said.contains("hint: name dies that the drive has, each once"), "{said}");
    let (status, said) = refused(&["fit", "nofile.toml", "--free", "nand.t_read_us=40..60"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("`floatgate drives NAME --toml` prints one"), "{said}");
}

#[test]
fn a_sweep_without_a_feasible_point_fails_and_so_does_a_load_beyond_the_most() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["sweep", "csd-3000-7680", "--compressible", "0", "--time-lapse", "512"];
    let output = floatgate_in(dir.path(), &args);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("none of 1 points of the sweep is feasible: "), "{output:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "it left something");
    let (_, said) = refused(&["sweep", "iodrive-duo", "--threads", "2000", "--queue", "1,2"]);
    assert!(said.contains("threads is 2000, not a whole number from 1 to 1024"), "{said}");
}

#[test]
fn a_sweep_on_a_cluster_names_what_its_driver_lacks_before_a_folder_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let sweep = |path: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_floatgate"))
            .args(["sweep", "iodrive-duo", "--threads", "1,2", "--ray", "auto"])
            .current_dir(dir.path())
            .env("PATH", path)
            .output()
            .expect("the command was built");
        assert_eq!(stdout(&output), "", "a refusal is no result");
        assert!(!dir.path().join("runs").exists(), "no run could go on with such a folder");
        (output.status.code(), stderr(&output))
    };
    let (status, said) = sweep(dir.path());
    assert_eq!(status, Some(2));
    assert!(said.starts_with("error: running python3 for a sweep on Ray: "), "{said}");
    assert!(said.contains("hint: install Python, then `python3 -m pip install"), "{said}");
    let python = dir.path().join("python3");
    fs::write(&python, "#!/bin/sh\necho ray\n").unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let (status, said) = sweep(dir.path());
    assert_eq!(status, Some(2));
    assert_eq!(
        said,
        "error: python3 lacks packages for a sweep on a Ray cluster: ray\n\
         hint: `python3 -m pip install ray`\n"
    );
    fs::write(&python, "#!/bin/sh\necho floatgate ray\n").unwrap();
    let (_, said) = sweep(dir.path());
    // A package index may have a package of the same name that is another project's.
    assert!(said.contains("pip install ./floatgate-*.whl ray`; the file is the wheel"), "{said}");
}

#[test]
fn an_unknown_workload_and_an_unknown_protocol_get_the_nearest_names() {
    let (_, said) = refused(&["run", "iodrive-duo", "4k-rnd-write"]);
    assert!(said.ends_with("hint: did you mean `4k-rand-write`?\n"), "{said}");
    let (_, said) = refused(&["plan", "iodrive-duo", "--protocol", "entreprise"]);
    assert!(said.ends_with("hint: did you mean `enterprise`?\n"), "{said}");
}

#[test]
fn options_that_change_nothing_on_a_model_are_told() {
    let args = [
        "run",
        "iodrive-duo",
        "4k-rand-read",
        "--repeat",
        "1",
        "--runtime",
        "2s",
        "--time-lapse",
        "64",
    ];
    let options = ["--fail-die", "3@99h", "--tune", "--size", "4G", "--compressible", "50"];
    let output = floatgate(&[&args[..], &options].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = stderr(&output);
    for option in ["--tune", "--size"] {
        assert!(said.contains(&format!("{option} has no effect on a model")), "{said}");
    }
    assert!(said.contains("--compressible has no effect: iodrive-duo does not"), "{said}");
    assert!(said.contains("die 3 never failed: the load ended at 2.00 s"), "{said}");
    assert!(!said.contains("--destroy has no effect"), "it was not given: {said}");
}

#[test]
fn what_an_order_says_is_not_said_again_when_it_is_resumed() {
    let (status, said) = refused(&["review", "--resume", "x", "--protocol", "quick"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("cannot be used with"), "{said}");
    let (status, _) = refused(&["sweep", "--resume", "x", "--user-capacity", "1G"]);
    assert_eq!(status, Some(2));
    let (_, said) = refused(&["sweep", "--resume", "x"]);
    assert!(!said.contains("cannot be used with"), "defaults are no arguments: {said}");
}

#[test]
fn a_folder_of_another_kind_is_not_resumed_but_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("runs/x");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("order.json"), "{\"schema\": 1, \"plan\": {}}").unwrap();
    let said = stderr(&floatgate_in(dir.path(), &["sweep", "--resume", "x"]));
    assert!(said.contains("it is a run, not a sweep\nhint: `floatgate review --resume"), "{said}");
    fs::write(folder.join("order.json"), "{\"schema\": 1, \"dimensions\": []}").unwrap();
    let said = stderr(&floatgate_in(dir.path(), &["review", "--resume", "x"]));
    assert!(said.contains("it is a sweep, not a run\nhint: `floatgate sweep --resume"), "{said}");
}

#[test]
fn a_time_without_a_unit_is_refused_with_what_would_be_right() {
    let (status, said) = refused(&["run", "--runtime", "60"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("no unit: write `60s`, `60min` or `60h`"), "{said}");
}

#[test]
fn a_drive_file_that_is_none_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.toml"), "schema = \"one\"\n").unwrap();
    let output = floatgate_in(dir.path(), &["plan", "mine.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("error: reading a drive: mine.toml"), "{output:?}");
}

#[test]
fn figures_that_are_none_are_refused_with_their_place() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.csv"), "a,b\n1,2\n").unwrap();
    let output = floatgate_in(dir.path(), &["validate", "--figures", "mine.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("mine.csv:1: the columns are not id,"), "{output:?}");
}

#[test]
fn a_drive_of_which_nothing_is_compared_names_the_one_that_it_was_validated_as() {
    let (_, said) = refused(&["validate", "p5800x"]);
    assert!(said.contains("validating p5800x: no published figure is about it alone"), "{said}");
    assert!(said.contains("run `floatgate validate p5800x-pair`"), "{said}");
}

#[test]
fn each_family_of_a_drive_is_predicted_from_the_others() {
    let output = floatgate(&["validate", "--cross", "p5800x-pair", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let rows = found[0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|row| row["error"].as_f64().unwrap() < 0.2), "{rows:?}");
    let (_, said) = refused(&["validate", "--cross", "p5510"]);
    assert!(said.starts_with("error: p5510 has no free parameters"), "{said}");
}

#[test]
fn a_fit_whose_file_cannot_be_written_is_refused_before_the_search() {
    let dir = tempfile::tempdir().unwrap();
    let duo = stdout(&floatgate(&["drives", "iodrive-duo", "--toml"]));
    fs::write(dir.path().join("start.toml"), duo).unwrap();
    let fit = ["fit", "start.toml", "--free", "nand.t_read_us=40..60", "--out", "none/x.toml"];
    let output = floatgate_in(dir.path(), &fit);
    let said = stderr(&output);
    assert!(said.starts_with("error: writing none/x.toml: "), "{said}");
    assert!(said.contains("hint: name a file in a folder that exists"), "{said}");
}

#[test]
fn a_fit_without_figures_of_the_drive_names_the_devices_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let drive =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/iodrive-duo.toml"));
    let drive = drive.unwrap().replacen("capacity_gb = 640", "capacity_gb = 641", 1);
    fs::write(dir.path().join("mine.toml"), drive).unwrap();
    let output = floatgate_in(dir.path(), &["fit", "mine.toml", "--free", "controller.read_us"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("published/figures.csv: no figure of Fusion-io ioDrive Duo MLC 641"));
    assert!(said.contains("hint: ") && said.contains("Fusion-io ioDrive Duo MLC 640"), "{said}");
}

#[test]
fn bounds_that_are_none_are_refused_with_an_example() {
    let (status, said) = refused(&["fit", "mine.toml", "--free", "nand.t_read_us=40..20"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("such as 10..40"), "{said}");
}

#[test]
fn a_run_prints_two_numbers_first_and_all_of_its_result_to_stdout() {
    let output = floatgate(&["run", "--runtime", "2s"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with(" IOPS") && lines[1].ends_with(" mean latency"), "{text}");
    assert!(text.contains(" p99.9 ") && text.contains("written since the purge"), "{text}");
    let spread = "95 % intervals, from repeats with other seeds: ";
    assert!(text.contains(spread) && text.contains("\n       95 %  "), "{text}");
    assert!(!stderr(&output).contains("p99"), "{output:?}");
}

#[test]
fn a_run_at_a_rate_prints_latency_from_submission_and_response_time() {
    let output = floatgate(&["run", "--repeat", "1", "--runtime", "2s", "--rate", "1k"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].ends_with(" mean latency (from submission)"), "{text}");
    assert!(lines[2].ends_with(" mean response time (from the time it was due)"), "{text}");
}

#[test]
fn a_rate_that_was_not_reached_has_no_response_time_and_says_so() {
    let output = floatgate(&["run", "--repeat", "1", "--runtime", "2s", "--rate", "900k"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = stdout(&output);
    assert!(said.contains("warning: requested 900000 IOPS, not reached: "), "{said}");
    assert!(said.contains("; no response time, since"), "{said}");
    assert!(!said.contains("\nresponse"), "{said}");
}

#[test]
fn a_replay_says_which_part_of_the_trace_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let make = ["trace", "make", "it.iolog", "--requests", "2000"];
    assert_eq!(floatgate_in(dir.path(), &make).status.code(), Some(0));
    let run = ["run", "iodrive-duo", "--trace", "it.iolog", "--speed", "1", "--runtime", "1s"];
    let output = floatgate_in(dir.path(), &run);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = stdout(&output);
    assert!(said.contains("trace it.iolog (2000 requests over "), "{said}");
    assert!(said.contains("requests were due, ") && said.contains("; requested "), "{said}");
    assert!(said.contains("warning: less than one replay of the trace: its first "), "{said}");
}

#[test]
fn a_trace_that_one_thread_cannot_replay_is_said_to_be_limited_by_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let at = |i: u32| format!("{} /dev/x read {} 4096\n", i * 50 / 3, i * 7919 % 20_000 * 4096);
    let requests: String = (0..6000).map(at).collect();
    let log = format!("fio version 3 iolog\n0 /dev/x add\n0 /dev/x open\n{requests}");
    fs::write(dir.path().join("60k.iolog"), log).unwrap();
    let run = ["run", "p5800x", "--trace", "60k.iolog", "--speed", "1", "--runtime", "30s"];
    let said = |more: &[&str]| stdout(&floatgate_in(dir.path(), &[&run[..], more].concat()));
    let iops = |said: &str| said.split(' ').next().unwrap().parse::<f64>().unwrap();
    let (one, chosen) = (said(&["--threads", "1"]), said(&[]));
    assert!(iops(&one) < 58_000.0 && one.contains("limited by the host (1 thread)"), "{one}");
    assert!(iops(&chosen) > 59_900.0 && !chosen.contains("limited by the host"), "{chosen}");
}

#[test]
fn what_cannot_be_read_or_written_is_told_with_its_own_remedy() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("there.rec"), "mine").unwrap();
    let refused = |args: &[&str]| {
        let output = floatgate_in(dir.path(), args);
        (output.status.code(), stderr(&output))
    };
    let (status, said) = refused(&["trace", "import", "nosuch.txt", "--out", "it.rec"]);
    assert_eq!(status, Some(2), "{said}");
    let (status, said) = refused(&["trace", "import", "nosuch.txt", "--out", "there.rec"]);
    assert!(status == Some(1) && !said.contains("--overwrite"), "{said}");
    let (_, said) = refused(&["trace", "make", "nosuch/it.iolog"]);
    assert!(said.contains("hint: name a file in a folder that exists"), "{said}");
    let (status, said) = refused(&["app", "sysbench-oltp", "/nosuch"]);
    assert!(status == Some(2) && said.contains("/nosuch: no such folder or drive"), "{said}");
    let (status, said) = refused(&["app", "sysbench-oltp", "p5800x", "--mkfs"]);
    assert!(status == Some(2) && said.contains("--mkfs applies to measurements"), "{said}");
    let (status, said) = refused(&["app", "sysbench-oltp", "p5800x", "--out", "records"]);
    assert!(status == Some(2) && said.contains("hint: name volumes only"), "{said}");
    let (status, said) = refused(&["run", "p5800x", "--fail-die", "0@1s"]);
    assert!(status == Some(2) && said.contains("has no dies"), "{said}");
    assert!(said.contains("hint: leave out --fail-die"), "{said}");
}

#[test]
fn the_plan_of_a_group_fills_all_of_its_devices() {
    let text = stdout(&floatgate(&["plan", "p5510-eight", "--protocol", "quick"]));
    assert!(text.contains(", each load on each of 8 devices"), "{text}");
    assert!(text.contains("2 fills of 61.44 TB (122.88 TB written)"), "{text}");
}

#[test]
fn a_run_as_json_says_what_was_measured_on_what() {
    let output =
        floatgate(&["run", "--repeat", "1", "--runtime", "2s", "--precondition", "3s", "--json"]);
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(json["target"]["name"], "iodrive-duo");
    assert!(!json["environment"]["sheet"].as_array().unwrap().is_empty());
    let warnings = json["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|it| it["kind"] == "not-steady"), "{warnings:?}");
    assert_eq!(json["seed"], 1);
}

#[test]
fn a_file_that_is_there_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let make = ["trace", "make", "it.iolog", "--requests", "100"];
    assert_eq!(floatgate_in(dir.path(), &make).status.code(), Some(0));
    fs::write(dir.path().join("it.iolog"), "mine").unwrap();
    let refused = floatgate_in(dir.path(), &make);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("hint: name another file, or add --overwrite"));
    assert_eq!(fs::read_to_string(dir.path().join("it.iolog")).unwrap(), "mine");
    let replaced = floatgate_in(dir.path(), &[make.as_slice(), &["--overwrite"]].concat());
    assert_eq!(replaced.status.code(), Some(0), "{replaced:?}");
}

#[test]
fn a_run_gives_the_same_figures_again() {
    let json = || stdout(&floatgate(&["run", "--runtime", "2s", "--json", "--seed", "7"]));
    let first = json();
    assert!(first.contains("\"latency_ns_avg\""));
    assert_eq!(first, json());
}

#[test]
fn a_preconditioning_too_short_for_steady_state_exits_with_3_where_that_is_required() {
    let run = ["run", "--repeat", "1", "--runtime", "2s", "--precondition", "3s"];
    for (option, code) in [(&[][..], 0), (&["--require-steady"], 3)] {
        let output = floatgate(&[&run, option].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let said = stdout(&output);
        assert!(said.contains("warning: run/precondition: steady state not judged: "), "{said}");
        assert!(said.contains(" mean latency"), "it was measured all the same");
    }
}

/// Stores a run of one load in `runs`. Returns its folder, as it was printed.
fn stored_run(dir: &Path, workload: &str) -> String {
    let run = ["run", "iodrive-duo", workload, "--repeat", "1", "--runtime", "2s", "--out", "runs"];
    let output = floatgate_in(dir, &run);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    let folder = text.lines().find_map(|line| line.strip_prefix("stored in "));
    folder.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn a_run_that_is_stored_is_compared_and_fitted_to_and_guards_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let first = stored_run(dir.path(), "4k-rand-read");
    let [same, other] = ["4k-rand-read", "4k-rand-write"].map(|it| stored_run(dir.path(), it));
    let compare = |later: &str, limit: &str, more: &[&str]| {
        let args = ["compare", &first, later, "--fail-if", limit];
        floatgate_in(dir.path(), &[&args, more].concat())
    };
    let within = compare(&same, "p99>+10%", &[]);
    assert_eq!(within.status.code(), Some(0), "{within:?}");
    let beyond = compare(&same, "iops>-50%", &[]);
    assert_eq!(beyond.status.code(), Some(6), "{beyond:?}");
    assert!(stdout(&beyond).contains(" in the first run: +0.0 %, limit -50 %"), "{beyond:?}");
    let unlike = compare(&other, "iops<-5%", &["--json"]);
    assert_eq!(unlike.status.code(), Some(1), "{unlike:?}");
    assert!(stderr(&unlike).contains("no load has the figure"), "{unlike:?}");
    let alone = floatgate_in(dir.path(), &["compare", &first, "--fail-if", "p99>+10%"]);
    assert_eq!(alone.status.code(), Some(2), "{alone:?}");
    let duo = stdout(&floatgate(&["drives", "iodrive-duo", "--toml"]));
    fs::write(dir.path().join("duo.toml"), duo).unwrap();
    let fit = ["fit", "duo.toml", "--run", &first, "--free", "nand.t_read_us", "--search", "0"];
    let fitted = floatgate_in(dir.path(), &fit);
    assert_eq!(fitted.status.code(), Some(0), "{fitted:?}");
}

/// A load: its workload, threads and queue depth.
type LoadCase = (&'static str, u16, u16);

/// Length of a load, in protocol seconds: with few requests outstanding a rare stall of the host is
/// a large part of a short one.
fn length_s((_, threads, queue): LoadCase) -> u64 {
    if threads * queue <= 8 { 60 } else { 10 }
}

/// Summaries of loads on a drive, before each of which all of it was written once, in order.
fn load_summaries(dir: &Path, drive: &str, loads: &[LoadCase]) -> Vec<Value> {
    let mut protocol = String::from("schema = 1\nname = \"loads\"\ntitle = \"Loads\"\n");
    protocol.push_str("description = \"Loads of a full drive.\"\nsource = \"a test\"\n");
    for load @ (name, threads, queue) in loads {
        let suite = format!(
            "\n[[suites]]\nname = \"{name}-{threads}-{queue}\"\ntitle = \"{name}\"\n\
             fill = \"128k-seq-write\"\n\n[[suites.measure]]\nworkload = \"{name}\"\n\
             threads = [{threads}]\nqueue_per_thread = [{queue}]\nduration_s = {}\n\
             ramp_s = 0\ninterval_s = 1\n",
            length_s(*load)
        );
        protocol.push_str(&suite);
    }
    fs::write(dir.join("loads.toml"), protocol).expect("a new file");
    let review = ["review", drive, "--protocol", "loads.toml", "--format", "stock", "--json"];
    let output = floatgate_in(dir, &[&review[..], &["--repeat", "1"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let runs: Value = serde_json::from_slice(&output.stdout).expect("runs as JSON");
    let steps = runs[0]["steps"].as_array().expect("steps of the run");
    let measured = steps.iter().filter(|step| step["kind"] == "measure");
    measured.map(|step| step["summary"].clone()).collect()
}

/// The report that fio writes of reads and writes of 4 KiB on a drive.
fn fio_report(dir: &Path, drive: &str, loads: &[LoadCase]) -> Value {
    let job = |(load, summary): (&LoadCase, &Value)| {
        let direction = |name: &str| {
            let latency = &summary[name];
            let count = latency["count"].as_u64().expect("a count");
            // What did not occur is 0 there.
            let figure = |it: &str| match &latency[format!("latency_ns_{it}")] {
                Value::Null => json!(0),
                known => known.clone(),
            };
            let [min, max, mean, stddev] = ["min", "max", "avg", "stdev"].map(figure);
            let ns = json!({ "min": min, "max": max, "mean": mean, "stddev": stddev, "N": count });
            json!({
                "io_bytes": count * 4096, "total_ios": count, "runtime": length_s(*load) * 1000,
                "iops": summary[format!("iops_{name}")], "lat_ns": ns, "clat_ns": ns
            })
        };
        let &(name, threads, queue) = load;
        json!({
            "jobname": format!("{name}-{threads}"), "groupid": 0, "error": 0, "elapsed": 10,
            "job options": {
                "rw": if name.ends_with("read") { "randread" } else { "randwrite" }, "bs": "4k",
                "direct": "1", "ioengine": "io_uring", "numjobs": threads.to_string(),
                "iodepth": queue.to_string(), "norandommap": "1", "group_reporting": "1"
            },
            "read": direction("read"), "write": direction("write")
        })
    };
    let summaries = load_summaries(dir, drive, loads);
    let jobs: Vec<Value> = loads.iter().zip(&summaries).map(job).collect();
    json!({ "fio version": "fio-3.42", "timestamp_ms": 1, "jobs": jobs })
}

#[test]
fn the_path_of_the_guide_from_a_fio_report_to_a_twin_ends_within_five_percent() {
    const READ: &str = "4k-rand-read";
    const WRITE: &str = "4k-rand-write";
    let dir = tempfile::tempdir().unwrap();
    let loads = [(READ, 1, 1), (READ, 16, 16), (WRITE, 1, 1), (WRITE, 16, 16)];
    let report = fio_report(dir.path(), "iodrive-duo", &loads);
    fs::write(dir.path().join("output.json"), report.to_string()).unwrap();
    let mut drive = stdout(&floatgate(&["drives", "iodrive-duo", "--toml"]));
    for (known, guess) in [
        ("\nread_us = 9.6", "\nread_us = 14"),
        ("\nwrite_us = 6.9", "\nwrite_us = 11"),
        ("\nt_read_us = 50", "\nt_read_us = 80"),
    ] {
        assert!(drive.contains(known), "{known} is not there");
        drive = drive.replacen(known, guess, 1);
    }
    for (parameter, low, high) in
        [("controller.read_us", 4, 20), ("controller.write_us", 3, 14), ("nand.t_read_us", 25, 120)]
    {
        let free = format!("\n[[fit]]\nparameter = \"{parameter}\"\nlow = {low}\nhigh = {high}\n");
        drive.push_str(&free);
    }
    fs::write(dir.path().join("my-drive.toml"), drive).unwrap();
    let imported = ["runs", "import", "output.json", "--title", "Lab drive 7", "--json"];
    let imported = floatgate_in(dir.path(), &imported);
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    let imported: Value = serde_json::from_slice(&imported.stdout).expect("a run as JSON");
    let id = imported["id"].as_str().unwrap_or_else(|| panic!("{imported}"));
    let fitted = floatgate_in(dir.path(), &["fit", "my-drive.toml", "--run", id]);
    assert_eq!(fitted.status.code(), Some(0), "{fitted:?}");
    let said = [stdout(&fitted), stderr(&fitted)].concat();
    assert!(said.contains("written once, in order"), "{said}");
    let loads =
        [(READ, 2, 4), (READ, 4, 1), (READ, 8, 4), (WRITE, 2, 2), (WRITE, 4, 1), (WRITE, 8, 8)];
    let [known, twin] = ["iodrive-duo", "my-drive-fitted.toml"]
        .map(|drive| load_summaries(dir.path(), drive, &loads));
    for (load, (known, twin)) in loads.iter().zip(known.iter().zip(&twin)) {
        for figure in ["/iops", "/latency/latency_ns_avg"] {
            let of = |it: &Value| it.pointer(figure).and_then(Value::as_f64).expect("a figure");
            let error = of(twin) / of(known) - 1.0;
            assert!(error.abs() < 0.05, "{load:?} {figure}: {error}\n{said}");
        }
    }
}

#[test]
fn what_has_no_effect_or_no_place_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let sweep = ["sweep", "iodrive-duo", "--user-capacity", "400G,640G"];
    let review = ["review", "iodrive-duo", "--protocol", "quick", "--time-lapse", "100000"];
    let run_out = ["run", "--runtime", "1s", "--time-lapse", "100000", "--out", "runs"];
    for (args, expected) in [
        (&["run", "iodrive-duo", "4k-rand-read", "--speed", "2"][..], "--speed has no trace"),
        (&["run", "iodrive-duo", "4k-rand-read", "--wrap"], "--wrap has no trace"),
        (&["recover", "v", "--out", "x", "--force"], "--force has nothing to serve"),
        (&["runs", "--dir", "/nonexistent"], "there is no folder /nonexistent"),
        (&["run", "--queue", "-1"], "must be from 1 to 4096"),
        (&["run", "--seed", "-1"], "`-1` is out of range"),
        (&["run", "--rate", "-5k"], "invalid value '-5k' for '--rate <IOPS>': must be above zero"),
        (&["run", "--runtime", "-5s"], "must be above zero"),
        (&["run", "--bs", "-4k"], "must be above zero"),
        (&["run", "iodrive-duo", "--threads", "-1"], "must be from 1 to 1024"),
        (&["sweep", "iodrive-duo", "--threads", "0"], "threads is 0, not a whole number from 1"),
        (&["sweep", "iodrive-duo", "--threads", "-1,4"], "threads is -1, not a whole number from"),
        (&["sweep", "iodrive-duo", "--user-capacity", "-1G,4G"], "must be above zero"),
        (&[&sweep[..], &["--queue", "abc"]].concat(), "queue_per_thread over `abc`: `abc` is not"),
        (&[&sweep[..], &["--threads", "0"]].concat(), "not a whole number from 1 to 1024"),
        (&review, "hint: a time lapse of "),
        (&run_out, "hint: a time lapse of "),
    ] {
        let output = floatgate_in(dir.path(), args);
        let said = stderr(&output);
        assert!(output.status.code() == Some(2) && said.contains(expected), "{args:?}: {said}");
        assert_eq!(said.matches("error: ").count(), 1, "{args:?}: {said}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{args:?} left something");
    }
}

#[test]
fn only_a_closed_stdout_ends_a_command_early_and_well() {
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    let output = command.args(["drives"]).stdout(closed).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

#[test]
fn drives_are_listed_and_shown_with_the_mark_of_an_unvalidated_model() {
    let list = stdout(&floatgate(&["drives"]));
    let marked = |name: &str| {
        let line = list.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        line.contains(", unvalidated model")
    };
    assert!(marked("nytro-wlp4-200") && !marked("iodrive-duo"), "{list}");
    let detail = stdout(&floatgate(&["drives", "nytro-wlp4-200"]));
    assert!(detail.contains("nothing confirms its figures"), "{detail:.400}");
    assert!(!stdout(&floatgate(&["drives", "iodrive-duo"])).contains("nvalidated"));
    let json = stdout(&floatgate(&["drives", "nytro-wlp4-200", "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["validated"], false);
}

#[test]
fn every_command_has_a_json_form() {
    for args in [
        ["drives", "--json"].as_slice(),
        &["protocols", "--json"],
        &["protocols", "show", "quick", "--json"],
        &["drives", "iodrive-duo", "--json"],
        &["workloads", "--json"],
        &["workloads", "file-server", "--json"],
        &["plan", "iodrive-duo", "--json"],
        &["doctor", "--json"],
        &["runs", "--json"],
    ] {
        let text = stdout(&floatgate(args));
        serde_json::from_str::<Value>(&text).expect("JSON and nothing else");
    }
}

/// Reviews a small model by the quick protocol into `dir`. Returns what was printed.
fn quick_review(dir: &Path) -> String {
    let model = ["review", "iodrive-duo", "--protocol", "quick", "--time-lapse", "64"];
    let output = floatgate_in(dir, &[model.as_slice(), &["--jobs", "2", "--repeat", "1"]].concat());
    // 3: measured; the short preconditioning of `quick` has not written enough to be steady.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    stdout(&output)
}

#[test]
fn a_review_ends_with_its_path_and_leaves_the_runs_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let printed = quick_review(dir.path());
    let review = dir.path().join(printed.trim_end());
    assert!(fs::read_to_string(&review).unwrap().contains("ioDrive Duo"));
    let beside = fs::read_dir(dir.path().join("runs")).unwrap();
    let names = beside.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // Without their moments, which may be a second apart.
    let mut names: Vec<String> =
        names.map(|name| name.split_once("Z-").unwrap().1.to_owned()).collect();
    names.sort();
    assert_eq!(names, ["iodrive-duo-high-performance", "iodrive-duo-stock", "iodrive-duo.html"]);
}

#[test]
fn reviews_and_sweeps_of_quick_models_have_intervals_over_three_seeds() {
    let dir = tempfile::tempdir().unwrap();
    let said = |args: &[&str], more: &[&str]| -> Value {
        let output = floatgate_in(dir.path(), &[args, more, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_str(&stdout(&output)).unwrap()
    };
    let model = ["review", "iodrive-duo", "--format", "stock", "--time-lapse", "128"];
    let review = [&model[..], &["--protocol", "quick"]].concat();
    let (three, one) = (said(&review, &[]), said(&review, &["--repeat", "1"]));
    let figures = |runs: &Value| {
        assert_eq!(runs.as_array().unwrap().len(), 1, "one run, whatever its seeds");
        let steps = runs[0]["steps"].as_array().unwrap().iter();
        let steps = steps.filter(|it| it["kind"] == "measure");
        let of = |it: &Value| (it["spread"]["iops"]["kind"].clone(), it["summary"].clone());
        steps.map(of).collect::<Vec<_>>()
    };
    let (three, one) = (figures(&three), figures(&one));
    assert_eq!(three.len(), 12);
    for (three, one) in three.iter().zip(&one) {
        assert!(three.0 == "repeats" && one.0 != "repeats", "{three:?} {one:?}");
        assert_eq!(three.1, one.1, "the figures are those of the first seed");
    }
    let sweep = ["sweep", "p5800x", "--threads", "1,2", "--queue", "1", "--time-lapse", "8192"];
    assert_eq!(said(&sweep, &[])["repeat"], 3);
}

#[test]
fn all_hosts_of_a_model_are_reviewed_side_by_side_on_one_page() {
    let dir = tempfile::tempdir().unwrap();
    let model = ["review", "iodrive-duo", "--protocol", "quick", "--time-lapse", "128"];
    let all = ["--host", "all", "--format", "stock", "--repeat", "1"];
    let output = floatgate_in(dir.path(), &[model.as_slice(), &all].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    let page = fs::read_to_string(dir.path().join(stdout(&output).trim_end())).unwrap();
    assert!(page.contains("<h3>Differences between hosts</h3><p>Rates of linux and windows are"));
    let listed = stdout(&floatgate_in(dir.path(), &["runs"]));
    assert!(listed.contains("iodrive-duo-stock-windows"), "{listed}");

    let (status, said) = refused(&["review", "./disk.img", "--host", "all"]);
    assert_eq!(status, Some(2));
    assert!(said.starts_with("error: ./disk.img is a real drive: it has one host"), "{said}");
    let (status, said) = refused(&["run", "iodrive-duo", "--host", "all"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("`floatgate review` takes all"), "{said}");
}

#[test]
fn repeats_differ_in_their_seed_and_their_ratios_have_a_confidence() {
    let dir = tempfile::tempdir().unwrap();
    let model = ["review", "iodrive-duo", "--protocol", "quick", "--time-lapse", "128"];
    let output = floatgate_in(dir.path(), &[model.as_slice(), &["--repeat", "3"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    let page = fs::read_to_string(dir.path().join(stdout(&output).trim_end())).unwrap();
    assert!(page.contains("Against Fusion-io ioDrive Duo 640 GB (MLC) stock, 3 runs"));
    assert_eq!(page.matches("<span class=\"interval\">(").count(), 6, "two ratios a workload");
    let listed = stdout(&floatgate_in(dir.path(), &["runs"]));
    assert_eq!(listed.lines().count(), 7, "{listed}");
}

#[test]
fn runs_are_compared_by_the_beginnings_of_their_names() {
    let dir = tempfile::tempdir().unwrap();
    quick_review(dir.path());
    let run = fs::read_dir(dir.path().join("runs")).unwrap();
    let mut names: Vec<String> =
        run.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with("html"));
    let cut = |name: &str| name[..name.len() - 3].to_owned();
    let output =
        floatgate_in(dir.path(), &["compare", &cut(&names[0]), &cut(&names[1]), "--out", "x.html"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stdout(&output), "x.html\n");
    assert!(dir.path().join("x.html").is_file());
    let priced = |drive: &str| {
        let price = format!("{drive}=12800USD@2010");
        let more = ["--price", &price, "--one-page", "--out", "y.html"];
        floatgate_in(dir.path(), &[&["compare", &names[0]], more.as_slice()].concat())
    };
    assert!(stderr(&priced("px600-2600")).contains("no run is of this drive"));
    let output = priced("iodrive-duo");
    assert_eq!(stdout(&output), "y.html\ny-one-page.html\n", "{output:?}");
    assert!(
        fs::read_to_string(dir.path().join("y.html"))
            .unwrap()
            .contains("12,800 USD (2010, as stated)")
    );
    assert!(dir.path().join("y-one-page.html").is_file());

    let resumed = floatgate_in(dir.path(), &["review", "--resume", &names[0]]);
    assert_eq!(resumed.status.code(), Some(2));
    assert!(stderr(&resumed).contains("it is finished"), "{resumed:?}");
}

#[test]
fn an_atlas_has_every_run_and_drive_and_takes_prices_of_one_currency() {
    let dir = tempfile::tempdir().unwrap();
    quick_review(dir.path());
    let atlas = |more: &[&str]| floatgate_in(dir.path(), &[&["atlas"], more].concat());
    let made = atlas(&["--price", "iodrive-duo=12800USD@2010-01"]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    assert_eq!(stdout(&made), "atlas/index.html\n");
    let page = fs::read_to_string(dir.path().join("atlas/index.html")).unwrap();
    let drives = stdout(&floatgate(&["drives"])).lines().count();
    let rows = page.matches("<th scope=\"row\">").count();
    assert_eq!(rows, drives + 1, "the Duo has a row for each of its formats");
    assert!(page.contains("<td data-value=\"20\">20</td>"), "USD for each GB of the Duo");
    let reviews = fs::read_dir(dir.path().join("atlas/reviews")).unwrap();
    let reviews: Vec<_> = reviews.map(|it| it.unwrap().file_name()).collect();
    assert_eq!(reviews.len(), 1, "one page for both formats: {reviews:?}");
    let address = format!("href=\"reviews/{}\"", reviews[0].display());
    assert_eq!(page.matches(&address).count(), 2);

    assert!(stderr(&atlas(&[])).contains("atlas is there already"));
    for (more, expected) in [
        (&["--out", "b", "--price", "nothing=1USD@2020"][..], "--price nothing: neither"),
        (
            &["--out", "b", "--price", "p5510=1USD@2020", "--price", "p5800x=1EUR@2020"],
            "--price p5800x: EUR is not USD",
        ),
        (&["--out", "b", "--price", "p5510=1"], "is no price with its date"),
        (&["--out", "b", "--price", "p5510=1USD@2020", "--price", "p5510=2USD@2020"], "two prices"),
        (&["--out", "b", "--dir", "nowhere"], "there is no folder nowhere"),
    ] {
        let output = atlas(more);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {output:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        assert!(!dir.path().join("b").exists(), "nothing is left");
    }
}

#[test]
fn runs_are_listed_shown_and_deleted_only_when_that_is_meant() {
    let dir = tempfile::tempdir().unwrap();
    quick_review(dir.path());
    fs::create_dir(dir.path().join("runs/broken")).unwrap();
    fs::write(dir.path().join("runs/broken/run.json"), "{\"schema\": 99}").unwrap();
    let listed = stdout(&floatgate_in(dir.path(), &["runs"]));
    let rows: Vec<&str> = listed.lines().collect();
    assert_eq!(rows.len(), 4, "a head, two formats and the broken one: {listed}");
    let said = "iodrive-duo high-performance  quick     18/18";
    let row = rows.iter().find(|row| row.contains(said)).unwrap_or_else(|| panic!("{listed}"));
    assert!(rows[3].contains("run.json has schema version 99"), "{listed}");

    let name = row.split_whitespace().next().unwrap();
    let shown = stdout(&floatgate_in(dir.path(), &["runs", "show", name]));
    assert!(shown.contains("4k/precondition") && shown.contains("warning: whole run: "), "{shown}");

    let exported = floatgate_in(dir.path(), &["runs", "export", name, "--out", "data"]);
    assert_eq!(stdout(&exported), "data/charts.csv\ndata/charts.parquet\n", "{exported:?}");
    let csv = fs::read_to_string(dir.path().join("data/charts.csv")).unwrap();
    assert!(csv.starts_with("chart,title,series,x_name,y_name,label,x,y,share\r\n"), "{csv:.200}");
    let of_iops = "4k-time-iops,Throughput,high-performance,\"protocol time, s\",";
    assert!(csv.contains(&format!("{of_iops}\"Throughput, IOPS\",,1,")), "{csv:.200}");
    assert!(fs::read(dir.path().join("data/charts.parquet")).unwrap().starts_with(b"PAR1"));

    let kept = floatgate_in(dir.path(), &["runs", "delete", name]);
    assert_eq!(kept.status.code(), Some(1));
    assert!(stderr(&kept).contains("hint: add --yes"), "{kept:?}");
    let pages = || {
        let files = fs::read_dir(dir.path().join("runs")).unwrap().map(|it| it.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|it| it == "html")).count()
    };
    let gone = floatgate_in(dir.path(), &["runs", "delete", name, "--yes"]);
    assert_eq!(pages(), 1, "it still shows the other format");
    assert!(stdout(&gone).starts_with(&format!("deleted {name}, ")), "{gone:?}");
    let left = stdout(&floatgate_in(dir.path(), &["runs", "list", "--json"]));
    assert_eq!(left.matches("\"name\"").count(), 2, "{left}");
    let other = rows.iter().find(|row| row.contains("iodrive-duo stock")).unwrap();
    let other = other.split_whitespace().next().unwrap();
    let gone = floatgate_in(dir.path(), &["runs", "delete", other, "--yes", "--json"]);
    let gone: Value = serde_json::from_slice(&gone.stdout).expect("JSON and nothing else");
    assert!(gone[0]["id"] == other && gone[0]["size_bytes"].as_u64() > Some(1000), "{gone}");
    assert_eq!(pages(), 0, "nothing that it shows is there any more");
    let outside = floatgate_in(dir.path(), &["runs", "delete", ".", "--yes"]);
    assert_eq!(outside.status.code(), Some(2), "{outside:?}");
}

#[test]
fn a_comparison_with_a_run_of_another_schema_is_one_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    quick_review(dir.path());
    let runs = fs::read_dir(dir.path().join("runs")).unwrap();
    let mut folders = runs.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let (good, other) = (folders.next().unwrap(), folders.next().unwrap());
    let result = fs::read_to_string(other.join("run.json")).unwrap();
    assert!(result.contains("\"schema\": 1,"), "{result:.100}");
    let newer = result.replacen("\"schema\": 1,", "\"schema\": 2,", 1);
    fs::write(other.join("run.json"), newer).unwrap();
    let both = [good.to_str().unwrap(), other.to_str().unwrap()];
    let output = floatgate_in(dir.path(), &["compare", both[0], both[1]]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.starts_with(&format!("error: reading the run in {}", both[1])), "{said}");
    assert!(said.contains("schema version 2"), "{said}");
    assert_eq!(said.lines().count(), 2, "the error and its hint: {said}");
}

#[test]
fn an_unreadable_result_is_one_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("broken")).unwrap();
    fs::write(dir.path().join("broken/run.json"), "{\"schema\": 99}").unwrap();
    let output = floatgate_in(dir.path(), &["compare", "broken"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.starts_with("error: reading the run in broken: run.json has schema"), "{said}");
    assert_eq!(said.lines().count(), 2, "the error and its hint: {said}");
}

#[test]
fn an_output_that_cannot_be_written_is_one_clear_error_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let output = floatgate_in(dir.path(), &["review", "iodrive-duo", "--out", "file"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: writing file"), "{output:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_target_that_is_refused_leaves_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let output = floatgate_in(dir.path(), &["review", "/dev/null", "--protocol", "quick"]);
    assert_ne!(output.status.code(), Some(0));
    let left = fs::read_dir(dir.path().join("runs")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "{output:?}");
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(stdout(&floatgate(&["completions", shell])).contains("floatgate"));
    }
}

#[test]
fn a_plan_states_what_its_fills_write_and_how_long_it_may_take() {
    let dir = tempfile::tempdir().unwrap();
    fs::File::create(dir.path().join("disk.img")).unwrap().set_len(64_000_000).unwrap();
    let said = stdout(&floatgate_in(dir.path(), &["plan", "./disk.img", "--protocol", "quick"]));
    let expected = "7.00 min of load, plus 2 fills of 64 MB (128 MB written), for each target";
    assert!(said.contains(expected), "{said}");
    let one = ["plan", "iodrive-duo", "--format", "stock", "--protocol", "quick"];
    let said = stdout(&floatgate(&one));
    assert!(said.contains("plus 2 fills of 640 GB (1.28 TB written),"), "{said}");
    let large = stdout(&floatgate(&["plan", "solidigm-d5-p5336-61440"]));
    assert!(large.contains(" h, 240 h at most, until steady"), "{large}");
}

#[test]
fn the_plan_of_a_review_names_every_step() {
    insta::assert_snapshot!(stdout(&floatgate(&["plan", "iodrive-duo", "--protocol", "quick"])));
}

#[test]
fn the_help_is_as_it_was_agreed() {
    let mut commands = vec![String::new()];
    for group in ["", "volume", "trace"] {
        let listed = listed(group).into_iter();
        commands.extend(listed.map(|name| format!("{group} {name}").trim_start().to_owned()));
    }
    assert!(commands.len() > 40, "{commands:?}");
    for command in commands {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let name = format!("help {command}").trim_end().replace(' ', "-");
        let help = stdout(&floatgate(&args));
        let long = help.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{command}: over 80 columns");
        insta::assert_snapshot!(name, help);
    }
}

/// Commands that the help of a command lists.
fn listed(command: &str) -> Vec<String> {
    let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
    let help = stdout(&floatgate(&args));
    let listed = help.lines().take_while(|line| *line != "Options:");
    let is_command = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let named = listed.filter(is_command).filter_map(|line| line.split_whitespace().next());
    named.filter(|it| *it != "help").map(str::to_owned).collect()
}

#[test]
fn commands_of_earlier_versions_are_hidden_and_work() {
    for (former, now) in [("status", "volume status"), ("record", "trace record")] {
        let help = |command: &str| {
            let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
            stdout(&floatgate(&args))
        };
        let usage = |text: &str| {
            let line = text.lines().find(|line| line.starts_with("Usage: "));
            line.expect("each help has it").rsplit(&format!("floatgate {former}")).count()
        };
        assert_eq!(usage(&help(former)), 2);
        assert_eq!(help(now).lines().next(), help(former).lines().next());
        assert!(!listed("").contains(&former.to_owned()), "{former} is hidden");
    }
}

#[test]
fn numbers_and_addresses_are_refused_in_words_of_no_programming_language() {
    for (args, expected) in [
        (&["run", "--threads", "x"][..], "'--threads <THREADS>': `x` is not a whole number"),
        (&["run", "--threads", "0"], "must be from 1 to 1024"),
        (&["run", "--seed", "1.5"], "`1.5` is not a whole number"),
        (&["validate", "--jobs", "0"], "must be from 1 to 4096"),
        (&["replay", "a.rec", "p5800x", "--copies", "0"], "must be from 1 to 4294967295"),
        (&["fail-die", "v", "x"], "`x` is not a whole number"),
        (&["dashboard", "--http", "8480"], "`8480` is not an IP address and a port, such as"),
        (&["serve", "v", "--nvme", "unix:a"], "use tcp:PORT, tcp:HOST:PORT or fd:N"),
        (&["serve", "v", "--format", "stock"], "--timing <TIMING>"),
    ] {
        let (status, said) = refused(args);
        assert!(status == Some(2) && said.contains(expected), "{args:?}: {said}");
    }
}

#[test]
fn a_replay_on_a_real_drive_refuses_options_of_models() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("disk.img"), vec![0; 1 << 20]).unwrap();
    for option in [&["--state", "filled"][..], &["--compressible", "50"], &["--full-scale"]] {
        let args = [&["replay", "a.rec", "./disk.img", "--destroy"], option].concat();
        let said = stderr(&floatgate_in(dir.path(), &args));
        let expected = format!("{} applies to models, and every drive is real", option[0]);
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn a_key_of_another_type_is_refused_in_words_of_toml() {
    let dir = tempfile::tempdir().unwrap();
    let shown = floatgate(&["drives", "iodrive-duo", "--toml"]);
    let text = stdout(&shown).replacen("year = ", "year = false # ", 1);
    fs::write(dir.path().join("mine.toml"), text).unwrap();
    let said = stderr(&floatgate_in(dir.path(), &["plan", "mine.toml"]));
    assert!(
        said.contains("boolean `false`, expected a whole number from 0 to 4294967295"),
        "{said}"
    );
}

#[test]
fn a_time_lapse_that_leaves_too_little_is_refused_with_the_largest_that_leaves_enough() {
    let run = |lapse: &str| {
        floatgate(&["run", "--repeat", "1", "--runtime", "1s", "--time-lapse", lapse])
    };
    let refused = run("100000");
    assert_eq!(refused.status.code(), Some(2));
    let said = stderr(&refused);
    let (_, largest) = said.rsplit_once("hint: a time lapse of ").unwrap();
    let largest = largest.trim().strip_suffix(" leaves enough").unwrap();
    assert!(run(largest).status.success(), "{said}");
    let larger = largest.parse::<u32>().unwrap() + 1;
    assert_eq!(run(&larger.to_string()).status.code(), Some(2), "{said}");
}

#[test]
fn a_volume_that_cannot_be_or_is_none_is_wrong_input_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("d9.img"), "").unwrap();
    let create =
        |more: &[&'static str]| [&["create", "v", "--dies", "d0.img,d1.img"], more].concat();
    for (args, expected) in [
        (create(&["--size", "1k"]), "creating v: a size of 1000 bytes is not a multiple of 4096"),
        (vec!["resize", "v", "--size", "5000b"], "5000 bytes, must be a multiple of 4096"),
        (
            vec!["format", "v", "--capacity", "stok"],
            "`stok` is not a capacity: give `stock`, `high-performance` or a size such as 48g",
        ),
        (create(&["--size", "64m", "--protect", "7+1"]), "--protect 7+1 needs 8 dies"),
        (create(&["--size", "64m", "--export", "a=1g"]), "creating v: "),
        (vec!["scrub", "v"], "finding v: v is not the folder of a volume: there is no such folder"),
        (vec!["inject", "v", "fill"], "hint: check the spelling of v; if it was a volume, write "),
        (vec!["purge", "v"], "hint: check the spelling of v; if it was a volume, write "),
        (vec!["recover", "v"], "hint: check the spelling of v; if it was a volume, write "),
        (
            vec!["check", "v"],
            "hint: check the spelling of v; `floatgate volume create v --dies PATH --size",
        ),
        (
            vec!["top", "d9.img"],
            "finding d9.img: d9.img is not the folder of a volume: it is not a folder",
        ),
        (vec!["locate", "d9.img", "on"], "hint: name the folder of the volume; d9.img may be one"),
        (vec!["status", "."], ". is not the folder of a volume: it has no volume.toml"),
    ] {
        let output = floatgate_in(dir.path(), &args);
        let said = stderr(&output);
        assert!(output.status.code() == Some(2) && said.contains(expected), "{args:?}: {said}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only what was there");
}
