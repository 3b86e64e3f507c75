"""A drive takes requests of the caller's own, column by column, and says when they complete."""

import copy
import time

import numpy as np
import pytest
from conftest import LAPSE

import floatgate as fg


@pytest.fixture(scope="module")
def filled(duo):
    simulator = fg.Simulator(duo, time_lapse=LAPSE)
    simulator.fill()
    return simulator


def requests(simulator, count, op, gap_ns=20_000, seed=1):
    rng = np.random.default_rng(seed)
    times = simulator.now_ns + np.arange(count) * gap_ns
    lbas = rng.integers(0, simulator.sectors // 8, count) * 8
    return times, np.full(count, op), lbas, np.full(count, 8)


def test_completions_come_after_their_requests_and_add_up(filled):
    drive = filled.copy()
    times, ops, lbas, sectors = requests(drive, 5000, fg.WRITE)
    before = drive.counters()
    done = np.asarray(drive.run(times, ops, lbas, sectors))
    assert done.shape == (5000,) and done.dtype == np.uint64
    assert (done > times.astype(np.uint64)).all()
    after = drive.counters()
    assert after["host_sent_bytes"] - before["host_sent_bytes"] == 5000 * 4096
    assert drive.outstanding == 0 and drive.now_ns >= int(done.max())


def test_steps_say_the_same_as_one_run(filled):
    columns = requests(filled, 2000, fg.READ)
    whole = np.asarray(filled.copy().run(*columns))
    drive, done = filled.copy(), np.zeros(2000, np.uint64)
    for begin in range(0, 2000, 7):
        part = drive.submit(*(column[begin : begin + 7] for column in columns))
        done[np.asarray(part.request)] = np.asarray(part.completed_ns)
    rest = drive.advance()
    done[np.asarray(rest.request)] = np.asarray(rest.completed_ns)
    assert not np.asarray(rest.status).any()
    assert (done == whole).all()


def test_a_closed_loop_in_python_waits_for_completions(filled):
    drive, latencies = filled.copy(), []
    rng = np.random.default_rng(3)
    for _ in range(200):
        issued = drive.now_ns
        drive.submit([issued], [fg.READ], [int(rng.integers(drive.sectors // 8)) * 8], [8])
        done = drive.advance()
        latencies.append(done.completed_ns[0] - issued)
    assert drive.counters()["host_read_bytes"] - filled.counters()["host_read_bytes"] == 200 * 4096
    assert 50_000 < np.mean(latencies) < 1_000_000


def test_lists_and_arrays_of_any_whole_type_are_columns(filled):
    at = filled.now_ns + 1000
    plain = filled.copy().run([at, at], [fg.WRITE, fg.FLUSH], [8, 0], [8, 0])
    typed = filled.copy().run(np.array([at, at], np.int64), np.array([1, 3], np.uint8),
                              np.array([8, 0], np.uint32), np.array([8, 0], np.int16))
    assert plain.tolist() == typed.tolist() and len(plain) == 2


def test_a_copy_goes_its_own_way(filled):
    branch = copy.deepcopy(filled)
    before = filled.counters()
    branch.run(*requests(branch, 100, fg.WRITE))
    assert filled.counters() == before != branch.counters()
    first, second = filled.copy(), filled.copy()
    columns = requests(filled, 500, fg.WRITE)
    assert first.run(*columns).tolist() == second.run(*columns).tolist()


def test_beyond_the_drive_is_a_status(filled):
    drive = filled.copy()
    drive.submit([drive.now_ns], [fg.READ], [drive.sectors], [8])
    done = drive.advance()
    assert fg.STATUSES[done.status[0]] == "out-of-range"


def test_what_no_drive_takes_is_refused_and_changes_nothing(filled):
    drive = filled.copy()
    now = drive.now_ns
    for columns, said in [
        (([now, now], [0], [0], [8]), "columns of one length"),
        (([now], [4], [0], [8]), "op of request 0 is 4"),
        (([now - 1], [0], [0], [8]), "time never goes back"),
        (([now + 2, now + 1], [0, 0], [0, 0], [8, 8]), "sort requests by time"),
        (([now], [0], [0], [0]), "request 0 has 0 sectors"),
        (([now], [0], [-1], [8]), "lbas is not a column"),
        ((np.array([1.5]), [0], [0], [8]), "times have the type float64"),
        (([now], [0], np.array([-1]), [8]), "lbas range from -1"),
        (([now], np.array([256]), [0], [8]), "ops range from 256"),
    ]:
        with pytest.raises(fg.Error, match=said):
            drive.submit(*columns)
    assert drive.outstanding == 0 and drive.now_ns == now
    with pytest.raises(fg.Error, match="thread is 1024"):
        drive.submit([now], [0], [0], [8], thread=1024)
    with pytest.raises(fg.Error, match="time never goes back"):
        drive.advance(now - 1)
    # The end of such a request would be no time any more.
    with pytest.raises(fg.Error, match="request 0 is at 18446744073709551615 ns"):
        drive.submit([2**64 - 1], [1], [0], [8])
    with pytest.raises(fg.Error, match="until_ns is 9223372036854775808"):
        drive.advance(2**63)
    drive.submit([now], [0], [0], [8])
    with pytest.raises(fg.Error, match="1 requests are outstanding"):
        drive.run([now], [0], [0], [8])
    with pytest.raises(fg.Error, match="1 requests outstanding"):
        drive.fill()


def test_columns_are_fast_enough_also_unoptimised(filled):
    drive = filled.copy()
    columns = requests(drive, 200_000, fg.WRITE)
    began = time.perf_counter()
    drive.run(*columns)
    # Far below the million a second of a release build: a machine that tests is busy.
    assert 200_000 / (time.perf_counter() - began) > 50_000
