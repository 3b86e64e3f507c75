"""Validation of models against published figures."""

from __future__ import annotations

import json
from os import PathLike, fspath
from typing import Any, Sequence

from . import _core
from ._drive import Drive, drives as all_drives, drives_of
from ._error import Error
from ._executor import executor_or_threads, jobs_or_processors
from ._fit import Figures, published, table_of, table_text
from ._html import table
from ._progress import Progress, observer
from ._tasks import gather


class Validation:
    """Published figures, each with the value of the model."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        """Every row, as ``floatgate validate --json`` prints it; ``verdict`` is ``in``, ``out``,
        ``stated`` (a fact of a data sheet) or ``not-expressible``."""

    @property
    def compared(self) -> list[dict[str, Any]]:
        """Rows with a value of the model, ``modelled``, and its ``ratio`` to the published one."""
        return [row for row in self.rows if row["verdict"] in ("in", "out")]

    @property
    def out_of_tolerance(self) -> list[dict[str, Any]]:
        """Rows whose ratio exceeds the tolerance of their metric."""
        return [row for row in self.rows if row["verdict"] == "out"]

    @property
    def error_median(self) -> float | None:
        """Median error of the compared rates and average latencies that were measured, as a
        fraction, as ``floatgate validate`` prints it: without data sheets and upper bounds."""
        return _core.error_median(json.dumps(self.rows))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Validation) and self.rows == other.rows

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        inside = len(self.compared) - len(self.out_of_tolerance)
        return f"<Validation: {inside} of {len(self.compared)} rows in tolerance>"

    def _repr_html_(self) -> str:
        return table(
            ["row", "model", "workload", "T", "Q", "phase", "metric", "published", "modelled",
             "ratio", ""],
            ((row["id"], row["model"], row["workload"], row["threads"], row["queue_per_thread"],
              row["phase"], row["metric"], published(row), row["modelled"], row["ratio"],
              row["verdict"]) for row in self.compared),
        )


def validate_rows(order: str, jobs: int) -> str:
    """Validates rows of figures of one drive and returns JSON: a task of ``validate``."""
    return _core.validate_drives(order, jobs)


def validate(
    drive: Drive | Sequence[Drive] | None = None,
    figures: Figures | None = None,
    *,
    executor: Any = None,
    out: str | PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
) -> Validation:
    """Compares published figures with the models of drives, like ``floatgate validate``.

    Without a drive, the whole catalogue is validated; rows that no model can express are listed
    with the reason. ``figures`` is the path of a table with the columns of ``figures()``, or its
    rows as dicts. With an ``executor`` or ``out`` each drive is a task; the folder ``out`` stores
    their results.
    """
    if drive is None:
        chosen = [Drive.load(name) for name in all_drives()]
    else:
        chosen = drives_of(drive)
    names = [it.name for it in chosen]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Error(f"{', '.join(twice)} is given twice", "validate variants one after the other")

    given = table_of(figures)

    def order(some: Sequence[Drive], rows: list[int] | None) -> str:
        return json.dumps({"drives": [[it._name, it.toml()] for it in some], "figures": given,
                           "rows": rows})

    owners = _core.figure_owners(order(chosen, None))
    rows = [index for index, owner in enumerate(owners) if drive is None or owner is not None]
    watcher, many = observer(progress), jobs_or_processors(jobs)
    if executor is None and out is None:
        return Validation(json.loads(_core.validate_drives(order(chosen, rows), many, watcher)))
    # Rows about no drive form a share of their own, which simulates nothing.
    shares: dict[int | None, list[int]] = {}
    for index in rows:
        shares.setdefault(owners[index], []).append(index)
    each = 1 if executor is not None and jobs is None else many
    tasks = [(order([] if owner is None else [chosen[owner]], share), each)
             for owner, share in shares.items()]
    with executor_or_threads(executor, 1) as workers:
        texts = gather(validate_rows, tasks, executor=workers, batch=1, out=out, progress=watcher)
    found: dict[int, dict[str, Any]] = {}
    for share, text in zip(shares.values(), texts):
        found.update(zip(share, json.loads(text)))
    return Validation([found[index] for index in rows])


def cross_validate(
    drive: Drive | Sequence[Drive] | None = None,
    figures: Figures | None = None,
    *,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
) -> list[dict[str, Any]]:
    """Predicts each family of published figures from the others, like ``floatgate validate
    --cross``.

    Without a drive, those are taken whose figures allow it. Each drive gives a dict with the
    predicted ``rows`` and the ``numbers`` with what they rest on.
    """
    if drive is None:
        chosen = [Drive.load(name) for name in _core.drives_to_cross_validate()]
    else:
        chosen = drives_of(drive)
    order = {"drives": [[it._name, it.toml()] for it in chosen], "figures": table_of(figures),
             "rows": None}
    many, watcher = jobs_or_processors(jobs), observer(progress)
    found: list[dict[str, Any]] = json.loads(
        _core.cross_validate_drives(json.dumps(order), many, watcher))
    return found


def validate_rankings(
    drive: Drive | Sequence[Drive] | None = None,
    rankings: str | PathLike[str] | None = None,
    *,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
) -> list[dict[str, Any]]:
    """Judges the order of drives that reviews state, like ``floatgate validate --rankings``.

    With drives, statements about them are judged, and each stands for the drive of its name in
    the catalogue. ``rankings`` is the path of a table of statements. Each statement gives a dict
    with its ``verdict`` (``holds``, ``tie``, ``fails``, ``not-run``), ``margin`` and ``figures``.
    """
    chosen = [] if drive is None else drives_of(drive)
    table = None if rankings is None else (fspath(rankings), table_text(rankings, "rankings"))
    order = {"drives": [[it._name, it.toml()] for it in chosen], "statements": table}
    many, watcher = jobs_or_processors(jobs), observer(progress)
    found: list[dict[str, Any]] = json.loads(_core.judge_rankings(json.dumps(order), many, watcher))
    return found
