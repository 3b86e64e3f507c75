"""A modelled drive that takes single requests, for loads that Python code generates."""

from __future__ import annotations

import array
import json
from datetime import timedelta
from typing import Any, Callable, NamedTuple, Optional, Union, cast

from . import _core
from ._core import Completion
from ._drive import Drive, drive_of
from ._error import Error
from ._quantity import LOAD_MAX, nanoseconds, number, whole

READ = 0
"""Operation of a request that reads."""
WRITE = 1
"""Operation of a request that writes."""
TRIM = 2
"""Operation of a request that discards sectors."""
FLUSH = 3
"""Operation of a request that makes earlier writes durable; it has 0 sectors."""

#: Last time in nanoseconds, and greatest number of a thread.
_TIME_MAX = 2**59 - 1
_THREAD_MAX = 1023
STATUSES = _core.STATUSES
"""Meanings of the numbers in ``Completions.status``."""


#: A time: nanoseconds, a text such as ``"5 us"``, or a ``timedelta``.
Time = Union[int, str, timedelta]
#: Returns the request that follows a completion: operation, address and length.
NextRequest = Callable[[int, Optional[Completion]], "tuple[int, int, int] | None"]
#: Returns columns of requests: operations, addresses and lengths.
NextRequests = Callable[["Completions"], "tuple[Any, Any, Any] | None"]


class Completions(NamedTuple):
    """Completed requests in the order of their completion: columns of equal length.

    Each is a ``memoryview``, which ``numpy.asarray`` takes without a copy.
    """

    request: memoryview
    """Numbers of the requests, from 0 in the order of submission to this simulator."""
    completed_ns: memoryview
    """Times at which the host sees the completions, in nanoseconds."""
    status: memoryview
    """Status as an index of ``STATUSES``; 0 means success."""
    submitted_ns: memoryview
    """Times at which the requests were submitted, in nanoseconds."""

    def __reduce__(self) -> tuple[Any, tuple[tuple[bytearray, int]]]:
        # A memoryview cannot be pickled, and columns are sent from worker to worker.
        columns = (self.request, self.completed_ns, self.submitted_ns, self.status)
        return _completions, ((bytearray().join(columns), len(self.status)),)


def _column(values: Any, code: str, name: str) -> bytes:
    """Converts a column of whole numbers, an array or an iterable of ints, to bytes."""
    if hasattr(values, "to_pylist"):
        # A column of pyarrow: it has no array where values are missing or no numbers.
        values = values.to_pylist()
    elif hasattr(values, "to_numpy"):
        # A column of pandas or Polars.
        values = values.to_numpy()
    if getattr(values, "ndim", 1) != 1:
        raise Error(f"{name} have {values.ndim} dimensions", "pass a column of one")
    if hasattr(values, "astype") and len(values):
        # A NumPy array, or a column of a library that follows NumPy's interface.
        if values.dtype.kind not in "iu":
            raise Error(f"{name} have the type {values.dtype}", "pass whole numbers")
        limit = (1 << 8 * array.array(code).itemsize) - 1
        if values.min() < 0 or values.max() > limit:
            raise Error(f"{name} range from {values.min()} to {values.max()}",
                        f"pass values from 0 to {limit}")
        return values.astype(f"<u{array.array(code).itemsize}", copy=False).tobytes()
    try:
        return array.array(code, values).tobytes()
    except (TypeError, ValueError, OverflowError) as cause:
        raise Error(f"{name} are not a column of whole numbers: {cause}",
                    "pass an array, or a list of ints that are 0 or more") from cause


def _requests(op: Any, lba: Any, sectors: Any) -> tuple[bytes, bytes, bytes]:
    """Converts the columns of requests without times to bytes."""
    return _column(op, "B", "ops"), _column(lba, "Q", "lbas"), _column(sectors, "I", "sectors")


def _columns(time_ns: Any, op: Any, lba: Any, sectors: Any) -> tuple[bytes, bytes, bytes, bytes]:
    """Converts the columns of requests to bytes."""
    return (_column(time_ns, "Q", "times"), *_requests(op, lba, sectors))


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
    def submitted(self) -> int:
        """Number of requests that were submitted, which is the number of the next one."""
        return self._core.submitted

    @property
    def outstanding(self) -> int:
        """Number of requests that have not completed."""
        return self._core.outstanding

    def submit(self, time_ns: Any, op: Any, lba: Any, sectors: Any, *, thread: int = 0
               ) -> Completions:
        """Submits requests in the order of their times. Returns those that completed before the
        last of them."""
        columns = _columns(time_ns, op, lba, sectors)
        return _completions(self._core.submit(columns, _thread(thread)))

    def advance(self, until_ns: Time | None = None) -> Completions:
        """Advances time to ``until_ns``, or until all requests have completed. Returns those that
        completed by then."""
        if until_ns is not None:
            until_ns = nanoseconds(until_ns, "until_ns", _TIME_MAX)
        return _completions(self._core.advance(until_ns))

    def next_completion(self) -> Completion | None:
        """Advances time to the next completion; ``None`` if no request is outstanding."""
        return self._core.next_completion()

    def run(self, time_ns: Any, op: Any, lba: Any, sectors: Any, *, thread: int = 0,
            errors: str = "raise") -> Completions:
        """Submits requests, waits for all, and returns their completions, in the order of the
        requests.

        The first request that fails, such as one beyond the drive, raises ``Error`` once all have
        completed, unless ``errors`` is ``"return"``.
        """
        return _completions(self._core.run(_columns(time_ns, op, lba, sectors), _thread(thread),
                                           _is_strict(errors)))

    def closed_loop(
        self,
        next_request: NextRequest | NextRequests | tuple[Any, Any, Any],
        *,
        threads: int = 16,
        queue: int = 16,
        requests: int | None = None,
        until_ns: Time | None = None,
        columns: bool = False,
        errors: str = "raise",
    ) -> Completions:
        """Keeps ``queue`` requests of each of ``threads`` outstanding until there are no more, and
        returns all completions.

        ``next_request(thread, done)`` returns the next request of a thread, ``(op, lba, sectors)``,
        or ``None`` to submit one less from then on. ``done`` is the completion that it follows, and
        ``None`` at first. With ``columns=True`` it is ``next_request(completions)`` and returns
        three columns of such requests, which threads take in turn; it is called again when they
        have run out. Columns of all requests can be given instead of a function.

        At most ``requests`` are submitted, none at ``until_ns`` or later. ``errors`` is as in
        ``run``.
        """
        shape = (whole(threads, "threads", 1, LOAD_MAX), whole(queue, "queue", 1, LOAD_MAX),
                 None if requests is None else whole(requests, "requests", 0, _TIME_MAX),
                 None if until_ns is None else nanoseconds(until_ns, "until_ns", _TIME_MAX))
        ways = (shape, _is_strict(errors))
        if not callable(next_request):
            given = _triple(next_request, "next_request")
            return _completions(self._core.closed_loop(*ways, (None, _requests(*given), None)))
        if not columns:
            return _completions(self._core.closed_loop(*ways, (next_request, None, None)))

        def next_requests(done: tuple[bytearray, int]) -> tuple[bytes, bytes, bytes] | None:
            given = cast(NextRequests, next_request)(_completions(done))
            return None if given is None else _requests(*_triple(given, "the result"))

        return _completions(self._core.closed_loop(*ways, (None, None, next_requests)))

    def fill(self) -> None:
        """Writes every sector once, in order."""
        self._core.fill()

    def set_compressible(self, percent: float) -> None:
        """Sets the compressibility of the data of later writes, in percent."""
        self._core.set_compressible(number(percent, "percent"))

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


def _is_strict(errors: str) -> bool:
    if errors not in ("raise", "return"):
        raise Error(f"errors is {errors!r}", 'pass "raise" or "return"')
    return errors == "raise"


def _triple(columns: Any, what: str) -> tuple[Any, Any, Any]:
    """Returns the three columns of requests without times."""
    if not isinstance(columns, (tuple, list)) or len(columns) != 3:
        raise Error(f"{what} is no triple of columns",
                    "pass three columns: operations, addresses, lengths")
    return columns[0], columns[1], columns[2]


def _completions(block_and_count: tuple[bytearray, int]) -> Completions:
    """Returns the columns of a block with room for some completions, 25 bytes for each."""
    if not block_and_count[1]:
        return _NO_COMPLETIONS  # Most calls that submit one request complete none.
    block, count = memoryview(block_and_count[0]), block_and_count[1]
    room = len(block) // 25
    request, completed, submitted = (
        block[8 * room * index :][: 8 * count].cast("Q") for index in range(3))
    return Completions(request, completed, block[24 * room :][:count], submitted)


_NO_COMPLETIONS = Completions(memoryview(b"").cast("Q"), memoryview(b"").cast("Q"),
                              memoryview(b""), memoryview(b"").cast("Q"))
