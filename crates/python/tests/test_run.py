"""Runs are those of the command, to the byte; tables are read through Arrow."""

import json
import signal
import threading
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from conftest import LAPSE

import floatgate as fg


def text(value):
    """A value as JSON, with its members in the order of their names: as the command prints it."""
    return json.dumps(value, sort_keys=True)


def test_a_run_has_the_bytes_of_the_command(duo, floatgate):
    options = "--threads 8 --queue 4 --runtime 60s --precondition 1h --seed 7 --repeat 2".split()
    printed = floatgate("run", "iodrive-duo", "8k-70-30", *options, "--time-lapse", LAPSE, "--json")
    load = {"threads": 8, "queue": 4, "runtime": "60s", "precondition": "1h", "seed": 7,
            "repeat": 2}
    run = fg.run(duo, "8k-70-30", time_lapse=LAPSE, **load)
    theirs = json.loads(printed)
    for name in ("target", "environment"):
        assert text(run.values[name]) == text(theirs[name]), name
    assert text(run.step("run/measure")) == text(theirs["step"])
    assert text(run.step("run/precondition")) == text(theirs["precondition"])
    assert run.step("run/measure")["spread"]["iops"] != fg.run(
        duo, "8k-70-30", time_lapse=LAPSE, **{**load, "repeat": 1}
    ).step("run/measure")["spread"]["iops"]
    assert run.values["seed"] == theirs["seed"] == 7
    assert run.values["model_version"] == theirs["model_version"] == fg.MODEL_VERSION
    assert run.iops == theirs["step"]["summary"]["iops"] > 0


def test_the_same_run_twice_is_the_same_and_another_seed_is_not(duo):
    first = fg.run(duo, time_lapse=LAPSE)
    assert fg.run(duo, time_lapse=LAPSE).to_json() == first.to_json()
    assert fg.run(duo, time_lapse=LAPSE, seed=2) != first
    assert first.write_amplification >= 1


def test_a_preconditioning_is_told_by_its_last_rounds(duo):
    run = fg.run(duo, precondition="3h", runtime="60s", time_lapse=LAPSE)
    step = run.step("run/precondition")
    page = run._repr_html_()
    assert "run/precondition, last five rounds" in page
    assert step["settled"]["iops"] < step["summary"]["iops"]
    assert "IOPS" not in repr(run), "two loads have two rates"
    assert "IOPS" in repr(fg.run(duo, runtime="60s", time_lapse=LAPSE))


def test_less_user_capacity_writes_less(duo):
    load = {"precondition": "1h", "time_lapse": LAPSE}
    full, spare = fg.run(duo, **load), fg.run(duo.set("user_capacity", "480G"), **load)
    assert spare.write_amplification < full.write_amplification
    assert spare.iops > full.iops


def test_options_change_what_they_say(duo):
    slow = fg.run(duo, rate=1000, time_lapse=LAPSE)
    assert slow.iops == pytest.approx(1000, rel=0.05)
    large = fg.run(duo, bs="64k", time_lapse=LAPSE).summary
    assert large["throughput_write_mb_s"] == pytest.approx(large["iops"] * 65536 / 1e6)


def test_tables_are_read_through_arrow(duo):
    run = fg.run(duo, "8k-70-30", time_lapse=LAPSE)
    samples = pyarrow.table(run.samples())
    assert samples.num_rows == len(run.samples()) == 60
    assert samples["iops"].to_pylist() == run.samples().to_dict()["iops"]
    latencies = pyarrow.table(run.latencies()).to_pylist()
    reads = sum(row["count"] for row in latencies if row["op"] == "read")
    assert reads == run.summary["read"]["count"] > 0
    # A second stream of the same table is whole again.
    table = run.samples()
    assert pyarrow.table(table).equals(pyarrow.table(table))


def test_arguments_that_no_load_has_are_refused(duo):
    for wrong, said in [
        ({"threads": 70000}, "threads is 70000, must be from 1 to 1024"),
        ({"runtime": "60"}, "runtime is '60'"),
        ({"runtime": 0}, "runtime is 0"),
        ({"compressible": 101}, "compressible is 101"),
        ({"rate": -1}, "rate is -1"),
        ({"bs": 1000}, "transfers of 1000 bytes"),
        ({"format": "turbo"}, "has no format `turbo`"),
        ({"time_lapse": 100000}, "time lapse"),
        ({"threads": 0}, "threads is 0, must be from 1 to 1024"),
        ({"threads": "16"}, "threads is '16', must be a whole number"),
        ({"queue": 1.5}, "queue is 1.5, must be a whole number"),
        ({"seed": -1}, "seed is -1"),
        ({"rate": "fast"}, "rate is 'fast', must be a number"),
        ({"format": 3}, "format is 3, must be the name of a format"),
        ({"progress": 3}, "progress is 3"),
    ]:
        with pytest.raises(fg.Error, match=said):
            fg.run(duo, **wrong)
    with pytest.raises(fg.Error, match="unknown workload") as raised:
        fg.run(duo, "4k-rand-wirte")
    assert "4k-rand-write" in raised.value.remedy


def test_progress_is_told_to_the_thread_that_called(duo):
    events = []
    fg.run(duo, precondition="1h", time_lapse=LAPSE,
           progress=lambda event: events.append((threading.get_ident(), event)))
    assert {thread for thread, _ in events} == {threading.get_ident()}
    shares = [event["done"] for _, event in events]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert {"run/precondition", "run/measure"} <= {event["step"] for _, event in events}


def test_what_a_callback_raises_ends_the_run(duo):
    def fail(event):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        fg.run(duo, precondition="24h", time_lapse=16, progress=fail)


def test_ctrl_c_ends_a_run_and_other_threads_go_on(duo):
    counted = [0]
    # A shell ignores it for what it starts in the background, and Python keeps to that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press():
        # The interpreter is free while the drive is simulated: this thread counts.
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            counted[0] += 1
        signal.raise_signal(signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            fg.run(duo, runtime="240h", time_lapse=1)
    finally:
        presser.join()
        signal.signal(signal.SIGINT, before)
    assert counted[0] > 10_000
    assert time.monotonic() - began < 30


def test_a_review_makes_run_folders_that_open(duo, tmp_path):
    changed = duo.set("user_capacity", "600G")
    review = fg.review(changed, "quick", out=tmp_path, format="stock", time_lapse=LAPSE)
    assert review.path.parent == tmp_path and "<html" in review.html()
    folder = tmp_path / review.runs[0].values["id"]
    opened = fg.Run.open(folder)
    assert opened.to_json() == review.runs[0].to_json() == (folder / "run.json").read_text()
    kept = pyarrow.parquet.read_table(folder / "samples.parquet")
    assert kept.equals(pyarrow.table(opened.samples()))
    saved = [fg.Drive.load(path) for path in tmp_path.glob("iodrive-duo-*.toml")]
    assert saved == [changed]
    with pytest.raises(fg.Error, match="no run"):
        fg.Run.open(tmp_path / "nothing")


def test_a_fio_report_is_imported_as_by_the_command(tmp_path, floatgate):
    report = Path(__file__).parents[2] / "lab/src/fio_report/tests/json-plus.json"
    run = fg.import_run(report, title="Lab drive 7", out=tmp_path / "mine")
    printed = floatgate("runs", "import", report, "--title", "Lab drive 7", "--dir",
                        tmp_path / "theirs", "--json")
    theirs = json.loads(printed)
    assert run.steps == theirs["steps"] and run.values["target"] == theirs["target"]
    (stored,) = fg.runs(tmp_path / "mine")
    assert fg.Run.open(stored["path"]) == run and stored["kind"] != "model"
    with pytest.raises(fg.Error, match="absent.json"):
        fg.import_run("absent.json", out=tmp_path)
