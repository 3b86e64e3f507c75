"""Searches hold their limits, and find the same drive whatever measures it."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import LAPSE

import floatgate as fg

SPACE = {"user_capacity": ("440G", "640G", 20)}
LOAD = {"threads": 1, "queue": 1, "time_lapse": LAPSE, "trials": 8,
        "at_most": {"write_amplification": 1.9}}


@pytest.fixture(scope="module")
def optuna():
    return pytest.importorskip("optuna", minversion="5")


@pytest.fixture(scope="module")
def found(optuna, duo, tmp_path_factory):
    out = tmp_path_factory.mktemp("found")
    return fg.search(duo, SPACE, maximize="user_capacity_gb", out=out, **LOAD), out


def test_the_largest_drive_that_holds_a_limit_is_found(found):
    search, _ = found
    assert len(search.trials) == 8
    assert search.best.figures["write_amplification"] <= 1.9
    larger = [it for it in search.trials if it.values["user_capacity_gb"] > search.best.value]
    assert larger and not any(it.holds for it in larger)
    capacity = search.best.values["user_capacity_gb"]
    assert f"user_gb = {capacity}" in search.drive.toml()
    assert search.rows()[0]["holds"] in (True, False)
    assert "write_amplification" in search.rows()[0] and "goal" in search._repr_html_()


def test_a_drive_that_was_not_in_steady_state_holds_no_limit(found):
    trial = found[0].best
    assert trial.holds and trial.figures["steady"]
    burst = dataclasses.replace(trial, figures={**trial.figures, "steady": False})
    assert not burst.holds
    search = fg.Search([burst], -1, None)
    with pytest.raises(fg.Error, match="meets every limit in steady state"):
        search.best


def test_it_is_the_same_again_and_kept(found, duo):
    search, out = found

    class UnusedExecutor:
        def submit(self, function, /, *args):
            raise AssertionError("everything was kept")

    executor = UnusedExecutor()
    again = fg.search(duo, SPACE, maximize="user_capacity_gb", out=out, executor=executor, **LOAD)
    assert again.rows() == search.rows()


def test_many_workers_find_the_same_wherever_they_are(found, duo):
    _, out = found
    here = fg.search(duo, SPACE, maximize="user_capacity_gb", out=out, workers=3, **LOAD)
    with ThreadPoolExecutor(1) as executor:
        there = fg.search(duo, SPACE, maximize="user_capacity_gb", out=out, workers=3,
                          executor=executor, **LOAD)
    assert there.rows() == here.rows()


def test_a_drive_that_cannot_be_misses_and_a_price_is_a_goal(optuna, duo):
    space = {"user_capacity": [480, 5000]}
    price = {"iodrive-duo": 2.0}
    search = fg.search(duo, space, minimize=lambda trial: price[trial.drive.name], threads=1,
                       queue=1, time_lapse=LAPSE, trials=4)
    reasons = [trial.reason for trial in search.trials if not trial.holds]
    assert all(reasons) and search.best.value == 2.0
    assert search.best.values == {"user_capacity_gb": 480}


def test_questions_without_an_answer_are_refused(optuna, duo):
    for wrong, said in [
        ({"minimize": "iops", "maximize": "iops"}, "exactly one goal"),
        ({"minimize": "iops", "trials": 0}, "trials is 0"),
        ({"minimize": "iopses", "trials": 1}, "no figure is called 'iopses'"),
    ]:
        options = {"threads": 1, "queue": 1, "time_lapse": LAPSE, **wrong}
        with pytest.raises(fg.Error, match=said):
            fg.search(duo, {"user_capacity": [480]}, **options)
    with pytest.raises(fg.Error, match="nothing to search"):
        fg.search(duo, {}, minimize="iops")
    with pytest.raises(fg.Error, match="the lower bound comes first"):
        fg.search(duo, {"user_capacity": (640, 480)}, minimize="iops", trials=1)
