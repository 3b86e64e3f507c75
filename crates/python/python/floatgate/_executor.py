"""Adapters that give Ray and Dask the interface of ``concurrent.futures``."""

from __future__ import annotations

import os
from concurrent.futures import Future
from types import ModuleType
from typing import Any, Callable, Protocol

from ._core import __version__
from ._error import Error

#: Number of times that Ray repeats a task whose node was lost.
_NODES_LOST_MAX = 5
#: Assumed number of parallel tasks of an executor that does not tell.
_PLACES_DEFAULT = 32


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
            # Once for each function: Ray sends it to the cluster each time it is wrapped.
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
                f"pip install floatgate=={__version__} on every node, or connect with "
                f"ray.init(..., runtime_env={{\"pip\": [\"floatgate=={__version__}\"]}})",
            )
        if isinstance(failure, self._ray.exceptions.RayError) and cause is None:
            return Error(f"Ray gave up on a task: {text.strip().splitlines()[0]}",
                         "what is finished is kept: go on once the cluster is well")
        return failure


class _DaskExecutor:
    """Runs tasks on a Dask cluster, which repeats the tasks of a lost worker."""

    def __init__(self, client: Any) -> None:
        self._client = client
        # Without this, Dask would answer a repeated task from its memory.
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
        raise Error(f"executor is {engine!r}, which submits nothing",
                    "give an executor of concurrent.futures, a Client of Dask, or the module ray")
    return engine


def places(executor: Executor) -> int:
    """Returns the number of tasks that an executor can run at once."""
    ask = getattr(executor, "places", None)
    if ask is not None:
        return ask()
    return getattr(executor, "_max_workers", None) or _PLACES_DEFAULT


def processors() -> int:
    """Returns the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
