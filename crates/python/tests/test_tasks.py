"""Tasks are batched, stored as they arrive, not repeated, and refused by other models."""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import floatgate as fg
from floatgate import _tasks


def named(*arguments):
    """A task that takes no time."""
    return ".".join(map(str, arguments))


def test_workers_of_another_model_version_refuse():
    with pytest.raises(fg.Error, match="this process 0") as raised:
        fg.carry_out(0, named, [(1,)])
    assert "same version" in raised.value.remedy


def test_short_tasks_go_together_and_long_ones_alone():
    batches = _tasks._Batches(range(1000), None)
    assert batches.next(4) == [0]
    batches.learn(1, 1 / 64)
    assert batches.next(4) == list(range(1, 129))
    batches.learn(128, 2.0)
    # The last ones are shared out, down to batches of a second.
    sizes = []
    while batch := batches.next(4):
        sizes.append(len(batch))
    assert sum(sizes) == 1000 - 129 and sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 128 and sizes[-2] == 64
    slow = _tasks._Batches(range(10), None)
    slow.next(2)
    slow.learn(1, 30.0)
    assert slow.next(2) == [1]
    assert _tasks._Batches(range(10), 3).next(2) == [0, 1, 2]


def test_results_come_in_order_whatever_order_tasks_end_in():
    def late(index):
        time.sleep(0.02 * (index == 0))
        return str(index)

    with ThreadPoolExecutor(3) as executor:
        tasks = [(index,) for index in range(20)]
        assert _tasks.gather(late, tasks, executor=executor, batch=1) == [str(i) for i in range(20)]


def test_no_more_is_under_way_than_keeps_workers_busy():
    lock, waiting, most = threading.Lock(), [0], [0]

    class Counting(ThreadPoolExecutor):
        def submit(self, function, /, *args):
            with lock:
                waiting[0] += 1
                most[0] = max(most)
                most.append(waiting[0])
            future = super().submit(function, *args)
            future.add_done_callback(lambda _: waiting.__setitem__(0, waiting[0] - 1))
            return future

    with Counting(2) as executor:
        _tasks.gather(named, [(i,) for i in range(50)], executor=executor, batch=1)
    assert max(most) <= 4


def test_a_failure_comes_after_what_was_done_and_ends_the_rest():
    def fails(index):
        if index == 2:
            raise ValueError("no such drive")
        return str(index)

    taken = {}
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(ValueError, match="no such drive"):
            tasks = {index: (index,) for index in range(100)}
            _tasks.scatter(fails, tasks, taken.__setitem__, executor=executor, batch=1)
    assert taken[0] == "0" and taken[1] == "1" and len(taken) < 10


def test_an_executor_that_broke_has_a_remedy():
    class Broken:
        def submit(self, function, /, *args):
            from concurrent.futures.process import BrokenProcessPool

            failed = Future()
            failed.set_exception(BrokenProcessPool("a worker was killed"))
            return failed

    with pytest.raises(fg.Error, match="the executor broke") as raised:
        _tasks.gather(named, [(1,)], executor=Broken())
    assert "stored" in raised.value.remedy
    with pytest.raises(fg.Error, match="no method submit"):
        _tasks.gather(named, [(1,)], executor="ray")
    with pytest.raises(fg.Error, match="batch is 0"):
        _tasks.gather(named, [(1,)], executor=Broken(), batch=0)


def test_a_stored_result_is_found_by_its_texts_alone(tmp_path):
    store = _tasks.ResultStore(tmp_path)
    store.keep(named, ("a", b"b", 1), "result")
    assert store.find(named, ("a", b"b", 2)) == "result"
    assert store.find(named, ("ab", b"", 1)) is None
    assert store.find(fg.carry_out, ("a", b"b", 1)) is None
