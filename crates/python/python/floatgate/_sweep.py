"""Sweeps: one drive under one kind of load, at every point of a grid.

A point depends on nothing but the text of the order and its index, so that it can be measured by
any executor of the shape of ``concurrent.futures``, here or on another machine.
"""

from __future__ import annotations

import json
import warnings
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Mapping, Sequence, Union

from . import _core
from ._chart import Chart, labelled
from ._drive import Drive, drive_of
from ._error import Error, SweepWarning
from ._executor import jobs_or_processors
from ._html import table
from ._progress import Progress, observer
from ._quantity import (LOAD_MAX, capacity_gb, in_unit, items, number, refuse_beside_resume,
                        repeats_of, text_of, whole)
from ._tasks import collect

#: Values of a dimension: a list, or a range in the syntax of the command, ``"400..720/9"``.
Values = Union[str, Sequence[Union[float, str]]]

CAPACITY = "user_capacity_gb"
#: Shorter names of keys.
ALIASES = {"user_capacity": CAPACITY, "ftl.user_capacity": CAPACITY, "queue": "queue_per_thread",
           "compressible": "compressible_percent"}


def flat(point: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures of a measured point by name."""
    figures = {key: it for key, it in point.items() if not isinstance(it, (dict, list))}
    for part in ("latency", "lifetime", "tier"):
        for key, it in (point.get(part) or {}).items():
            figures[key if key.startswith(part) else f"{part}_{key}"] = it
    return figures


class Sweep:
    """The result of a sweep: the contents of ``sweep.json``."""

    def __init__(self, text: str, path: Path | None = None) -> None:
        self._text = text
        self.path = path
        """Folder of the sweep; ``None`` if it was not stored."""
        self.values: dict[str, Any] = json.loads(text)

    def to_json(self) -> str:
        """Returns the text of ``sweep.json``."""
        return self._text

    @property
    def points(self) -> list[dict[str, Any]]:
        """Points in the order of the grid."""
        return self.values["points"]

    def rows(self) -> list[dict[str, Any]]:
        """Returns a flat dict for each point, which pandas and Polars accept. All have the same
        keys. The ``outcome`` is ``"measured"`` or ``"infeasible"``; an infeasible point has a
        ``reason``, and ``None`` for each figure."""
        keys = [dimension["key"] for dimension in self.values["dimensions"]]
        rows, names = [], dict.fromkeys(keys)
        for point in self.points:
            # The requested value wins over a figure of the same name.
            at = dict(zip(keys, point["at"]))
            rows.append({**at, "reason": None, **flat(point), **at})
            names.update(dict.fromkeys(rows[-1]))
        return [{**names, **row} for row in rows]

    @property
    def infeasible(self) -> list[dict[str, Any]]:
        """Points at which no drive can be set up: their values, and the reason."""
        keys = [dimension["key"] for dimension in self.values["dimensions"]]
        return [{**dict(zip(keys, point["at"])), "reason": point["reason"]}
                for point in self.points if point["outcome"] == "infeasible"]

    def chart(self, figure: str = "iops", against: str | None = None) -> Chart:
        """Returns a chart of a figure, a column of ``rows()``, against a dimension, by default the
        first one with several values. Each combination of the others is a line."""
        rows = [row for row in self.rows() if row["outcome"] == "measured"]
        dimensions = self.values["dimensions"]
        keys = [it["key"] for it in dimensions]
        varied = [it["key"] for it in dimensions if len(it["values"]) > 1] or keys
        against = ALIASES.get(against, against) if against else varied[0]
        if against not in keys:
            raise Error(f"{against} was not swept", f"dimensions are {', '.join(keys)}")
        if not rows or figure not in rows[0]:
            known = ", ".join(rows[0]) if rows else "none, for no point was measured"
            raise Error(f"points have no figure {figure!r}", f"there are {known}")
        lines: dict[str, tuple[list[Any], list[float]]] = {}
        for row in rows:
            others = [f"{key} {row[key]}" for key in varied if key != against]
            xs, ys = lines.setdefault(", ".join(others) or figure, ([], []))
            xs.append(row[against])
            ys.append(row[figure])
        note = f"{self.values['id']} model version {self.values['model_version']}, " \
               f"seed {self.values['seed']}, time lapse {self.values['time_lapse']}"
        return Chart(f"{self.values['title']}: {figure}", labelled(against), labelled(figure),
                     lines, note.strip())

    def html(self) -> str:
        """Returns the page that ``floatgate sweep`` writes."""
        return _core.sweep_html(self._text)

    def _repr_html_(self) -> str:
        rows = self.rows()
        heads = [it["key"] for it in self.values["dimensions"]]
        heads += ["iops", "write_amplification", "latency_ns_p99", "steady"]
        heads += ["reason"] if self.infeasible else []
        charts = ""
        if len(rows) - len(self.infeasible) > 1:
            charts = "".join(self.chart(name).svg() for name in ("iops", "write_amplification")
                             if any(row.get(name) is not None for row in rows))
        return charts + table(heads, ([row.get(head) for head in heads] for row in rows))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Sweep, (self._text, self.path))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sweep) and self._text == other._text

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Sweep {self.values['drive']}: {len(self.points)} points>"


def measure_point(order: str, index: int) -> str:
    """Measures one point of the grid of ``order`` and returns JSON: a task of ``sweep``."""
    return _core.sweep_point(order, index)


def _dimensions(grid: Mapping[str, Values]) -> tuple[list[dict[str, Any]], list[list[str]]]:
    lists: list[dict[str, Any]] = []
    ranges: list[list[str]] = []
    for key, values in grid.items():
        key = ALIASES.get(key, key)
        if isinstance(values, str):
            # Reserves the position among the dimensions; the compiled half parses the range.
            lists.append({"key": key, "values": []})
            ranges.append([key, values])
            continue
        found = items(values, key)
        if key == CAPACITY:
            found = [capacity_gb(value, key) for value in found]
        if not found:
            raise Error(f"{key} has no values", "pass at least one")
        lists.append({"key": key, "values": [in_unit(value, key) for value in found]})
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
    repeat: int | None = 1,
    out: str | PathLike[str] | None = None,
    resume: str | PathLike[str] | None = None,
    executor: Any = None,
    batch: int | None = None,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
) -> Sweep:
    """Measures ``drive`` at every point of ``grid``, which has the values of each key.

    Keys are ``user_capacity_gb``, ``threads``, ``queue_per_thread``, ``read_percent``,
    ``compressible_percent``, and those of the drive's file. Each point is measured ``repeat`` times
    with consecutive seeds, for the intervals in its ``spread``; ``None``: three times if all are
    estimated to take less than a minute. With ``out``, each point is stored
    in a folder there as soon as it is measured; ``resume`` names such a folder to continue. If a
    drive and a grid are given too, they and the other arguments must be those of the folder. Points
    at which no drive can be set up are warned of; if there are no others, ``Error`` is raised.
    ``executor`` is a ``concurrent.futures.Executor``, a Dask ``Client`` or the module ``ray``. It
    gets ``batch`` points in each task, by default as many as take two seconds. Without an executor,
    ``jobs`` threads measure the points.
    """
    folder = None
    if resume is not None:
        folder = _core.SweepFolder.open(fspath(out or "runs"), fspath(resume))
        order, count = folder.order(), folder.count()
    if folder is not None and drive is None and grid is None:
        refuse_beside_resume({
            "workload": workload != "4k-rand-write", "threads": threads != 16, "queue": queue != 16,
            "load_gb_per_day": load_gb_per_day, "format": format, "host": host,
            "time_lapse": time_lapse, "seed": seed != 1, "repeat": repeat != 1,
        })
    if resume is None or drive is not None or grid is not None:
        if grid is not None and not isinstance(grid, Mapping):
            raise Error(f"the grid is {grid!r}", 'pass a dict: {"threads": [1, 4, 16]}')
        if drive is None or not grid:
            raise Error("no parameter to sweep was given",
                        'pass a drive and values: {"threads": [1, 4, 16]}')
        drive_of(drive)
        lists, ranges = _dimensions(grid)
        arguments = {
            "drive": drive._order(format, host, time_lapse, seed),
            "workload": text_of(workload, "workload"),
            "threads": whole(threads, "threads", 1, LOAD_MAX),
            "queue_per_thread": whole(queue, "queue", 1, LOAD_MAX),
            "repeat": repeats_of(repeat),
            "load_gb_per_day": (None if load_gb_per_day is None
                                else number(load_gb_per_day, "load_gb_per_day")),
            "dimensions": lists,
            "ranges": ranges,
        }
        asked, count = _core.sweep_order(json.dumps(arguments))
        if folder is not None:
            _refuse_another(folder, asked)
        else:
            order = asked
        if out is not None and folder is None:
            folder = _core.SweepFolder.create(fspath(out), order)
            order = folder.order()
    watcher = observer(progress)
    if executor is None:
        text = _core.sweep_all(order, jobs_or_processors(jobs), folder, watcher)
    else:
        points = collect(
            measure_point,
            [(order, index) for index in range(count)],
            executor=executor,
            finished=dict(folder.finished()) if folder else {},
            keep=folder.keep if folder else None,
            noun="point",
            batch=batch,
            progress=watcher,
        )
        text = _core.sweep_result(order, points)
    if folder is None:
        return _with_warning(Sweep(text))
    folder.finish(text)
    path = Path(folder.path)
    return _with_warning(Sweep((path / "sweep.json").read_text(encoding="utf-8"), path))


def _refuse_another(folder: _core.SweepFolder, asked: str) -> None:
    """Raises ``Error`` if a folder is of another order, and says what differs."""
    theirs, ours = json.loads(folder.order()), json.loads(asked)
    for order in (theirs, ours):
        # The folder names its sweep.
        order.pop("id"), order.pop("started_at")
    differences = [
        "the drive's file" if key == "drive" else f"{key} is {theirs.get(key)!r} there, "
        f"{ours.get(key)!r} here"
        for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)
    ]
    if differences:
        raise Error(f"{folder.path} is of another sweep; different: {'; '.join(differences)}",
                    "resume it with its own arguments, or without any; or start a new sweep")


def _with_warning(sweep: Sweep) -> Sweep:
    """Warns of points that are not possible."""
    missing = sweep.infeasible
    if not missing:
        return sweep
    first = ", ".join(f"{key} {value}" for key, value in missing[0].items() if key != "reason")
    text = f"{len(missing)} of {len(sweep.points)} points are not possible, such as {first}: " \
           f"{missing[0]['reason']}"
    # The caller of sweep(), which calls this.
    warnings.warn(text, SweepWarning, stacklevel=3)
    return sweep
