"""Drives are values: changed copies, equality, pickles, files, and errors with remedies."""

import copy
import pickle

import numpy as np
import pytest

import floatgate as fg


def test_the_catalogue_is_that_of_the_command(floatgate):
    listed = [line.split()[0] for line in floatgate("drives").splitlines()]
    assert fg.drives() == listed
    assert "enterprise" in fg.protocols() and "4k-rand-write" in fg.workloads()


def test_a_drive_is_the_text_of_its_file(duo, floatgate):
    assert duo.toml().rstrip("\n") == floatgate("drives", "iodrive-duo", "--toml").rstrip("\n")
    assert duo.formats == ["stock", "high-performance"]
    assert duo.name == "iodrive-duo" and duo.raw_capacity_gb > 800


def test_setting_a_number_returns_another_drive(duo):
    other = duo.set("nand.t_erase_us", 2000)
    assert duo == fg.Drive.load("iodrive-duo") and other != duo
    assert hash(duo) == hash(fg.Drive.load("iodrive-duo"))
    assert other.set("nand.t_erase_us", np.int64(3000)) == duo


def test_published_rates_do_not_confirm_a_changed_drive(duo):
    assert duo.is_validated and not duo.set("nand.t_erase_us", 2000).is_validated
    assert duo.set("title", "Mine").is_validated


@pytest.mark.parametrize("value", ["480G", "480GB", 480, "0.48T", np.float64(480.0)])
def test_capacities_are_numbers_of_gb_or_texts(duo, value):
    changed = duo.set("ftl.user_capacity", value).toml()
    assert "\nuser_gb = 480\n" in changed or "\nuser_gb = 480.0\n" in changed
    assert duo.set("user_capacity", value, format="high-performance").toml().count("user_gb = 640")


def test_drives_survive_pickles_copies_and_files(duo, tmp_path):
    drive = duo.set("user_capacity", "480G")
    assert pickle.loads(pickle.dumps(drive)) == drive
    assert copy.deepcopy(drive) == drive
    assert fg.Drive.load(drive.save(tmp_path / "mine.toml")) == drive


def test_errors_have_a_remedy_and_survive_pickles(duo):
    with pytest.raises(fg.Error, match="has no `nand.t_raed_us`") as raised:
        duo.set("nand.t_raed_us", 3)
    assert raised.value.remedy == "did you mean `nand.t_read_us`?"
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.text, again.remedy) == (raised.value.text, raised.value.remedy)
    with pytest.raises(fg.Error) as raised:
        fg.Drive.load("iodrive-dou")
    assert raised.value.remedy == "did you mean `iodrive-duo`?"


def test_remedies_are_those_of_the_package(duo, tmp_path, monkeypatch):
    # Where there are no runs: the remedy names the newest one otherwise.
    monkeypatch.chdir(tmp_path)
    for call, remedy in [
        (lambda: fg.Drive.load("nothing-like-it"), "`floatgate.drives()` lists all"),
        (lambda: fg.run(duo, "nothing-like-it"), "`floatgate.workloads()` lists all"),
        (lambda: fg.plan(duo, "nothing-like-it"), "`floatgate.protocols()` lists all"),
        (lambda: fg.Run.open(tmp_path / "none"), "`floatgate.review(drive)` makes one"),
    ]:
        with pytest.raises(fg.Error) as raised:
            call()
        assert remedy in raised.value.remedy


def test_names_in_place_of_drives_are_refused_wherever_a_drive_is_taken():
    for call in [fg.run, fg.review, fg.plan, fg.figures, fg.fit, fg.validate, fg.Simulator,
                 lambda name: fg.sweep(name, {"threads": [1]}),
                 lambda name: fg.search(name, {"threads": [1, 2]}, maximize="iops"),
                 lambda name: fg.app("sysbench-oltp", name, 4)]:
        with pytest.raises(fg.Error, match="is no Drive") as raised:
            call("iodrive-duo")
        assert raised.value.remedy == "pass Drive.load('iodrive-duo')"


def test_what_makes_no_drive_is_refused(duo):
    with pytest.raises(fg.Error, match="setting nand.t_read_us"):
        duo.set("nand.t_read_us", -1)
    with pytest.raises(fg.Error, match="no number, text or truth value"):
        duo.set("nand.t_read_us", [1, 2])
    with pytest.raises(fg.Error, match="user_capacity is '480'"):
        duo.set("user_capacity", "480")
    with pytest.raises(fg.Error, match="reading a drive"):
        fg.Drive("name = 3")


def test_a_notebook_shows_the_sheet(duo):
    shown = duo._repr_html_()
    assert shown.count("<tr>") == len(duo.sheet) > 10
    assert duo.title in shown
