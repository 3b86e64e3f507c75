"""A modelled drive that takes single requests, for loads that Python code generates."""

from __future__ import annotations

import array
import json
from typing import Any, NamedTuple

from . import _core
from ._drive import Drive, drive_of
from ._error import Error
from ._quantity import whole

READ = 0
"""Operation of a request that reads."""
WRITE = 1
"""Operation of a request that writes."""
TRIM = 2
"""Operation of a request that discards sectors."""
FLUSH = 3
"""Operation of a request that makes earlier writes durable; it has 0 sectors."""

#: Last time in nanoseconds, and greatest number of a thread.
_TIME_MAX = 2**63 - 1
_THREAD_MAX = 1023
STATUSES = ("ok", "out-of-range", "media-error", "read-only", "out-of-space", "powered-off")
"""Meanings of the numbers in ``Completions.status``."""


class Completions(NamedTuple):
    """Completed requests in the order of their completion: three columns of equal length.

    Each is a ``memoryview``, which ``numpy.asarray`` takes without a copy.
    """

    request: memoryview
    """Indices of the requests, from 0 in the order of submission."""
    completed_ns: memoryview
    """Times at which the host sees the completions, in nanoseconds."""
    status: memoryview
    """Status as an index of ``STATUSES``; 0 means success."""


def _column(values: Any, code: str, name: str) -> bytes:
    """Converts a column of whole numbers, an array or an iterable of ints, to bytes."""
    if hasattr(values, "astype"):
        # A NumPy array, or a column of a library that follows NumPy's interface.
        if values.dtype.kind not in "iu":
            raise Error(f"{name} have the type {values.dtype}", "pass whole numbers")
        limit = (1 << 8 * array.array(code).itemsize) - 1
        if len(values) and (values.min() < 0 or values.max() > limit):
            raise Error(f"{name} range from {values.min()} to {values.max()}",
                        f"pass values from 0 to {limit}")
        return values.astype(f"<u{array.array(code).itemsize}").tobytes()
    try:
        return array.array(code, values).tobytes()
    except (TypeError, OverflowError) as cause:
        raise Error(f"{name} is not a column of whole numbers: {cause}",
                    "pass an array, or a list of ints that are 0 or more") from cause


def _columns(time_ns: Any, op: Any, lba: Any, sectors: Any) -> tuple[bytes, bytes, bytes, bytes]:
    """Converts the columns of requests to bytes."""
    return (_column(time_ns, "Q", "times"), _column(op, "B", "ops"), _column(lba, "Q", "lbas"),
            _column(sectors, "I", "sectors"))


class Simulator:
    """A drive in virtual time, which takes requests and returns when they complete.

    Times are in nanoseconds, addresses and lengths in sectors of 512 bytes, after time lapse.
    Operations are ``READ``, ``WRITE``, ``TRIM`` and ``FLUSH``, 0 to 3; a flush has 0 sectors.
    """

    def __init__(
        self,
        drive: Drive,
        *,
        format: str | None = None,
        host: str | None = None,
        time_lapse: int | None = None,
        seed: int = 1,
    ) -> None:
        order = drive_of(drive)._order(format, host, time_lapse, seed)
        self._core = _core.Simulator(json.dumps(order))

    @property
    def sectors(self) -> int:
        """Capacity that the host sees, in sectors of 512 bytes."""
        return self._core.sectors

    @property
    def now_ns(self) -> int:
        """Current virtual time in nanoseconds."""
        return self._core.now_ns

    @property
    def outstanding(self) -> int:
        """Number of requests that have not completed."""
        return self._core.outstanding

    def submit(self, time_ns: Any, op: Any, lba: Any, sectors: Any, *, thread: int = 0
               ) -> Completions:
        """Submits requests in the order of their times. Returns those that completed meanwhile."""
        columns = _columns(time_ns, op, lba, sectors)
        return _completions(self._core.submit(columns, _thread(thread)))

    def advance(self, until_ns: int | None = None) -> Completions:
        """Advances time to ``until_ns``, or until all requests have completed. Returns those."""
        if until_ns is not None:
            until_ns = whole(until_ns, "until_ns", 0, _TIME_MAX)
        return _completions(self._core.advance(until_ns))

    def run(self, time_ns: Any, op: Any, lba: Any, sectors: Any, *, thread: int = 0) -> memoryview:
        """Submits requests, waits for all, and returns the completion time of each, in order."""
        if self.outstanding:
            raise Error(f"{self.outstanding} requests are outstanding", "advance() first")
        done = self._core.run(_columns(time_ns, op, lba, sectors), _thread(thread))
        return memoryview(done).cast("Q")

    def fill(self) -> None:
        """Writes every sector once, in order."""
        self._core.fill()

    def set_compressible(self, percent: float) -> None:
        """Sets the compressibility of the data of later writes, in percent."""
        self._core.set_compressible(percent)

    def counters(self) -> dict[str, int]:
        """Returns the counters of the media since the simulator was created."""
        return json.loads(self._core.counters())

    def copy(self) -> Simulator:
        """Returns an independent simulator in the same state, to try alternatives."""
        other = object.__new__(Simulator)
        other._core = self._core.copy()
        return other

    __copy__ = copy

    def __deepcopy__(self, _: Any) -> Simulator:
        return self.copy()

    def __repr__(self) -> str:
        return f"<Simulator of {self.sectors} sectors at {self.now_ns} ns>"


def _thread(number: int) -> int:
    return whole(number, "thread", 0, _THREAD_MAX)


def _completions(columns: list[bytearray]) -> Completions:
    requests, times, statuses = columns
    return Completions(memoryview(requests).cast("Q"), memoryview(times).cast("Q"),
                       memoryview(statuses))
