"""Ray and Dask as executors with the interface of ``concurrent.futures``."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from types import ModuleType
from typing import Any, Callable


class RayExecutor:
    """Executor that runs tasks on the Ray cluster that this process is connected to.

    Ray repeats the tasks of a lost node. Every node of the cluster needs this package.
    """

    def __init__(self, ray: ModuleType) -> None:
        self._ray = ray

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Starts a task."""
        return self._ray.remote(function).remote(*args).future()


def executor_of(engine: Any) -> Executor | RayExecutor:
    """Returns an executor for the module ``ray``, a Dask ``Client``, or an executor."""
    if isinstance(engine, ModuleType) and engine.__name__ == "ray":
        return RayExecutor(engine)
    if hasattr(engine, "get_executor"):
        return engine.get_executor()
    return engine
