"""Tasks on an executor: sent in batches, with results stored as they arrive.

A task is a function of this package that turns its arguments into a text, and depends on nothing
else. Short tasks are sent in batches, so that the overhead of the executor remains small.

    arguments ─► batches ─► executor ─► results ─► take, as they arrive
                    ▲                       │
                    └── seconds a task took ┘
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
import time
import uuid
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

from . import _core
from ._error import Error
from ._executor import STORED, Executor, executor_of, places
from ._progress import Progress

#: A function that returns a text for its arguments.
Function = Callable[..., str]
#: Arguments of one task.
Arguments = tuple[Any, ...]

#: Intended seconds of a batch, and the minimum near the end, where batches become smaller so that
#: every worker has one.
_BATCH_S = 2.0
_BATCH_MIN_S = 1.0
#: Seconds between two queries of the number of workers: clusters grow and shrink.
_COUNT_S = 5.0
#: Seconds that cancelled tasks may take to end before their results are given up.
_CANCEL_S = 0.5


class _CancelledError(Exception):
    """The scope of a task was cancelled."""


#: Scopes whose tasks are to end early, and the scope of the task of each thread.
_cancelled: set[str] = set()
_place = threading.local()


def check() -> None:
    """Raises if the task of this thread was cancelled. Compiled code calls it while it works."""
    if _cancelled and getattr(_place, "scope", "") in _cancelled:
        raise _CancelledError


def cancel(scope: str) -> None:
    """Ends the running tasks of a scope on threads of this process."""
    _cancelled.add(scope)


def carry_out(model_version: int, function: Function, share: Sequence[Arguments],
              scope: str = "") -> tuple[list[str], float]:
    """Runs a batch of tasks on a worker. Returns the results, and the seconds that they took;
    after ``cancel`` of their scope only the results of the finished ones.

    Raises ``Error`` if the worker has another version of the models.
    """
    if model_version != _core.MODEL_VERSION:
        raise Error(
            f"a worker has model version {_core.MODEL_VERSION}, this process {model_version}",
            "install the same version of floatgate on every worker",
        )
    began = time.perf_counter()
    results: list[str] = []
    _place.scope = scope
    try:
        for arguments in share:
            check()
            results.append(function(*arguments))
    except _CancelledError:
        pass
    finally:
        _place.scope = ""
    return results, time.perf_counter() - began


class _Batches:
    """Divides tasks into batches that take about two seconds each."""

    def __init__(self, tasks: Sequence[int], fixed: Optional[int]) -> None:
        self._left = list(reversed(tasks))
        self._fixed = fixed
        self._done = 0
        self._spent_s = 0.0

    def learn(self, count: int, spent_s: float) -> None:
        """Records the time that tasks took."""
        self._done += count
        self._spent_s += spent_s

    def next(self, workers: int) -> list[int]:
        """Returns the next batch; it is empty if no task is left."""
        size = self._fixed or self._size(workers)
        batch = self._left[-size:][::-1]
        del self._left[-size:]
        return batch

    def _size(self, workers: int) -> int:
        if not self._done:
            return 1
        mean_s = max(self._spent_s / self._done, 1e-6)
        share = max(math.ceil(len(self._left) / workers), math.ceil(_BATCH_MIN_S / mean_s))
        return min(math.ceil(_BATCH_S / mean_s), share)


class _Workers:
    """The workers of an executor, and the number of batches that they get in advance."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.count = places(executor)
        self._counted_at = time.monotonic()

    def limit(self) -> int:
        """Returns the most batches in progress: two per worker, so that no worker has to wait."""
        if time.monotonic() - self._counted_at > _COUNT_S:
            self.count = places(self.executor)
            self._counted_at = time.monotonic()
        return 2 * self.count

    def failure(self, failure: BaseException) -> BaseException:
        """Returns the failure as an error of this package where possible."""
        if isinstance(failure, BrokenExecutor):
            return Error(f"the executor broke: {failure}", f"{STORED}, with a new executor")
        translate = getattr(self.executor, "failure", None)
        return translate(failure) if translate else failure

    def cancel(self, tasks: Sequence[Future[Any]]) -> None:
        """Cancels the tasks in progress."""
        for task in tasks:
            task.cancel()
            if hasattr(self.executor, "cancel"):
                self.executor.cancel(task)


def scatter(
    function: Function,
    tasks: dict[int, Arguments],
    take: Callable[[int, str], None],
    *,
    executor: Any,
    batch: Optional[int] = None,
) -> None:
    """Runs tasks on an executor, and passes each result to ``take`` as it arrives.

    If a task fails, finished results are passed to ``take`` before the failure is raised.
    """
    if batch is not None and batch < 1:
        raise Error(f"batch is {batch}, must be 1 or more")
    workers, batches = _Workers(executor_of(executor)), _Batches(list(tasks), batch)
    under_way: dict[Future[Any], list[int]] = {}
    scope = uuid.uuid4().hex
    failures: list[BaseException] = []

    def finish(task: Future[Any]) -> None:
        share = under_way.pop(task)
        failure = task.exception()
        if failure is not None:
            failures.append(failure)
            return
        results, spent_s = task.result()
        batches.learn(len(share), spent_s)
        for index, result in zip(share, results):
            take(index, result)

    try:
        share = batches.next(workers.count)
        while (share or under_way) and not failures:
            while share and len(under_way) < workers.limit() and not failures:
                arguments = [tasks[index] for index in share]
                task = workers.executor.submit(carry_out, _core.MODEL_VERSION, function,
                                               arguments, scope)
                under_way[task] = share
                # An executor may run a task inside submit(): store results before the next one.
                if task.done():
                    finish(task)
                share = batches.next(workers.count)
            if under_way and not failures:
                for task in wait(under_way, return_when=FIRST_COMPLETED).done:
                    finish(task)
        if failures:
            raise workers.failure(failures[0])
    except BaseException:
        cancel(scope)
        workers.cancel(list(under_way))
        # What is finished by now is passed on too.
        for task in wait(under_way, timeout=_CANCEL_S).done:
            if not task.cancelled() and task.exception() is None:
                finish(task)
        raise


# Raised where results of tasks change and models do not: 2, replays tell timers apart.
_RULES_VERSION = 2


class ResultStore:
    """A folder with a file for the result of each task, named by a digest of the task.

    Texts and bytes among the arguments define the task. Other arguments, such as a number of
    threads, do not change its result.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def _path(self, function: Function, arguments: Arguments) -> Path:
        versions = f"{_core.MODEL_VERSION}.{_RULES_VERSION}"
        digest = hashlib.sha256(f"{versions} {function.__name__}".encode())
        for argument in arguments:
            if isinstance(argument, (str, bytes)):
                raw = argument.encode() if isinstance(argument, str) else argument
                digest.update(b" %d " % len(raw) + raw)
        return self.folder / f"{function.__name__}-{digest.hexdigest()[:24]}.json"

    def find(self, function: Function, arguments: Arguments) -> str | None:
        """Returns the stored result of a task, if there is one."""
        path = self._path(function, arguments)
        return path.read_text(encoding="utf-8") if path.is_file() else None

    def keep(self, function: Function, arguments: Arguments, result: str) -> None:
        """Stores a result atomically."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(function, arguments)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(result, encoding="utf-8")
        os.replace(part, path)


def collect(
    function: Function,
    tasks: Sequence[Arguments],
    *,
    executor: Any,
    finished: Mapping[int, str],
    keep: Optional[Callable[[int, str], None]],
    noun: str = "task",
    batch: Optional[int] = None,
    progress: Optional[Progress] = None,
) -> list[str]:
    """Returns the results of tasks in order. Tasks in ``finished`` are not run, and ``keep`` stores
    each result of the others as it arrives."""
    results = dict(finished)
    clock = Clock(len(tasks), len(results))

    def take(index: int, result: str) -> None:
        if keep:
            keep(index, result)
        results[index] = result
        if progress:
            progress(clock.event(len(results), noun))

    left = {index: arguments for index, arguments in enumerate(tasks) if index not in results}
    scatter(function, left, take, executor=executor, batch=batch)
    return [results[index] for index in range(len(tasks))]


def gather(
    function: Function,
    tasks: Sequence[Arguments],
    *,
    executor: Any,
    batch: Optional[int] = None,
    out: str | os.PathLike[str] | None = None,
    progress: Optional[Progress] = None,
) -> list[str]:
    """Returns the results of tasks in order. Results in the folder ``out`` are reused."""
    ways: dict[str, Any] = {"executor": executor, "batch": batch, "progress": progress}
    if out is None:
        return collect(function, tasks, finished={}, keep=None, **ways)
    store = ResultStore(out)
    found = {index: store.find(function, arguments) for index, arguments in enumerate(tasks)}
    finished = {index: result for index, result in found.items() if result is not None}

    def keep(index: int, result: str) -> None:
        store.keep(function, tasks[index], result)

    return collect(function, tasks, finished=finished, keep=keep, **ways)


class Clock:
    """Progress of a number of tasks, with an estimate of the remaining time."""

    def __init__(self, count: int, done_before: int) -> None:
        self._count = count
        self._done_before = done_before
        self._began = time.monotonic()

    def event(self, done: int, noun: str) -> dict[str, Any]:
        """Returns a report of progress."""
        here = done - self._done_before
        left_s = (time.monotonic() - self._began) * (self._count - done) / max(here, 1)
        share = done / self._count
        return {
            "run": "", "step": f"{noun}s", "step_done": share,
            "step_finished": done == self._count, "done": share, "left_s": left_s,
            "text": f"{done} of {self._count} {noun}s",
        }
