"""Comparison of runs."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, Sequence

from . import _core
from ._error import Error
from ._html import escaped, table
from ._run import Run


class Comparison:
    """Several runs compared load by load. Ratios refer to the first run that has the load."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = list(runs)
        self._data = [run._data for run in self.runs]
        values = json.loads(_core.compare_runs(self._data))
        self.loads: list[dict[str, Any]] = values["loads"]
        """Every load that any run measured, with one entry per run, ``None`` without one."""
        self.orders: list[dict[str, Any]] = values["orders"]
        """For each workload at low, middle and full load, the runs by each metric, best first, with
        their ranks; ``withheld`` are those whose figure is in doubt."""
        self.differences: list[dict[str, Any]] = values["differences"]
        """Other differences between the runs, such as model version, time lapse and machine."""

    def rows(self) -> list[dict[str, Any]]:
        """Returns a flat dict for each load of each run, as pandas and Polars accept them.

        Where ``lacks_requests`` is true, requests are missing from the figures, so ratios and rank
        are ``None``. ``doubt`` is the text of a warning that the figures may not be the drive's
        own.
        """
        rows = []
        for load in self.loads:
            for index, entry in enumerate(load["entries"]):
                if entry is None:
                    continue
                lacking = entry.get("lacks_requests", False)
                ratios = {key: None if lacking else entry[key]
                          for key in ("iops_ratio", "latency_ratio", "rank")}
                rows.append({
                    "run": self._name(index), "kind": load["kind"], "suite": load["suite"],
                    "workload": load["workload"], "threads": load["threads"],
                    "queue_per_thread": load["queue_per_thread"],
                    "iops": entry["summary"]["iops"],
                    "latency_ns_avg": entry["summary"]["latency"].get("latency_ns_avg"),
                    **ratios, "settled": entry["settled"], "lacks_requests": lacking,
                    "doubt": entry.get("doubt"),
                })
        return rows

    def html(self) -> str:
        """Returns one page about all runs, the same as of ``floatgate compare``."""
        return _core.compare_html(self._data)

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the page."""
        path = Path(path)
        path.write_text(self.html(), encoding="utf-8")
        return path

    def _name(self, index: int) -> str:
        target = self.runs[index].values["target"]
        return self.runs[index].values["id"] or f"{target['name']} {target['format']}".strip()

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.runs)} runs under {len(self.loads)} loads>"

    def _repr_html_(self) -> str:
        rows = self.rows()
        heads = ["run", "workload", "threads", "queue_per_thread", "iops", "iops_ratio",
                 "latency_ratio", "rank", "settled", "lacks_requests"]
        beware = "".join(f"<p>{escaped(it['what'])} differs: {escaped(it['values'])}</p>"
                         for it in self.differences)
        return beware + table(heads, ([row[head] for head in heads] for row in rows))


def compare(runs: Sequence[Run | str | PathLike[str]]) -> Comparison:
    """Compares runs, which are given as values or as paths of run folders."""
    opened = [run if isinstance(run, Run) else Run.open(run) for run in runs]
    if not opened:
        raise Error("no runs are given", "give two or more")
    return Comparison(opened)
