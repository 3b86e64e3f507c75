"""Plans of protocols on drives, and reviews."""

from __future__ import annotations

import json
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import Any, Sequence

from . import _core
from ._drive import DieFailure, Drive, drive_of, surroundings_of
from ._error import Error
from ._executor import jobs_or_processors
from ._html import escaped, table
from ._progress import Progress, observer
from ._quantity import items, number, refuse_beside_resume, repeats_of, seconds, text_of
from ._run import Review, Run


class Plan:
    """Every step of a protocol on a drive: a value that can be pickled.

    It includes the workloads, so that another machine does not need their files.
    """

    def __init__(self, drive: Drive, setup: dict[str, Any], text: str) -> None:
        self.drive = drive
        """The drive."""
        self._setup = setup
        self._text = text
        self._values: dict[str, Any] = json.loads(text)

    @property
    def protocol(self) -> str:
        """Name of the protocol."""
        return self._values["plan"]["protocol"]

    @property
    def seed(self) -> int:
        """Seed of every random stream."""
        return self._values["plan"]["seed"]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps in order, as this drive runs them."""
        return self._values["carried_out"]["steps"]

    @property
    def targets(self) -> list[dict[str, Any]]:
        """The setups of the drive. Each one runs all steps."""
        return self._values["targets"]

    @property
    def duration_s(self) -> float:
        """Protocol time of one setup in seconds. A simulation in time lapse takes much less."""
        return self._values["duration_s"]

    def review(
        self,
        *,
        out: str | PathLike[str] = "runs",
        repeat: int | None = 1,
        jobs: int | None = None,
        progress: Progress | bool | None = None,
    ) -> Review:
        """Runs the plan ``repeat`` times with consecutive seeds, and writes run folders and a page
        to ``out``; ``None``: once, with three seeds for the ``spread`` of its figures if that is
        estimated to take less than a minute.

        A drive that is not in the catalogue is saved there too; runs refer to it by that file.
        """
        drive_order = self.drive._order(**self._setup)
        drive_order["name"] = self.drive._named_below(Path(out))
        work = {"begin": {"drive": drive_order, "plan": self._values["plan"],
                          "repeat": repeats_of(repeat)}}
        return _carried_out(work, out, jobs, progress)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and (self.drive, self._setup, self._text) == (
            other.drive, other._setup, other._text)

    def __hash__(self) -> int:
        return hash((self.drive, self._text))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Plan, (self.drive, self._setup, self._text))

    def __repr__(self) -> str:
        return f"<Plan {self.protocol} on {self.drive.name}: {len(self.steps)} steps, " \
               f"{self.duration_s / 3600:.1f} h of protocol time, {len(self.targets)} setups>"

    def _repr_html_(self) -> str:
        heads = ["id", "kind", "threads", "queue_per_thread", "duration_s"]
        rows = ([step.get(head) for head in heads] for step in self.steps)
        return f"<b>{escaped(self._values['plan']['protocol_title'])}</b>" + table(heads, rows)


def _carried_out(work: dict[str, Any], out: str | PathLike[str], jobs: int | None,
                 progress: Progress | bool | None) -> Review:
    order = {"work": work, "out": text_of(out, "out"), "jobs": jobs_or_processors(jobs)}
    path, runs = _core.review(json.dumps(order), observer(progress))
    return Review(Path(path), [Run(data) for data in runs])


def plan(
    drive: Drive,
    protocol: str = "enterprise",
    *,
    format: str = "all",
    host: str | None = None,
    time_lapse: int | None = None,
    seed: int = 1,
    trace: str | PathLike[str] | None = None,
    compressible: float | None = None,
    precondition: float | str | timedelta | None = None,
    ambient: int | None = None,
    airflow: int | None = None,
    slot_power: int | str | None = None,
    fail_die: DieFailure | Sequence[DieFailure] | None = None,
) -> Plan:
    """Plans a protocol on a drive, like ``floatgate plan``.

    Arguments are those of ``review``.
    """
    drive_of(drive)
    setup: dict[str, Any] = {
        "format": format, "host": host, "time_lapse": time_lapse, "seed": seed,
        "surroundings": surroundings_of(ambient, airflow, slot_power, fail_die),
    }
    order = drive._order(**setup)
    asked = {
        "protocol": text_of(protocol, "protocol"), "seed": order["seed"],
        "trace": None if trace is None else text_of(trace, "trace"),
        "compressible_percent": (None if compressible is None
                                 else number(compressible, "compressible")),
        "precondition_s": None if precondition is None else seconds(precondition, "precondition"),
    }
    return Plan(drive, setup, _core.plan(json.dumps({"drive": order, "review": asked})))


def review(
    drive: Drive | None = None,
    protocol: str = "enterprise",
    *,
    out: str | PathLike[str] = "runs",
    format: str = "all",
    host: str | None = None,
    time_lapse: int | None = None,
    seed: int = 1,
    repeat: int | None = 1,
    trace: str | PathLike[str] | None = None,
    compressible: float | None = None,
    precondition: float | str | timedelta | None = None,
    ambient: int | None = None,
    airflow: int | None = None,
    slot_power: int | str | None = None,
    fail_die: DieFailure | Sequence[DieFailure] | None = None,
    resume: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
) -> Review:
    """Runs a whole protocol on a drive, and writes run folders and a page to ``out``.

    A drive that is not in the catalogue is saved there too; runs refer to it by that file.

    ``protocol`` is a name of ``protocols()``, or the path of a protocol's file. ``format`` and
    ``host`` name one of the drive's, or ``"all"`` formats. ``time_lapse`` divides the capacity,
    and with it the time that the simulation takes; by default it is that of the drive. ``seed``
    chooses the random addresses; ``repeat`` makes so many runs with consecutive ones; ``None``:
    one, with three seeds for its spread if that is estimated to take less than a minute. ``trace``
    replaces the protocol's own by the trace at a path, ``compressible`` the compressibility of the
    data in percent, ``precondition`` the length of every preconditioning. ``ambient``, ``airflow``,
    ``slot_power`` and ``fail_die`` are as in ``run``. ``resume`` names interrupted runs in ``out``
    that are continued as they were ordered, instead of a drive. ``jobs`` runs are simulated in
    parallel, by default one for each processor. ``progress`` is ``True`` for a bar, or a function
    that is called with a dict.
    """
    if resume is not None:
        refuse_beside_resume({
            "drive": drive, "protocol": protocol != "enterprise", "format": format != "all",
            "host": host, "time_lapse": time_lapse, "seed": seed != 1, "repeat": repeat != 1,
            "trace": trace, "compressible": compressible, "precondition": precondition,
            "ambient": ambient, "airflow": airflow, "slot_power": slot_power, "fail_die": fail_die,
        })
        one = isinstance(resume, (str, PathLike))
        names = [text_of(name, "resume") for name in ([resume] if one else items(resume, "resume"))]
        if not names or len(set(names)) < len(names):
            raise Error(f"resume is {resume!r}", "name each interrupted run once")
        return _carried_out({"resume": names}, out, jobs, progress)
    if drive is None:
        raise Error("neither a drive nor a run to resume was given", "pass Drive.load(NAME)")
    made = plan(drive, protocol, format=format, host=host, time_lapse=time_lapse, seed=seed,
                trace=trace, compressible=compressible, precondition=precondition,
                ambient=ambient, airflow=airflow, slot_power=slot_power, fail_die=fail_die)
    return made.review(out=out, repeat=repeat, jobs=jobs, progress=progress)
