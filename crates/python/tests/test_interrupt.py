"""Ctrl-C ends any work soon, and what was done by then is kept."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import LAPSE

import floatgate as fg

#: Seconds from the signal to the end: ten times what is promised, since a machine that tests is
#: busy, and a fraction of what each piece of work takes.
END_S = 10.0


def signalled(work, after_s=None):
    """Carries out ``work``, which is passed a function that sends the signal; returns its result,
    and the seconds from the signal to the end."""
    sent = []

    def send(*_):
        if not sent:
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    if after_s is not None:
        threading.Timer(after_s, send).start()
    try:
        result = work(send)
    except KeyboardInterrupt:
        result = None
    assert sent, "the work was over before the signal"
    return result, time.monotonic() - sent[0]


def test_a_run_of_a_simulator_ends_and_its_completions_remain(duo):
    drive = fg.Simulator(duo, time_lapse=LAPSE)
    rng = np.random.default_rng(1)
    count = 5_000_000
    columns = (np.arange(count) * 10_000, np.full(count, fg.WRITE),
               rng.integers(0, drive.sectors // 8, count) * 8, np.full(count, 8))
    result, spent_s = signalled(lambda _: drive.run(*columns), 0.5)
    assert result is None and spent_s < END_S
    # On a busy machine the signal may come before the first request.
    assert drive.submitted < count
    assert len(drive.advance().request) == drive.submitted
    result, spent_s = signalled(lambda _: drive.closed_loop(columns[1:]), 0.5)
    assert result is None and spent_s < END_S and drive.outstanding == 0


def test_a_fit_returns_the_best_so_far(duo):
    small = duo.set("time_lapse", LAPSE)
    measured = fg.run(small, "4k-rand-write", threads=8, queue=4, precondition="1h")

    def work(send):
        searched = lambda event: send() if event["step"] == "search" else None  # noqa: E731
        return fg.fit(small.set("controller.write_us", 4.0), run=measured, progress=searched,
                      free=["controller.write_us", "controller.relocate_us"], search=10**6)

    fit, spent_s = signalled(work)
    assert spent_s < END_S
    assert fit.interrupted and not fit.is_verified
    assert "interrupted" in fit.to_json() and fit.drive.name == small.name


def test_a_review_goes_on_where_it_was_ended(duo, tmp_path):
    given = {"format": "stock", "time_lapse": LAPSE // 2, "jobs": 1}
    whole = fg.review(duo, "quick", out=tmp_path / "whole", **given)

    def work(send):
        finished = lambda event: send() if event["step_finished"] else None  # noqa: E731
        return fg.review(duo, "quick", out=tmp_path / "cut", progress=finished, **given)

    result, spent_s = signalled(work)
    assert result is None and spent_s < END_S
    [cut] = fg.runs(tmp_path / "cut")
    done = len(fg.Run.open(cut["path"]).steps)
    assert 0 < done < len(whole.runs[0].steps)
    again = fg.review(resume=cut["id"], out=tmp_path / "cut")
    assert again.runs[0].steps == whole.runs[0].steps
    with pytest.raises(fg.Error, match="drive beside resume"):
        fg.review(duo, resume=cut["id"])


@pytest.mark.parametrize("ways", [{"jobs": 2}, {"executor": True}])
def test_a_sweep_keeps_its_finished_points(duo, tmp_path, ways):
    def work(send):
        def finished(event):
            if list(tmp_path.glob("*/points/*")):
                send()

        with ThreadPoolExecutor(2) as executor:
            given = {"executor": executor} if "executor" in ways else ways
            return fg.sweep(duo, {"threads": list(range(1, 65))}, queue=1, time_lapse=LAPSE,
                            out=tmp_path, progress=finished, **given)

    result, spent_s = signalled(work)
    assert result is None and spent_s < END_S
    kept = len(list(tmp_path.glob("*/points/*")))
    assert 1 <= kept < 64


def test_a_search_on_threads_ends(duo):
    pytest.importorskip("optuna")

    def work(send):
        return fg.search(duo, {"user_capacity": ("440G", "640G", 20)}, workers=2, trials=1000,
                         maximize="iops", threads=2, queue=1, time_lapse=LAPSE, progress=send)

    result, spent_s = signalled(work)
    assert result is None and spent_s < END_S
