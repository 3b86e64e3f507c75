"""Fits find numbers again, name those left open, and are the same on any executor."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import LAPSE

import floatgate as fg

#: A load that the controller decides.
LOAD = {"threads": 8, "queue": 4}
FREE = {"controller.read_us": (4.0, 20.0), "controller.relocate_us": (10.0, 40.0)}


@pytest.fixture(scope="module")
def small(duo):
    """The drive in a time lapse that takes no time, which is its own."""
    return duo.set("time_lapse", LAPSE)


@pytest.fixture(scope="module")
def measured(small):
    """A run of it."""
    return fg.run(small, "4k-rand-read", **LOAD)


@pytest.fixture(scope="module")
def fit(small, measured):
    """A fit of a drive that is off, to that run."""
    return fg.fit(small.set("controller.read_us", 7.0), run=measured, free=FREE, search=0)


def test_a_number_is_found_again_from_a_run(small, fit):
    found = {it["path"]: it for it in fit.parameters}
    assert found["controller.read_us"]["value"] == pytest.approx(9.6, rel=0.1)
    assert fit.undetermined == ["controller.relocate_us"]
    assert found["controller.relocate_us"]["value"] == found["controller.relocate_us"]["start"]
    assert fit.is_verified and fit.contradictions == []
    assert "derived: read_us" in fit.drive.toml() and fit.drive.name == small.name
    shown = fit._repr_html_()
    assert "undetermined" in shown and "controller.read_us" in shown
    assert copy.deepcopy(fit) == fit


def test_many_drives_are_fitted_by_an_executor_and_kept(small, measured, fit, tmp_path):
    starts = [small.set("controller.read_us", read_us) for read_us in (7.0, 14.0)]
    question = {"run": measured, "free": FREE, "search": 0, "out": tmp_path}
    with ThreadPoolExecutor(2) as executor:
        fits = fg.fit(starts, executor=executor, **question)
        assert fits[0] == fit
    assert len(list(tmp_path.iterdir())) == 2

    class UnusedExecutor:
        def submit(self, function, /, *args):
            raise AssertionError("everything was kept")

    assert fg.fit(starts, executor=UnusedExecutor(), **question) == fits
    assert fg.fit(starts, jobs=1, **question) == fits


def test_figures_are_rows_and_a_table(duo, tmp_path):
    rows = fg.figures(duo)
    assert {row["device"] for row in rows} == {"Fusion-io ioDrive Duo MLC"}
    assert rows[0]["metric"] and rows[0]["id"]
    for given, said in [
        ([{**rows[0], "metirc": "iops"}], "unknown columns: metirc"),
        (tmp_path / "nothing.csv", "reading .*nothing.csv"),
        ([{**rows[0], "metric": "iopses"}], "no metric with its unit is called `iopses`"),
        ([{**rows[0], "device": "another"}], "no figure of"),
    ]:
        with pytest.raises(fg.Error, match=said):
            fg.fit(duo, given, free=["controller.read_us"])


def test_questions_without_an_answer_are_refused(duo, measured):
    with pytest.raises(fg.Error, match="figures and a run are given"):
        fg.fit(duo, fg.figures(duo), run=measured)
    with pytest.raises(fg.Error, match="free is 'controller.read_us'"):
        fg.fit(duo, run=measured, free="controller.read_us")
    with pytest.raises(fg.Error, match="controller.raed_us") as raised:
        fg.fit(duo, run=measured, free=["controller.raed_us"])
    assert "controller.read_us" in raised.value.remedy
