"""Many tasks on an executor: batched, kept as they come, each repeatable anywhere.

A task is a function of this package and its arguments, from which it makes a text; it depends on
nothing else. Tasks of less than a second are sent several at a time, so that an engine's own work
for each is little beside them.

    arguments ─► batches ─► executor ─► results ─► take, as they come
                    ▲                       │
                    └── seconds a task took ┘
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

from . import _core
from ._error import Error
from ._executor import Executor, executor_of, places
from ._progress import Progress

#: A function that makes a text of its arguments.
Function = Callable[..., str]
#: Arguments of one task.
Arguments = tuple[Any, ...]

#: Seconds that a batch is to take: enough above one that those of shorter tasks take one, too.
_BATCH_S = 2.0
#: Seconds between two looks at how many places an executor has: clusters grow and shrink.
_LOOK_S = 5.0


def carry_out(model_version: int, function: Function, share: Sequence[Arguments]
              ) -> tuple[list[str], float]:
    """Does a batch of tasks: what an executor's worker does. Returns results, and the seconds.

    A worker whose models are of another version refuses.
    """
    if model_version != _core.MODEL_VERSION:
        raise Error(
            f"a worker has model version {_core.MODEL_VERSION}, this process {model_version}",
            "install the same version of floatgate on every worker",
        )
    began = time.perf_counter()
    results = [function(*arguments) for arguments in share]
    return results, time.perf_counter() - began


class _Batches:
    """Tasks in order, in batches that take seconds each."""

    def __init__(self, tasks: Sequence[int], fixed: Optional[int]) -> None:
        self._left = list(reversed(tasks))
        self._fixed = fixed
        self._done = 0
        self._spent_s = 0.0

    def learn(self, count: int, spent_s: float) -> None:
        """Takes note of what tasks took."""
        self._done += count
        self._spent_s += spent_s

    def next(self, workers: int) -> list[int]:
        """The next batch; empty once all are given out."""
        size = self._fixed or self._size(workers)
        batch = self._left[-size:][::-1]
        del self._left[-size:]
        return batch

    def _size(self, workers: int) -> int:
        if not self._done:
            return 1
        mean_s = max(self._spent_s / self._done, 1e-6)
        # The last batches are smaller, so that no worker is without one at the end.
        return max(1, min(math.ceil(_BATCH_S / mean_s), math.ceil(len(self._left) / workers)))


class _Crowd:
    """An executor, and how many batches it is given ahead."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.workers = places(executor)
        self._looked = time.monotonic()

    def limit(self) -> int:
        """Batches under way at once: twice the workers, so that none waits for its next one."""
        if time.monotonic() - self._looked > _LOOK_S:
            self.workers = places(self.executor)
            self._looked = time.monotonic()
        return 2 * self.workers

    def failure(self, failure: BaseException) -> BaseException:
        """What went wrong, in the words of this package."""
        if isinstance(failure, BrokenExecutor):
            return Error(f"the executor broke: {failure}",
                         "what is finished is kept: go on with a new executor")
        translate = getattr(self.executor, "failure", None)
        return translate(failure) if translate else failure

    def cancel(self, tasks: Sequence[Future[Any]]) -> None:
        """Ends what is under way."""
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
    """Has an executor do tasks, and gives each result to ``take`` as it comes.

    What was done before a failure is given to ``take`` before the failure is raised.
    """
    if batch is not None and batch < 1:
        raise Error(f"batch is {batch}, must be 1 or more")
    crowd, batches = _Crowd(executor_of(executor)), _Batches(list(tasks), batch)
    under_way: dict[Future[Any], list[int]] = {}
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
        share = batches.next(crowd.workers)
        while (share or under_way) and not failures:
            while share and len(under_way) < crowd.limit() and not failures:
                arguments = [tasks[index] for index in share]
                task = crowd.executor.submit(carry_out, _core.MODEL_VERSION, function, arguments)
                under_way[task] = share
                # An executor may do a task at once: what is done is kept at once.
                if task.done():
                    finish(task)
                share = batches.next(crowd.workers)
            if under_way and not failures:
                for task in wait(under_way, return_when=FIRST_COMPLETED).done:
                    finish(task)
        if failures:
            raise crowd.failure(failures[0])
    except BaseException:
        crowd.cancel(list(under_way))
        raise


class Kept:
    """A folder of results, each under the digest of its task: what was done once is done.

    Texts and bytes among the arguments say what is asked; numbers say how it is carried out, on
    which no result depends.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def _path(self, function: Function, arguments: Arguments) -> Path:
        digest = hashlib.sha256(f"{_core.MODEL_VERSION} {function.__name__}".encode())
        for argument in arguments:
            if isinstance(argument, (str, bytes)):
                raw = argument.encode() if isinstance(argument, str) else argument
                digest.update(b" %d " % len(raw) + raw)
        return self.folder / f"{function.__name__}-{digest.hexdigest()[:24]}.json"

    def find(self, function: Function, arguments: Arguments) -> str | None:
        """The result of a task that was done before."""
        path = self._path(function, arguments)
        return path.read_text(encoding="utf-8") if path.is_file() else None

    def keep(self, function: Function, arguments: Arguments, result: str) -> None:
        """Keeps a result, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(function, arguments)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(result, encoding="utf-8")
        os.replace(part, path)


def gather(
    function: Function,
    tasks: Sequence[Arguments],
    *,
    executor: Any,
    batch: Optional[int] = None,
    out: str | os.PathLike[str] | None = None,
    told: Optional[Progress] = None,
) -> list[str]:
    """The results of tasks, in their order; those that the folder ``out`` has are not done again."""
    kept = None if out is None else Kept(out)
    results: dict[int, str] = {}
    for index, arguments in enumerate(tasks):
        found = kept.find(function, arguments) if kept else None
        if found is not None:
            results[index] = found
    clock = Clock(len(tasks), len(results))

    def take(index: int, result: str) -> None:
        if kept:
            kept.keep(function, tasks[index], result)
        results[index] = result
        if told:
            told(clock.event(len(results), "task"))

    left = {index: arguments for index, arguments in enumerate(tasks) if index not in results}
    scatter(function, left, take, executor=executor, batch=batch)
    return [results[index] for index in range(len(tasks))]


class Clock:
    """How far a number of tasks is, and how long the rest takes."""

    def __init__(self, count: int, done_before: int) -> None:
        self._count = count
        self._done_before = done_before
        self._began = time.monotonic()

    def event(self, done: int, noun: str) -> dict[str, Any]:
        """A report of progress."""
        here = done - self._done_before
        left_s = (time.monotonic() - self._began) * (self._count - done) / max(here, 1)
        share = done / self._count
        return {
            "run": "", "step": f"{noun}s", "step_done": share,
            "step_finished": done == self._count, "done": share, "left_s": left_s,
            "text": f"{done} of {self._count} {noun}s",
        }
