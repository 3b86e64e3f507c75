"""A drive takes requests of the caller's own, column by column, and says when they complete."""

import copy
import pickle
import time

import numpy as np
import pandas
import polars
import pyarrow
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
    found = drive.run(times, ops, lbas, sectors)
    done = np.asarray(found.completed_ns)
    assert found.request.tolist() == list(range(5000)) and not any(found.status)
    assert (np.asarray(found.submitted_ns) == times).all()
    assert done.shape == (5000,) and done.dtype == np.uint64
    assert (done > times.astype(np.uint64)).all()
    after = drive.counters()
    assert after["host_sent_bytes"] - before["host_sent_bytes"] == 5000 * 4096
    assert drive.outstanding == 0 and drive.now_ns >= int(done.max())


def test_steps_say_the_same_as_one_run(filled):
    columns = requests(filled, 2000, fg.READ)
    whole = np.asarray(filled.copy().run(*columns).completed_ns)
    drive, done = filled.copy(), np.zeros(2000, np.uint64)
    for begin in range(0, 2000, 7):
        part = drive.submit(*(column[begin : begin + 7] for column in columns))
        done[np.asarray(part.request)] = np.asarray(part.completed_ns)
    rest = drive.advance()
    done[np.asarray(rest.request)] = np.asarray(rest.completed_ns)
    assert not np.asarray(rest.status).any()
    assert (done == whole).all()


def test_completions_are_sent_between_processes(filled):
    drive = filled.copy()
    found = drive.run(*requests(drive, 10, fg.WRITE))
    again = pickle.loads(pickle.dumps(found))
    assert again == found and again.request.format == "Q"
    drive.submit(*requests(drive, 1, fg.READ))
    one = drive.next_completion()
    other = pickle.loads(pickle.dumps(one))
    assert all(getattr(other, name) == getattr(one, name) for name in (
        "request", "thread", "submitted_ns", "completed_ns", "status", "latency_ns"))


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
    assert plain == typed and len(plain.request) == 2
    for library in (pandas.Series, polars.Series, pyarrow.array):
        columns = (library(values) for values in ([at, at], [1, 3], [8, 0], [8, 0]))
        assert filled.copy().run(*columns) == plain, library


def test_a_copy_goes_its_own_way(filled):
    branch = copy.deepcopy(filled)
    before = filled.counters()
    branch.run(*requests(branch, 100, fg.WRITE))
    assert filled.counters() == before != branch.counters()
    first, second = filled.copy(), filled.copy()
    columns = requests(filled, 500, fg.WRITE)
    assert first.run(*columns) == second.run(*columns)


def test_beyond_the_drive_is_a_status(filled):
    drive = filled.copy()
    drive.submit([drive.now_ns], [fg.READ], [drive.sectors], [8])
    done = drive.advance()
    assert fg.STATUSES[done.status[0]] == "out-of-range"


def test_a_request_that_fails_is_raised_unless_statuses_are_asked_for(filled):
    now, end = filled.now_ns, filled.sectors
    columns = ([now] * 3, [fg.READ, fg.WRITE, fg.READ], [0, end, 8], [8, 8, 8])
    drive = filled.copy()
    with pytest.raises(fg.Error) as raised:
        drive.run(*columns)
    for part in ("request 1,", f"sectors {end} up to {end + 8}", "out-of-range",
                 f"the drive has {end} sectors"):
        assert part in raised.value.text
    assert "errors=" in raised.value.remedy and drive.outstanding == 0
    done = filled.copy().run(*columns, errors="return")
    assert [fg.STATUSES[it] for it in done.status] == ["ok", "out-of-range", "ok"]
    with pytest.raises(fg.Error, match="errors is 'ignore'"):
        drive.run(*columns, errors="ignore")
    with pytest.raises(fg.Error, match="out-of-range"):
        drive.closed_loop(([fg.WRITE], [end], [8]), threads=1, queue=1)
    assert len(drive.closed_loop(([fg.WRITE], [end], [8]), errors="return").status) == 1


def test_time_advances_to_what_was_asked_for_and_no_completion_lies_beyond(filled):
    columns = requests(filled, 300, fg.READ, gap_ns=100)
    expected = filled.copy().run(*columns)
    completed = sorted(expected.completed_ns)
    drive = filled.copy()
    seen = list(drive.submit(*columns).completed_ns)
    for until in completed[::7]:
        done = drive.advance(until)
        seen += done.completed_ns
        assert drive.now_ns == until and all(at <= until for at in done.completed_ns)
        assert len(seen) == sum(at <= until for at in completed), until
        assert drive.outstanding == 300 - len(seen)
    assert seen + list(drive.advance().completed_ns) == completed


def test_completions_come_one_by_one_with_numbers_that_never_start_over(filled):
    drive = filled.copy()
    columns = requests(drive, 50, fg.READ, gap_ns=10)
    expected = filled.copy().run(*columns)
    drive.run(*requests(filled, 3, fg.TRIM))
    first = drive.submitted
    assert first == 3
    times = columns[0] - columns[0][0] + drive.now_ns
    drive.submit(times, *columns[1:])
    found = []
    while (done := drive.next_completion()) is not None:
        assert drive.now_ns == done.completed_ns == done.submitted_ns + done.latency_ns
        found.append(done)
    assert sorted(done.request for done in found) == list(range(3, 53))
    assert [done.completed_ns for done in found] == sorted(done.completed_ns for done in found)
    assert len(expected.request) == len(found) and drive.outstanding == 0


def test_a_loop_of_next_completion_loses_no_completion(filled):
    drive = filled.copy()
    rng = np.random.default_rng(5)

    def read():
        at = drive.now_ns
        return drive.submit([at], [fg.READ], [int(rng.integers(drive.sectors // 8)) * 8], [8])

    for _ in range(16):
        read()
    for _ in range(500):
        assert drive.next_completion() is not None
        assert not read().request, "what completes at the same time is left"
        assert drive.outstanding == 16


def test_closed_loops_by_a_callback_by_columns_and_in_one_go_are_the_same(filled):
    rng = np.random.default_rng(7)
    count = 3000
    ops = rng.integers(0, 2, count).astype(np.uint8)
    lbas = rng.integers(0, filled.sectors // 8, count) * 8
    sizes = np.full(count, 8)
    load = {"threads": 4, "queue": 8}
    whole = filled.copy().closed_loop((ops, lbas, sizes), **load)
    assert len(whole.request) == count and not any(whole.status)
    assert list(whole.completed_ns) == sorted(whole.completed_ns)
    # Thirty-two at first, and each of the others at the completion of an earlier one.
    at_begin = sum(at == filled.now_ns for at in whole.submitted_ns)
    assert at_begin == 32
    assert set(whole.submitted_ns) - {filled.now_ns} <= set(whole.completed_ns)

    followed, drawn = [], iter(zip(ops.tolist(), lbas.tolist(), sizes.tolist()))

    def next_request(thread, done):
        followed.append(done)
        assert 0 <= thread < 4 and (done is None or done.thread == thread)
        return next(drawn, None)

    assert filled.copy().closed_loop(next_request, **load) == whole
    assert followed.count(None) == 32 and len(followed) == count + 32

    asked = []

    def next_requests(done):
        begin = 1000 * len(asked)
        asked.append(len(done.request))
        if begin == count:
            return None
        return tuple(column[begin : begin + 1000] for column in (ops, lbas, sizes))

    assert filled.copy().closed_loop(next_requests, columns=True, **load) == whole
    assert asked[0] == 0 and asked[1] == 1000 - 32 + 1
    limited = filled.copy().closed_loop((ops, lbas, sizes), requests=100, **load)
    assert len(limited.request) == 100
    until = filled.now_ns + 2_000_000
    timed = filled.copy().closed_loop((ops, lbas, sizes), until_ns=until, **load)
    assert 32 < len(timed.request) < count and max(timed.submitted_ns) < until


def test_a_callback_that_fails_ends_the_loop_and_leaves_nothing_outstanding(filled):
    drive = filled.copy()

    def broken(thread, done):
        if done is not None:
            raise ValueError("no more")
        return fg.READ, 0, 8

    with pytest.raises(ValueError, match="no more"):
        drive.closed_loop(broken)
    assert drive.outstanding == 0 and drive.submitted == 256
    for given in ((9, 0, 8), (fg.READ, 0, 0), "read", (fg.READ, -1, 8)):
        with pytest.raises(fg.Error, match="the callback returned"):
            drive.closed_loop(lambda thread, done, given=given: given)
    with pytest.raises(fg.Error, match="threads is 0"):
        drive.closed_loop(broken, threads=0)


def test_a_burst_at_one_time_leaves_the_drive_on(duo):
    drive = fg.Simulator(duo, time_lapse=LAPSE)
    count = drive.sectors // 64
    lbas = np.arange(count) * 64
    for _ in range(2):
        times = np.full(count, drive.now_ns)
        drive.run(times, np.full(count, fg.WRITE), lbas, np.full(count, 64))


def test_what_no_drive_takes_is_refused_and_changes_nothing(filled):
    drive = filled.copy()
    now = drive.now_ns
    for columns, said in [
        (([now, now], [0], [0], [8]), "columns of one length"),
        (([now], [4], [0], [8]), "op of request 0 is 4"),
        (([now - 1], [0], [0], [8]), "time never goes back"),
        (([now + 2, now + 1], [0, 0], [0, 0], [8, 8]), "sort requests by time"),
        (([now], [0], [0], [0]), "request 0 has 0 sectors"),
        (([now], [0], [-1], [8]), "lbas are not a column"),
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
    with pytest.raises(fg.Error, match="until_ns is 576460752303423488"):
        drive.advance(2**59)
    drive.submit([now], [0], [0], [8])
    with pytest.raises(fg.Error, match="1 requests are outstanding"):
        drive.run([now], [0], [0], [8])
    with pytest.raises(fg.Error, match="1 requests are outstanding"):
        drive.fill()


def test_columns_are_fast_enough_also_unoptimised(filled):
    drive = filled.copy()
    columns = requests(drive, 200_000, fg.WRITE)
    began = time.perf_counter()
    drive.run(*columns)
    # Far below the million a second of a release build: a machine that tests is busy.
    assert 200_000 / (time.perf_counter() - began) > 50_000


def test_completions_come_in_their_order_and_one_by_one_as_together(duo):
    one, many = (fg.Simulator(duo, time_lapse=LAPSE) for _ in range(2))
    count = 20_000
    burst = ([0] * count, [fg.WRITE] * count, [8 * index for index in range(count)], [8] * count)
    one.submit(*burst)
    many.submit(*burst)
    done = many.advance()
    assert list(done.completed_ns) == sorted(done.completed_ns)
    assert [one.next_completion().request for _ in range(count)] == list(done.request)
    assert one.next_completion() is None
    seen = []

    def batches(fresh):
        assert list(fresh.completed_ns) == sorted(fresh.completed_ns)
        seen.append(len(fresh.request))
        return ([fg.READ] * 500, range(0, 4000, 8), [8] * 500) if len(seen) < 5 else None

    assert len(one.closed_loop(batches, columns=True).request) == 2000 and len(seen) == 5
    with pytest.raises(fg.Error, match="a closed loop until 0 ns, after"):
        one.closed_loop(batches, columns=True, until_ns=0)


def test_a_callback_that_asks_its_own_simulator_is_told(duo):
    drive = fg.Simulator(duo, time_lapse=LAPSE)
    drive.fill()
    asked = []

    def next_request(thread, done):
        with pytest.raises(fg.Error, match="the simulator is at work"):
            drive.now_ns
        asked.append(drive.sectors)
        return (fg.READ, 0, 8) if len(asked) < 3 else None

    assert len(drive.closed_loop(next_request, threads=1, queue=1).request) == 2
