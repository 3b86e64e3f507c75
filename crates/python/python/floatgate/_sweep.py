"""Sweeps: one drive under one kind of load, at every point of a grid.

A point depends on nothing but the text of the order and its index, so that it can be measured by
any executor of the shape of ``concurrent.futures``, here or on another machine.
"""

from __future__ import annotations

import json
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Mapping, Sequence, Union

from . import _core
from ._drive import Drive
from ._error import Error
from ._executor import RayExecutor, executor_of
from ._progress import Progress, observer
from ._quantity import capacity_gb
from ._run import jobs_or_processors

#: Values of a dimension: a list, or a range in the syntax of the command, ``"400..720/9"``.
Values = Union[str, Sequence[Union[float, str]]]

_CAPACITY = "user_capacity_gb"
_ALIASES = {"user_capacity": _CAPACITY, "ftl.user_capacity": _CAPACITY, "queue": "queue_per_thread"}
_ALIASES |= {"compressible": "compressible_percent"}


class Sweep:
    """The result of a sweep: the contents of ``sweep.json``."""

    def __init__(self, text: str, path: Path | None = None) -> None:
        self._text = text
        #: Folder of the sweep; ``None`` if it was not stored.
        self.path = path
        self.values: dict[str, Any] = json.loads(text)

    def to_json(self) -> str:
        """Returns the text of ``sweep.json``."""
        return self._text

    @property
    def points(self) -> list[dict[str, Any]]:
        """Points in the order of the grid."""
        return self.values["points"]

    def rows(self) -> list[dict[str, Any]]:
        """Returns a flat dict for each measured point, which pandas and Polars accept."""
        keys = [dimension["key"] for dimension in self.values["dimensions"]]
        rows = []
        for point in self.points:
            if point["outcome"] == "measured":
                figures = {k: v for k, v in point.items() if not isinstance(v, (dict, list))}
                latency = {f"latency_{k}".replace("latency_latency", "latency"): v
                           for k, v in point["latency"].items()}
                # The requested value wins over a figure of the same name.
                at = dict(zip(keys, point["at"]))
                rows.append({**at, **figures, **latency, **at})
        return rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sweep) and self._text == other._text

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Sweep {self.values['drive']}: {len(self.points)} points>"


def measure_points(order: str, model_version: int, indices: Sequence[int]) -> list[str]:
    """Measures points of the grid of ``order``, on a worker of an executor.

    Raises ``Error`` if the worker has another version of the models.
    """
    if model_version != _core.MODEL_VERSION:
        raise Error(
            f"a worker has model version {_core.MODEL_VERSION}, the sweep has {model_version}",
            "install the same version of floatgate on every worker",
        )
    return [_core.sweep_point(order, index) for index in indices]


def _dimensions(grid: Mapping[str, Values]) -> tuple[list[dict[str, Any]], list[list[str]]]:
    lists, ranges = [], []
    for key, values in grid.items():
        key = _ALIASES.get(key, key)
        if isinstance(values, str):
            # Reserves the position among the dimensions; the compiled half parses the range.
            lists.append({"key": key, "values": []})
            ranges.append([key, values])
            continue
        plain = [value.item() if hasattr(value, "item") else value for value in values]
        if key == _CAPACITY:
            plain = [capacity_gb(value, key) for value in plain]
        if not plain:
            raise Error(f"{key} has no values", "pass at least one")
        lists.append({"key": key, "values": plain})
    return lists, ranges


def sweep(
    drive: Drive | None = None,
    grid: Mapping[str, Values] | None = None,
    *,
    workload: str = "4k-rand-write",
    threads: int = 16,
    queue: int = 16,
    load_gb_per_day: float | None = None,
    format: str | None = None,
    host: str | None = None,
    time_lapse: int | None = None,
    seed: int = 1,
    out: str | PathLike[str] | None = None,
    resume: str | PathLike[str] | None = None,
    executor: Any = None,
    batch: int = 1,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
) -> Sweep:
    """Measures ``drive`` at every point of ``grid``, which has the values of each key.

    Keys are ``user_capacity_gb``, ``threads``, ``queue_per_thread``, ``read_percent``,
    ``compressible_percent``, and those of the drive's file. With ``out``, each point is stored in
    a folder there as soon as it is measured; ``resume`` names such a folder to continue.
    ``executor`` is a ``concurrent.futures.Executor``, a Dask ``Client`` or the module ``ray``, and
    gets ``batch`` points in each task. Without an executor, ``jobs`` threads measure the points.
    """
    folder = None
    if resume is not None:
        folder = _core.SweepFolder.open(fspath(out or "runs"), fspath(resume))
        order, count = folder.order(), folder.count()
    else:
        if drive is None or not grid:
            raise Error("nothing to sweep", 'pass a drive and values: {"threads": [1, 4, 16]}')
        lists, ranges = _dimensions(grid)
        arguments = {
            "drive": drive._order(format, host, time_lapse, seed),
            "workload": workload,
            "threads": threads,
            "queue_per_thread": queue,
            "load_gb_per_day": load_gb_per_day,
            "dimensions": lists,
            "ranges": ranges,
        }
        order, count = _core.sweep_order(json.dumps(arguments))
        if out is not None:
            folder = _core.SweepFolder.create(fspath(out), order)
            order = folder.order()
    told = observer(progress)
    if executor is None:
        text = _core.sweep_all(order, jobs_or_processors(jobs), folder, told)
    else:
        text = _by_executor(order, count, folder, executor_of(executor), batch, told)
    if folder is None:
        return Sweep(text)
    folder.finish(text)
    path = Path(folder.path)
    return Sweep((path / "sweep.json").read_text(encoding="utf-8"), path)


def _by_executor(
    order: str,
    count: int,
    folder: _core.SweepFolder | None,
    executor: Executor | RayExecutor,
    batch: int,
    told: Progress | None,
) -> str:
    if batch < 1:
        raise Error(f"batch is {batch}, must be 1 or more")
    points = dict(folder.finished()) if folder else {}
    open_ = [index for index in range(count) if index not in points]
    batches = [open_[begin : begin + batch] for begin in range(0, len(open_), batch)]
    under_way: dict[Future[list[str]], list[int]] = {}

    def take(task: Future[list[str]]) -> None:
        for index, point in zip(under_way.pop(task), task.result()):
            if folder:
                folder.keep(index, point)
            points[index] = point
        if told:
            told(_event(len(points), count))

    try:
        for indices in batches:
            task = executor.submit(measure_points, order, _core.MODEL_VERSION, indices)
            under_way[task] = indices
            # An executor may run a task inside submit(): store its points before the next task.
            if task.done():
                take(task)
        while under_way:
            for task in wait(under_way, return_when=FIRST_COMPLETED).done:
                take(task)
    except BaseException:
        for task in under_way:
            task.cancel()
        raise
    return _core.sweep_result(order, [points[index] for index in range(count)])


def _event(done: int, count: int) -> dict[str, Any]:
    text = f"{done} of {count} points"
    return {"run": "", "step": "sweep", "step_done": done / count, "step_finished": done == count,
            "done": done / count, "left_s": None, "text": text}
