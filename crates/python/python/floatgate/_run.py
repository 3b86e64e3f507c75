"""Runs: one workload on one drive, whole protocols, and run folders."""

from __future__ import annotations

import json
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from . import _core
from ._chart import Chart
from ._drive import Drive, drive_of
from ._error import Error
from ._html import escaped, frame, table
from ._progress import Progress, observer
from ._quantity import LOAD_MAX, number, seconds, transfer_bytes, whole


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
        return Chart(f"{target['name']} {target['format']}: {column}", "hours", "", lines,
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
    runtime: float | str = "60s",
    precondition: float | str = 0,
    rate: float | None = None,
    bs: int | str | None = None,
    compressible: float | None = None,
    format: str | None = None,
    host: str | None = None,
    time_lapse: int | None = None,
    seed: int = 1,
    progress: Progress | bool | None = None,
) -> Run:
    """Runs one workload on one drive. The figures equal those of ``floatgate run`` to the byte.

    ``workload`` is a name of ``workloads()``, or the path of a workload's file. ``threads`` threads
    keep ``queue`` requests outstanding each; with ``rate``, requests arrive at that many per
    second instead. ``bs`` is the transfer size of all requests, in bytes or as ``"4k"``.
    ``precondition`` and ``runtime`` are seconds, or texts such as ``"6h"``: the load before the
    measurement, and the measurement. ``compressible`` is the percentage by which the data
    can be compressed. ``format`` and ``host`` name one of the drive's; ``time_lapse`` divides the
    capacity, and with it the time that the simulation takes; by default it is that of the drive.
    ``seed`` chooses the random addresses. ``progress`` is ``True`` for a bar, or a function that
    is called with a dict.
    """
    order = {
        "drive": drive_of(drive)._order(format, host, time_lapse, seed),
        "workload": workload,
        "transfer_bytes": None if bs is None else transfer_bytes(bs, "bs"),
        "threads": whole(threads, "threads", 1, LOAD_MAX),
        "queue_per_thread": whole(queue, "queue", 1, LOAD_MAX),
        "duration_s": seconds(runtime, "runtime"),
        "precondition_s": seconds(precondition, "precondition"),
        "rate": None if rate is None else number(rate, "rate"),
        "compressible_percent": (None if compressible is None
                                 else number(compressible, "compressible")),
    }
    return Run(_core.run(json.dumps(order), observer(progress)))
