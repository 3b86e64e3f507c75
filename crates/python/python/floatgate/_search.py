"""Search for the best drive that meets limits under a load.

Optuna proposes drives in this process and learns their results (ask and tell). Each drive is
measured like a point of a sweep, here or by an executor.
"""

from __future__ import annotations

import json
import math
import uuid
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import timedelta
from os import PathLike
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from . import _core
from ._drive import Drive, drives_of
from ._error import Error
from ._executor import Executor, executor_or_threads
from ._html import table
from ._progress import Progress, observer
from ._quantity import LOAD_MAX, capacity_gb, in_unit, number, seconds, whole
from ._sweep import ALIASES, CAPACITY, flat, measure_point
from ._tasks import Clock, ResultStore, cancel, carry_out

#: Choices of one dimension: ``(low, high)``, ``(low, high, step)``, or a list of values.
Choices = Union["tuple[float | str, ...]", "list[Any]"]
#: The goal, which is minimized or maximized: the name of a figure, or a function of a trial.
Goal = Union[str, Callable[["Trial"], float]]

_LATENCY = "latency_ns_"
#: Most drives to evaluate, in all and at a time.
_COUNT_MAX = 10**9


@dataclass(frozen=True)
class Trial:
    """One drive that was evaluated."""

    number: int
    """Number of the trial, from 0."""
    drive: Drive
    """The drive before ``values`` are set."""
    values: Mapping[str, Any]
    """The chosen values, by key."""
    figures: Mapping[str, Any]
    """Figures of the settled drive, as in a row of a sweep; empty if such a drive is impossible."""
    reason: str = ""
    """Reason why such a drive is impossible; empty if it is possible."""
    misses: Mapping[str, float] = field(default_factory=dict)
    """Logarithm of the ratio by which each limit is missed; 0 or less if it is met."""
    value: float = math.nan
    """Value of the goal; not a number if such a drive is impossible."""

    @property
    def holds(self) -> bool:
        """True if the drive is possible, was in steady state, and meets every limit."""
        met = all(miss <= 0 for miss in self.misses.values())
        return not self.reason and self.figures["steady"] and met

    def row(self) -> dict[str, Any]:
        """Returns the trial as a flat dict."""
        head = {"trial": self.number, "drive": self.drive.name, **self.values}
        return {**head, "holds": self.holds, "goal": self.value, **self.figures}


class Search:
    """The result of a search: every evaluated drive, and the best one."""

    def __init__(self, trials: Sequence[Trial], sign: int, format: str | None) -> None:
        self.trials = list(trials)
        """Every evaluated drive, in the order of the search."""
        self._sign = sign
        self._format = format

    @property
    def holding(self) -> list[Trial]:
        """The trials in steady state that meet every limit, best first; ties are in the order of
        the search."""
        holding = [trial for trial in self.trials if trial.holds]
        return sorted(holding, key=lambda trial: self._sign * trial.value)

    @property
    def best(self) -> Trial:
        """The best trial among those in steady state that meet every limit."""
        holding = self.holding
        if not holding:
            raise Error(f"none of {len(self.trials)} drives meets every limit in steady state",
                        "`misses` of each trial says by how much, and its figure `steady`; widen "
                        "the space")
        return holding[0]

    @property
    def drive(self) -> Drive:
        """The drive of the best trial with its values set, without those of the load."""
        drive = self.best.drive
        for key, value in self.best.values.items():
            if key not in _OF_LOAD:
                drive = drive.set(key, value, format=self._format)
        return drive

    def rows(self) -> list[dict[str, Any]]:
        """Returns a flat dict for each trial, as pandas and Polars accept them."""
        return [trial.row() for trial in self.trials]

    def __repr__(self) -> str:
        count = f"{len(self.holding)} of {len(self.trials)}"
        return f"<Search: {count} drives meet every limit in steady state>"

    def _repr_html_(self) -> str:
        keys = list(dict.fromkeys(key for trial in self.trials for key in trial.values))
        rows = ([trial.number, trial.drive.name, *(trial.values.get(key) for key in keys),
                 trial.value, trial.figures["iops"], trial.figures["latency_ns_p99"],
                 trial.figures.get("host_limited", False)]
                for trial in self.holding[:10])
        heads = ["trial", "drive", *keys, "goal", "iops", "latency_ns_p99", "host_limited"]
        return table(heads, rows)


#: Keys that belong to the load, not to the drive.
_OF_LOAD = {"threads", "queue_per_thread", "read_percent", "compressible_percent"}


@dataclass(frozen=True)
class _Limit:
    """A figure, and the value that it must not exceed or fall below."""

    figure: str
    value: float
    is_least: bool

    @property
    def name(self) -> str:
        return f"{self.figure} {'>=' if self.is_least else '<='} {self.value:g}"

    def miss(self, figures: Mapping[str, Any]) -> float:
        found = figures.get(self.figure)
        if found is None:
            raise Error(f"no figure is called {self.figure!r}",
                        f"there are {', '.join(sorted(figures))}")
        if found <= 0 or self.value <= 0:
            raise Error(f"{self.name}: the figure is {found}", "limits and figures are above 0")
        ratio = self.value / found if self.is_least else found / self.value
        return math.log(ratio)


def _limits(at_most: Mapping[str, Any], at_least: Mapping[str, Any]) -> list[_Limit]:
    def value(figure: str, given: Any) -> float:
        if isinstance(given, (str, timedelta)) and figure.startswith(_LATENCY):
            return seconds(given, figure) * 1e9
        return number(given, figure)

    limits = [_Limit(key, value(key, given), False) for key, given in at_most.items()]
    return limits + [_Limit(key, value(key, given), True) for key, given in at_least.items()]


def _choose(trial: Any, key: str, choices: Choices) -> Any:
    """Returns the value that Optuna proposes for a dimension."""
    if isinstance(choices, list):
        return trial.suggest_categorical(key, choices)
    if not (isinstance(choices, tuple) and len(choices) in (2, 3)):
        raise Error(f"{key} may be {choices!r}", "give (low, high), (low, high, step) or a list")
    numbers: list[Any] = [capacity_gb(it, key) if key == CAPACITY else in_unit(it, key)
                          for it in choices]
    if not all(isinstance(it, (int, float)) for it in numbers):
        raise Error(f"{key} may be {choices!r}", "bounds are numbers; words go into a list")
    low, high, *step = numbers
    if low > high:
        raise Error(f"{key} may be {choices!r}", "the lower bound comes first")
    if all(isinstance(it, int) for it in numbers):
        return trial.suggest_int(key, low, high, step=step[0] if step else 1)
    return trial.suggest_float(key, low, high, step=step[0] if step else None)


class _Order:
    """An order of a sweep for each drive, from which the orders of single points are made."""

    def __init__(self, drives: Sequence[Drive], arguments: dict[str, Any],
                 setup: tuple[Any, ...]) -> None:
        self._base = []
        for drive in drives:
            # An order needs a dimension; this one changes nothing.
            dimension = {"key": "threads", "values": [arguments["threads"]]}
            whole = {"drive": drive._order(*setup), **arguments, "dimensions": [dimension],
                     "ranges": []}
            self._base.append(json.loads(_core.sweep_order(json.dumps(whole))[0]))

    def at(self, drive: int, values: Mapping[str, Any]) -> str:
        """Returns the order of the single point with these values."""
        dimensions = [{"key": key, "values": [value]} for key, value in values.items()]
        return json.dumps({**self._base[drive], "dimensions": dimensions})


def _study(seed: int) -> Any:
    try:
        import optuna
    except ImportError as cause:
        raise Error(f"searching needs the package optuna: {cause}",
                    "python3 -m pip install 'optuna>=5'") from cause
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # Dimensions interact, for example over-provisioning and the relocation policy.
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True)
    return optuna.create_study(sampler=sampler)


def _tell(study: Any, proposal: Any, trial: Trial, sign: int) -> None:
    for name, miss in trial.misses.items():
        proposal.set_constraint(name, miss)
    if trial.reason:
        # Worse than any limit is ever missed.
        proposal.set_constraint("can be", 100.0)
    elif not trial.figures["steady"]:
        proposal.set_constraint("steady state", 10.0)
    study.tell(proposal, sign * trial.value if math.isfinite(trial.value) else 1e300)


def search(
    drive: Drive | Sequence[Drive],
    space: Mapping[str, Choices],
    *,
    minimize: Optional[Goal] = None,
    maximize: Optional[Goal] = None,
    at_most: Mapping[str, Any] = {},
    at_least: Mapping[str, Any] = {},
    trials: int = 100,
    workload: str = "4k-rand-write",
    threads: int = 16,
    queue: int = 16,
    format: str | None = None,
    host: str | None = None,
    time_lapse: int | None = None,
    seed: int = 1,
    executor: Any = None,
    workers: int = 1,
    out: str | PathLike[str] | None = None,
    progress: Progress | bool | None = None,
) -> Search:
    """Searches for the best drive that meets limits under a load.

    >>> search(drive, {"user_capacity": ("400G", "720G", 20)}, maximize="user_capacity_gb",
    ...        at_most={"latency_ns_p99": "10ms"}, threads=2, queue=2)

    ``drive`` is a drive, or a list to choose from. ``space`` has the choices for each key of a
    sweep: ``(low, high)``, ``(low, high, step)``, or a list of values. The goal is a figure of the
    settled drive, a column of ``Sweep.rows()``, or a function of a ``Trial``, such as a price.
    ``at_most`` and ``at_least`` are limits of figures; latencies may be texts such as ``"1ms"``.

    The search evaluates ``trials`` drives, ``workers`` at a time, on threads or by an ``executor``.
    The same seed and number of workers find the same drive on any machine, because Optuna gets
    results in the order of its proposals. The folder ``out`` stores measurements, so that
    the same search can be continued.
    """
    if (minimize is None) == (maximize is None):
        raise Error("a search needs exactly one goal", "give either minimize or maximize")
    trials, workers = (whole(value, what, 1, _COUNT_MAX)
                       for value, what in ((trials, "trials"), (workers, "workers")))
    drives = drives_of(drive)
    if not space and len(drives) < 2:
        raise Error("nothing to search: the space is empty, and there is one drive",
                    'give choices, such as {"user_capacity": ("400G", "720G")}, or several drives')
    arguments = {"workload": workload, "threads": whole(threads, "threads", 1, LOAD_MAX),
                 "queue_per_thread": whole(queue, "queue", 1, LOAD_MAX),
                 "load_gb_per_day": None}
    setup = (format, host, time_lapse, seed)
    work = _Work(
        drives=drives,
        space={ALIASES.get(key, key): choices for key, choices in space.items()},
        goal=minimize if minimize is not None else maximize,  # type: ignore[arg-type]
        sign=1 if minimize is not None else -1,
        limits=_limits(at_most, at_least),
        order=_Order(drives, arguments, setup),
        study=_study(seed),
        store=None if out is None else ResultStore(out),
    )
    with executor_or_threads(executor, workers) as pool:
        found = work.carry_out(pool, trials, workers, observer(progress))
    return Search(found, work.sign, format)


@dataclass
class _Proposal:
    """A drive that is being measured."""

    asked: Any
    drive: int
    values: dict[str, Any]
    order: str
    task: Future[Any]


@dataclass
class _Work:
    """A search in progress."""

    drives: Sequence[Drive]
    space: Mapping[str, Choices]
    goal: Goal
    sign: int
    limits: Sequence[_Limit]
    order: _Order
    study: Any
    store: ResultStore | None
    #: Name of the search among the tasks of this process.
    scope: str = field(default_factory=lambda: uuid.uuid4().hex)
    #: Measurements by order. A drive that is proposed twice is measured once.
    tasks: dict[str, Future[Any]] = field(default_factory=dict)

    def carry_out(self, executor: Executor, trials: int, workers: int,
                  progress: Progress | None) -> list[Trial]:
        """Evaluates ``workers`` drives at a time. Optuna gets results in the order of proposals."""
        done: list[Trial] = []
        under_way: deque[_Proposal] = deque()
        clock = Clock(trials, 0)
        try:
            while len(done) < trials:
                while len(under_way) < workers and len(done) + len(under_way) < trials:
                    under_way.append(self.propose(executor))
                proposal = under_way[0]
                trial = self.trial(len(done), proposal)
                under_way.popleft()
                _tell(self.study, proposal.asked, trial, self.sign)
                done.append(trial)
                if progress:
                    progress(clock.event(len(done), "drive"))
        except BaseException:
            cancel(self.scope)
            for proposal in under_way:
                proposal.task.cancel()
            raise
        return done

    def propose(self, executor: Executor) -> _Proposal:
        """Asks for the next drive and starts to measure it."""
        asked = self.study.ask()
        index = 0
        if len(self.drives) > 1:
            index = asked.suggest_categorical("drive", list(range(len(self.drives))))
        values = {key: _choose(asked, key, choices) for key, choices in self.space.items()}
        order = self.order.at(index, values)
        if order not in self.tasks:
            self.tasks[order] = self.begin(executor, order)
        return _Proposal(asked, index, values, order, self.tasks[order])

    def begin(self, executor: Executor, order: str) -> Future[Any]:
        """Starts to measure a drive, unless a stored result exists."""
        found = self.store.find(measure_point, (order, 0)) if self.store else None
        if found is None:
            return executor.submit(carry_out, _core.MODEL_VERSION, measure_point, [(order, 0)],
                                   self.scope)
        known: Future[Any] = Future()
        known.set_result(([found], 0.0))
        return known

    def trial(self, number: int, proposal: _Proposal) -> Trial:
        """Waits for a measurement and evaluates it."""
        [text], _ = proposal.task.result()
        if self.store:
            self.store.keep(measure_point, (proposal.order, 0), text)
        point = json.loads(text)
        drive, values = self.drives[proposal.drive], proposal.values
        if point["outcome"] != "measured":
            return Trial(number, drive, values, {}, point["reason"])
        # The requested value wins over a figure of the same name.
        figures = {**flat(point), **values}
        trial = Trial(number, drive, values, figures,
                      misses={limit.name: limit.miss(figures) for limit in self.limits})
        if callable(self.goal):
            value = self.goal(trial)
        elif self.goal in figures:
            value = figures[self.goal]
        else:
            raise Error(f"no figure is called {self.goal!r}",
                        f"there are {', '.join(sorted(figures))}")
        return Trial(number, drive, values, figures, "", trial.misses, float(value))
