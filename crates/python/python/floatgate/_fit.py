"""Fits of a drive's free parameters to published or measured figures."""

from __future__ import annotations

import csv
import io
import json
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence, Union, overload

from . import _core
from ._drive import Drive, drive_of, drives_of
from ._error import Error
from ._executor import jobs_or_processors
from ._html import escaped, table
from ._progress import Progress, observer
from ._quantity import SEED_MAX, in_unit, items, number, rows_of, whole
from ._run import Run
from ._tasks import ResultStore, gather

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class Options(TypedDict, total=False):
        """Options of a fit."""

        run: Run | str | PathLike[str] | None
        free: Free
        format: str | None
        search: int
        seed: int
        executor: Any
        out: str | PathLike[str] | None
        jobs: int | None
        progress: Progress | bool | None

#: Published figures: the path of a table, or its rows by the names of its columns, as dicts or as
#: a table of pandas, Polars or Arrow.
Figures = Union[str, "PathLike[str]", Iterable[Mapping[str, Any]], Any]
#: Most drives that the global search evaluates.
_SEARCH_MAX = 10**9
#: Numbers that are open: their keys, or keys with the least and the greatest value.
Free = Union[Sequence[str], Mapping[str, "tuple[float, float] | None"]]


class Fit:
    """The result of a fit: the fitted drive, and the uncertainty of its numbers."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self.values: dict[str, Any] = json.loads(text)

    @property
    def drive(self) -> Drive:
        """The fitted drive. The sources in its file state what was fitted."""
        return Drive(self.values["drive"], self._name)

    @property
    def assumption(self) -> str | None:
        """The assumption about how the drive was prepared, where a run does not state it."""
        return self.values.get("assumed")

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """The fitted numbers: path, bounds, start, value, deviation, and remarks."""
        return self.values["parameters"]

    @property
    def undetermined(self) -> list[str]:
        """Numbers that the figures do not determine. They keep their start value."""
        return [it["path"] for it in self.parameters if it["undetermined"]]

    @property
    def figures(self) -> list[dict[str, Any]]:
        """Every figure, with the value of the drive before and after the fit."""
        return self.values["figures"]

    @property
    def contradictions(self) -> list[dict[str, Any]]:
        """Figures that contradict each other. None of them was used."""
        return self.values["contradictions"]

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C ended the fit: it is the best that was found by then."""
        return self.values.get("interrupted", False)

    @property
    def is_verified(self) -> bool:
        """True if the protocols were run on the fitted drive. Otherwise figures are estimates."""
        return self.values["verified"]

    def to_json(self) -> str:
        """Returns the JSON that ``floatgate fit --json`` prints."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fit) and self._text == other._text

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Fit, (self._text, self._name))

    def __repr__(self) -> str:
        note = f"; note: {self.assumption}" if self.assumption else ""
        judged = [it["within"] for it in self.figures if it["within"] is not None]
        numbers = ", ".join(f"{it['path']} {it['value']:g}" for it in self.parameters)
        return f"<Fit {numbers}: {sum(judged)} of {len(judged)} figures in tolerance{note}>"

    def _repr_html_(self) -> str:
        numbers = table(
            ["number", "start", "fitted", "deviation", "remark"],
            ((it["path"], it["start"], it["value"], it["deviation"], _remark(it))
             for it in self.parameters),
        )
        figures = table(
            ["figure", "workload", "load", "phase", "metric", "given", "before", "fitted", "ratio"],
            ((it["id"], it["workload"], it["load"], it["phase"], it["metric"], published(it),
              it["start"], it["fitted"], it["ratio"])
             for it in self.figures if it["fitted"] is not None),
        )
        doubts = "".join(f"<p>Contradiction, not used: {escaped(it['rows'])}: "
                         f"{escaped(it['text'])}</p>" for it in self.contradictions)
        assumed = f"<p>Note: {escaped(self.assumption)}</p>" if self.assumption else ""
        return assumed + numbers + figures + doubts


def published(row: dict[str, Any]) -> Any:
    """Returns the published value of a row: a number, a range, or an upper bound."""
    low, high = row["value_low"], row["value_high"]
    if high is None or high == low:
        return low
    return f"≤ {high:g}" if low == 0 else f"{low:g}–{high:g}"


def _remark(parameter: dict[str, Any]) -> str:
    remarks = ["undetermined"] if parameter["undetermined"] else []
    if parameter["fixed_by"]:
        remarks.append("by " + ", ".join(parameter["fixed_by"]))
    if parameter["goes_with"]:
        remarks.append("only together with " + ", ".join(parameter["goes_with"]))
    if parameter["at_bound"]:
        remarks.append("at its bound")
    return "; ".join(remarks)


def figures(drive: Drive) -> list[dict[str, str]]:
    """Returns the published figures of a drive as rows, a template for your own figures."""
    drive_of(drive)
    order = json.dumps({"drives": [[drive._name, drive.toml()]], "figures": None, "rows": None})
    rows = csv.DictReader(io.StringIO(_core.figures_text()))
    return [row for row, owner in zip(rows, _core.figure_owners(order)) if owner == 0]


def table_text(path: str | PathLike[str], what: str) -> str:
    """Returns the text of a table of ``what``."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as cause:
        raise Error(f"reading {fspath(path)}: {cause.strerror}",
                    f"name a table of {what}") from cause


def table_of(given: Figures | None) -> dict[str, str] | None:
    """Returns figures as the name and the text of a table."""
    if given is None:
        return None
    if isinstance(given, (str, PathLike)):
        return {"name": fspath(given), "text": table_text(given, "figures")}
    columns = _core.figures_text().splitlines()[0].split(",")
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for index, row in enumerate(rows_of(given, "figures"), 1):
        unknown = sorted(set(row) - set(columns))
        if unknown:
            raise Error(f"figure {index} has unknown columns: {', '.join(unknown)}",
                        f"columns are {', '.join(columns)}")
        writer.writerow({"id": f"F{index:03}", **row})
    return {"name": "figures", "text": text.getvalue()}


def _free(free: Free) -> list[dict[str, Any]]:
    if isinstance(free, str):
        raise Error(f"free is {free!r}", "give a list of keys, or bounds by key")
    if isinstance(free, Mapping):
        return [{"path": key, "bounds": _bounds(bounds, key)} for key, bounds in free.items()]
    return [{"path": key, "bounds": None} for key in free]


def _bounds(bounds: Any, key: str) -> tuple[float, float] | None:
    if bounds is None:
        return None
    found = items(bounds, key)
    if len(found) != 2:
        raise Error(f"{key} is {bounds!r}", "give (low, high)")
    low, high = (number(in_unit(it, key), key) for it in found)
    return low, high


def fit_one(order: str, measured: str, jobs: int, run: _core.RunData | None) -> str:
    """Fits one drive and returns JSON: a task of ``fit``. ``measured`` is the text of the run; it
    distinguishes stored results."""
    return _core.fit_drive(order, jobs, run)


def _fitted_here(
    task: tuple[str, str, int, _core.RunData | None],
    out: str | PathLike[str] | None,
    progress: Progress | None,
) -> str:
    store = None if out is None else ResultStore(out)
    found = store.find(fit_one, task) if store else None
    if found is None:
        order, _, jobs, run = task
        found = _core.fit_drive(order, jobs, run, progress)
        if store and not json.loads(found).get("interrupted"):
            store.keep(fit_one, task, found)
    return found


@overload
def fit(drive: Drive, figures: Figures | None = ..., **options: Unpack[Options]) -> Fit: ...
@overload
def fit(
    drive: Sequence[Drive], figures: Figures | None = ..., **options: Unpack[Options]
) -> list[Fit]: ...
def fit(
    drive: Drive | Sequence[Drive],
    figures: Figures | None = None,
    *,
    run: Run | str | PathLike[str] | None = None,
    free: Free = (),
    format: str | None = None,
    search: int = 400,
    seed: int = 1,
    executor: Any = None,
    out: str | PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
) -> Fit | list[Fit]:
    """Fits the free parameters of a drive to figures, like ``floatgate fit``.

    ``figures`` is the path of a table with the columns of ``figures()``, or its rows as dicts; by
    default the built-in published figures. ``run`` is a measured run to fit to instead. ``free``
    names free parameters besides those of the drive's ``[[fit]]`` tables; their bounds are half and
    double the value unless given. ``format`` uses only the figures of one format, and predicts the
    others. ``search`` is the number of drives that the global search evaluates.

    A list of drives, for example variants of a model, gives a list of fits, each a task of
    ``executor``. Ctrl-C returns the best that was found so far, with ``interrupted``. What a run
    does not state, such as how the drive was prepared, is assumed: see ``Fit.assumption``. The
    folder ``out`` stores finished fits. The result depends on neither ``executor`` nor ``jobs``.
    """
    is_one = isinstance(drive, Drive)
    drives = drives_of(drive)
    evidence = table_of(figures)
    at_once = 1 if executor is not None and jobs is None else jobs_or_processors(jobs)
    orders = [
        json.dumps({
            "name": it._name, "text": it.toml(), "figures": evidence, "free": _free(free),
            "format": format, "search": whole(search, "search", 0, _SEARCH_MAX),
            "seed": whole(seed, "seed", 0, SEED_MAX),
        })
        for it in drives
    ]
    if run is not None and evidence is not None:
        raise Error("figures and a run are given", "give one of them")
    measured = run if run is None or isinstance(run, Run) else Run.open(run)
    data, text = (None, "") if measured is None else (measured._data, measured.to_json())
    tasks = [(order, text, at_once, data) for order in orders]
    watcher = observer(progress)
    if executor is not None:
        texts = gather(fit_one, tasks, executor=executor, batch=1, out=out, progress=watcher)
    else:
        texts = []
        for task in tasks:
            texts.append(_fitted_here(task, out, watcher))
            if json.loads(texts[-1]).get("interrupted"):
                break
    fits = [Fit(text, it._name) for text, it in zip(texts, drives)]
    return fits[0] if is_one else fits
