"""Adapters that give Ray and Dask the interface of ``concurrent.futures``."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Callable, Iterator, Protocol

from ._core import __version__
from ._error import Error
from ._quantity import whole

#: Number of times that Ray repeats a task whose node was lost.
_NODES_LOST_MAX = 5
#: Most parallel simulations that can be asked for.
_JOBS_MAX = 4096
#: Assumed number of parallel tasks of an executor that does not report it.
_PLACES_DEFAULT = 32


#: Remedy after a failure of an executor.
STORED = "results that were stored with `out` remain: repeat the call, or resume the sweep"


class Executor(Protocol):
    """The part of ``concurrent.futures.Executor`` that is needed."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Starts a task."""
        ...


class RayExecutor:
    """Runs tasks on the Ray cluster that this process is connected to.

    Ray repeats the tasks of a lost node. Every node must have this package.
    """

    def __init__(self, ray: ModuleType) -> None:
        if not ray.is_initialized():
            raise Error("Ray is not connected to any cluster",
                        "ray.init(address=\"HOST:6379\") connects, ray.init() starts one here")
        self._ray = ray
        self._functions: dict[Callable[..., Any], Any] = {}
        self._references: dict[Future[Any], Any] = {}

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Starts a task."""
        remote = self._functions.get(function)
        if remote is None:
            # Once for each function, since Ray sends it to the cluster each time it is wrapped.
            remote = self._ray.remote(max_retries=_NODES_LOST_MAX, num_cpus=1)(function)
            self._functions[function] = remote
        reference = remote.remote(*args)
        future: Future[Any] = reference.future()
        self._references[future] = reference
        future.add_done_callback(lambda done: self._references.pop(done, None))
        return future

    def cancel(self, future: Future[Any]) -> None:
        """Cancels a task, even if it is running."""
        reference = self._references.pop(future, None)
        if reference is not None:
            self._ray.cancel(reference)

    def places(self) -> int:
        """Returns the number of tasks that can run at once."""
        return int(self._ray.cluster_resources().get("CPU", 0)) or _PLACES_DEFAULT

    def failure(self, failure: BaseException) -> BaseException:
        """Returns the failure as an error of this package where possible."""
        cause = getattr(failure, "cause", None)
        if isinstance(cause, Error):
            return cause
        text = str(failure)
        if "No module named 'floatgate" in text:
            return Error(
                "a node of the cluster has no package floatgate",
                f"install the wheel of floatgate {__version__} on every node, for example with "
                "ray.init(..., runtime_env={\"pip\": [\"/PATH/OF/THE.whl\"]})",
            )
        if isinstance(failure, self._ray.exceptions.RayError) and cause is None:
            return Error(f"Ray gave up on a task: {text.strip().splitlines()[0]}",
                         f"{STORED}, once the cluster works again")
        return failure


class _DaskExecutor:
    """Runs tasks on a Dask cluster, which repeats the tasks of a lost worker."""

    def __init__(self, client: Any) -> None:
        self._client = client
        # Otherwise Dask would return a remembered result for a repeated task.
        self._executor = client.get_executor(pure=False)

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Starts a task."""
        return self._executor.submit(function, *args)

    def places(self) -> int:
        """Returns the number of tasks that can run at once."""
        return sum(self._client.nthreads().values()) or _PLACES_DEFAULT


def executor_of(engine: Any) -> Executor:
    """Returns an executor for the module ``ray``, a Dask client, or an executor."""
    if isinstance(engine, ModuleType) and engine.__name__ == "ray":
        return RayExecutor(engine)
    if hasattr(engine, "get_executor"):
        return _DaskExecutor(engine)
    if not callable(getattr(engine, "submit", None)):
        raise Error(f"executor is {engine!r}, which has no method submit",
                    "give an executor of concurrent.futures, a Client of Dask, or the module ray")
    return engine


@contextmanager
def executor_or_threads(engine: Any, threads: int) -> Iterator[Executor]:
    """Provides the executor of an engine or, if that is ``None``, one with ``threads`` threads.

    Threads suffice, since the interpreter's lock is released while a drive is simulated.
    """
    if engine is not None:
        yield executor_of(engine)
        return
    with ThreadPoolExecutor(threads) as executor:
        yield executor


def places(executor: Executor) -> int:
    """Returns the number of tasks that an executor can run at once."""
    ask = getattr(executor, "places", None)
    if ask is not None:
        return ask()
    return getattr(executor, "_max_workers", None) or _PLACES_DEFAULT


def jobs_or_processors(jobs: int | None) -> int:
    """Returns the number of parallel simulations, by default one for each processor."""
    if jobs is not None:
        return whole(jobs, "jobs", 1, _JOBS_MAX)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
