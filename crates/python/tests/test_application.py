"""Replays and predictions are those of the command."""

import json

import pytest

import floatgate as fg

RECORDING = "applications/recordings/sysbench-oltp-t4.rec"


def test_a_replay_has_the_figures_of_the_command(duo, floatgate, root):
    printed = json.loads(floatgate("replay", root / RECORDING, "iodrive-duo", "--json"))[0]
    replayed = fg.replay(root / RECORDING, duo)
    theirs = {name: printed[name] for name in replayed["replayed"]}
    assert replayed["replayed"] == theirs
    assert replayed["drive"] == printed["drive"]


def test_an_application_is_predicted_from_what_is_built_in(duo, root):
    assert fg.app("sysbench-oltp", duo, 4) == fg.replay(root / RECORDING, duo)
    folder = (root / RECORDING).parent
    assert fg.app("sysbench-oltp", duo, 4, recordings=folder) == fg.app("sysbench-oltp", duo, 4)
    with pytest.raises(fg.Error, match="no recording of sysbench-oltp with 3 threads"):
        fg.app("sysbench-oltp", duo, 3)


def test_a_result_is_stored_for_one_drive_as_for_several(duo, tmp_path):
    one = fg.app("sysbench-oltp", duo, 4, out=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1

    class UnusedExecutor:
        def submit(self, function, /, *args):
            raise AssertionError("everything was stored")

    assert fg.app("sysbench-oltp", [duo], 4, out=tmp_path, executor=UnusedExecutor()) == [one]


def test_a_slower_drive_makes_a_slower_application(duo):
    slow = duo.set("controller.relocate_us", 20).set("nand.t_read_us", 5000)
    fast, slow = fg.app("sysbench-oltp", duo, 4), fg.app("sysbench-oltp", slow, 4)
    assert slow["replayed"]["replayed_s"] > fast["replayed"]["replayed_s"]


def test_what_is_no_recording_is_refused(duo, tmp_path):
    with pytest.raises(fg.Error, match="opening"):
        fg.replay(tmp_path / "nothing.rec", duo)
    (tmp_path / "text.rec").write_text("no recording")
    with pytest.raises(fg.Error, match="reading") as raised:
        fg.replay(tmp_path / "text.rec", duo)
    assert "floatgate trace record" in raised.value.remedy
    with pytest.raises(fg.Error, match="speed of the host is 0"):
        fg.app("sysbench-oltp", duo, 4, host_speed=0)
