"""Runs: one workload on one drive, whole protocols, and run folders."""

from __future__ import annotations

import importlib
import json
from datetime import timedelta
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Sequence

from . import _core
from ._chart import Chart, labelled
from ._drive import DieFailure, Drive, drive_of, surroundings_of
from ._error import Error
from ._html import escaped, frame, table
from ._progress import Progress, observer
from ._quantity import LOAD_MAX, number, repeats_of, seconds, text_of, transfer_bytes, whole


class Run:
    """A result: the contents of ``run.json`` as Python values, and its tables."""

    def __init__(self, data: _core.RunData) -> None:
        self._data = data

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Run:
        """Opens the run in a folder that a review created."""
        return cls(_core.open_run(fspath(path)))

    def to_json(self) -> str:
        """Returns the text of ``run.json``."""
        return self._text

    @cached_property
    def _text(self) -> str:
        return self._data.json()

    @cached_property
    def values(self) -> dict[str, Any]:
        """Contents of ``run.json``; docs/reference/results.md describes the fields."""
        return json.loads(self._text)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Steps of the run in their order."""
        return self.values["steps"]

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings: conditions that limit how far the numbers can be trusted."""
        return self.values["warnings"]

    def step(self, name: str) -> dict[str, Any]:
        """Returns the step with this name, such as ``4k/precondition``."""
        for step in self.steps:
            if step["id"] == name:
                return step
        names = ", ".join(step["id"] for step in self.steps)
        raise Error(f"the run has no step {name!r}", f"it has {names}")

    @property
    def summary(self) -> dict[str, Any]:
        """Figures of the last measured step; of a preconditioning its last five rounds, since its
        mean is a rate that the drive never had."""
        measured = self._measured()
        if not measured:
            raise Error("the run has no measured step", "finish the run, or look at its steps")
        return _figures(measured[-1])

    def _measured(self) -> list[dict[str, Any]]:
        return [step for step in self.steps if step["summary"] is not None]

    @property
    def iops(self) -> float:
        """Requests per second of the last measured step."""
        return self.summary["iops"]

    @property
    def write_amplification(self) -> float | None:
        """NAND writes divided by host writes in the last measured step; ``None`` without writes."""
        nand = self.summary["nand"]
        if nand is None or nand["host_sent_bytes"] == 0:
            return None
        kinds = ("host", "relocation", "wear", "parity", "metadata")
        return sum(nand[f"{kind}_bytes"] for kind in kinds) / nand["host_sent_bytes"]

    def samples(self) -> _core.ArrowTable:
        """Returns the samples of all steps, one row for each."""
        return self._data.samples()

    def latencies(self) -> _core.ArrowTable:
        """Returns the latency histograms of all steps, one row for each bin."""
        return self._data.latencies()

    def to_pandas(self, table: str = "samples") -> Any:
        """Returns the ``"samples"`` or ``"latencies"`` as a data frame of pandas."""
        pandas = _library("pandas")
        return pandas.DataFrame.from_arrow(self._table(table))

    def to_arrow(self, table: str = "samples") -> Any:
        """Returns the ``"samples"`` or ``"latencies"`` as a table of pyarrow."""
        return _library("pyarrow").table(self._table(table))

    def to_parquet(self, path: str | PathLike[str], table: str = "samples") -> Path:
        """Writes the ``"samples"`` or ``"latencies"`` as in the run folder."""
        place, (_, _, samples, latencies, _) = Path(path), self._data.__reduce__()[1][0]
        self._table(table)
        place.write_bytes(samples if table == "samples" else latencies)
        return place

    def _table(self, name: str) -> _core.ArrowTable:
        if name not in ("samples", "latencies"):
            raise Error(f"table is {name!r}", 'pass "samples" or "latencies"')
        return self.samples() if name == "samples" else self.latencies()

    def html(self) -> str:
        """Returns a report of this run only, as one HTML file."""
        return self._data.html()

    def chart(self, column: str = "iops") -> Chart:
        """Returns a chart of a column of the samples over protocol time, with a line per step."""
        columns = self.samples().to_dict()
        if column not in columns or column == "step":
            raise Error(f"samples have no column {column!r}", f"they have {', '.join(columns)}")
        lines: dict[str, tuple[list[float], list[float]]] = {}
        begin_s, last = 0.0, ("", 0.0)
        for step, at_s, value in zip(columns["step"], columns["at_s"], columns[column]):
            # Times restart with each step.
            begin_s += last[1] if step != last[0] else 0.0
            last = (step, at_s)
            if value is not None:
                xs, ys = lines.setdefault(step, ([], []))
                xs.append((begin_s + at_s) / 3600)
                ys.append(value)
        target = self.values["target"]
        return Chart(f"{target['name']} {target['format']}: {column}", "hours",
                     labelled(column), lines,
                     f"{self.values['id'] or self.values['protocol']}, "
                     f"model version {self.values['model_version']}, seed {self.values['seed']}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self._text == other._text

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        target = self.values["target"]
        # One rate of several loads would look like the rate of the run.
        rate = f", {self.iops:.0f} IOPS" if len(self._measured()) == 1 else ""
        return f"<Run {target['name']} {target['format']}: {self.values['protocol']}{rate}>"

    def _repr_html_(self) -> str:
        rows = [
            (step["id"] + (", last five rounds" if it is not step["summary"] else ""),
             it["iops"], it["throughput_read_mb_s"], it["throughput_write_mb_s"],
             *(_millis(it["latency"].get(key)) for key in ("latency_ns_avg", "latency_ns_p99")))
            for step in self._measured() for it in [_figures(step)]
        ]
        heads = ["step", "IOPS", "read MB/s", "write MB/s", "average ms", "p99 ms"]
        beware = "".join(f"<p>{escaped(it['text'])}</p>" for it in self.warnings)
        samples = self.samples()
        chart = self.chart().svg() if len(samples) > 1 else ""
        return chart + table(heads, rows) + beware


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as cause:
        raise Error(f"this needs the package {name}: {cause}", f"python3 -m pip install {name}"
                    ) from cause


def _millis(latency_ns: float | None) -> float | str:
    """A latency in milliseconds; a dash where it was not measured."""
    return "–" if latency_ns is None else latency_ns / 1e6


def _figures(step: dict[str, Any]) -> dict[str, Any]:
    """Figures of a measured step: the last five rounds of a preconditioning, else all of it."""
    return step.get("settled") or step["summary"]


class Review:
    """A review: the path of its page, and the runs that the page shows."""

    def __init__(self, path: Path, runs: list[Run]) -> None:
        self.path = path
        self.runs = runs

    def html(self) -> str:
        """Returns the page, one self-contained HTML file."""
        return self.path.read_text(encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Review {self.path}, {len(self.runs)} runs>"

    def _repr_html_(self) -> str:
        return frame(self.html())


def run(
    drive: Drive,
    workload: str = "4k-rand-write",
    *,
    threads: int = 16,
    queue: int = 16,
    runtime: float | str | timedelta = "60s",
    precondition: float | str | timedelta = 0,
    rate: float | None = None,
    bs: int | str | None = None,
    compressible: float | None = None,
    trace: str | PathLike[str] | None = None,
    speed: float | None = None,
    wrap: bool = False,
    ambient: int | None = None,
    airflow: int | None = None,
    slot_power: int | str | None = None,
    fail_die: DieFailure | Sequence[DieFailure] | None = None,
    format: str | None = None,
    host: str | None = None,
    time_lapse: int | None = None,
    seed: int = 1,
    repeat: int | None = 1,
    progress: Progress | bool | None = None,
) -> Run:
    """Runs one workload on one drive. The figures equal those of ``floatgate run`` to the byte.

    ``workload`` is a name of ``workloads()``, or the path of a workload's file. ``threads`` threads
    keep ``queue`` requests outstanding each; with ``rate``, requests arrive at that many per
    second instead. ``bs`` is the transfer size of all requests, in bytes or as ``"4k"``.
    ``precondition`` and ``runtime`` are seconds, texts such as ``"6h"``, or a ``timedelta``: the
    load before the measurement, and the measurement. ``compressible`` is the percentage by which
    the data can be compressed. ``trace`` is the path of a trace to replay instead of a workload,
    ``speed`` times as fast as it was recorded, else as fast as the drive can; ``wrap`` wraps its
    addresses around the drive instead of scaling them. ``ambient`` in degrees Celsius, ``airflow``
    in linear feet per minute and ``slot_power`` in watts (or ``"external"``) are the drive's
    surroundings; ``fail_die`` is a die and when it fails, such as ``(3, "2h")``, or a list of
    these. ``format`` and ``host`` name one of the drive's; ``time_lapse`` divides the capacity, and
    with it the time that the simulation takes; by default it is that of the drive. ``seed`` chooses
    the random addresses;
    ``repeat`` measures with so many consecutive ones, for the ``spread`` of the figures, which are
    those of the first; ``None``: three if that is estimated to take less than a minute.
    ``progress`` is ``True`` for a bar, or a function that is called with a dict.
    """
    place = surroundings_of(ambient, airflow, slot_power, fail_die)
    asked = {
        "workload": text_of(workload, "workload"),
        "transfer_bytes": None if bs is None else transfer_bytes(bs, "bs"),
        "threads": whole(threads, "threads", 1, LOAD_MAX),
        "queue_per_thread": whole(queue, "queue", 1, LOAD_MAX),
        "duration_s": seconds(runtime, "runtime"),
        "precondition_s": seconds(precondition, "precondition"),
        "rate": None if rate is None else number(rate, "rate"),
        "compressible_percent": (None if compressible is None
                                 else number(compressible, "compressible")),
        "trace": None if trace is None else text_of(trace, "trace"),
        "speed": None if speed is None else number(speed, "speed"),
        "wrap": bool(wrap),
    }
    order = {
        "drive": drive_of(drive)._order(format, host, time_lapse, seed, place),
        "run": asked,
        "repeat": repeats_of(repeat),
    }
    return Run(_core.run(json.dumps(order), observer(progress)))
