"""Engines of other projects as executors of the shape of ``concurrent.futures``."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from types import ModuleType
from typing import Any, Callable


class RayExecutor:
    """Tasks on the cluster of Ray that this process is connected to.

    Ray repeats the tasks of a node that is lost. A cluster must have this package on every node.
    """

    def __init__(self, ray: ModuleType) -> None:
        self._ray = ray

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Begins a task."""
        return self._ray.remote(function).remote(*args).future()


def executor_of(engine: Any) -> Executor | RayExecutor:
    """The executor that is meant: the module ``ray``, a client of Dask, or an executor."""
    if isinstance(engine, ModuleType) and engine.__name__ == "ray":
        return RayExecutor(engine)
    if hasattr(engine, "get_executor"):
        return engine.get_executor()
    return engine
