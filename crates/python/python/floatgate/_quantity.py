"""Values with units in the syntax of the command: ``60s``, ``4k``, ``480G``."""

from __future__ import annotations

import math
import operator
import re
from datetime import timedelta
from fractions import Fraction
from os import PathLike, fspath
from typing import Any

from ._error import Error

_SPANS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0,
          "h": 3600.0, "d": 86400.0}
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
#: Most threads, and most outstanding requests of a thread.
LOAD_MAX = 1024
REPEAT_MAX = 99
#: Most copies of a recording.
COPIES_MAX = 2**32 - 1
#: Largest seed.
SEED_MAX = 2**64 - 1
_BYTES_MAX = 2**32 - 1
_PARTS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-zµ]*)\s*")


def _split(text: str, what: str, like: str) -> tuple[str, str]:
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise Error(f"{what} is {text!r}", f"write it like {like}")
    return parts[1], parts[2].lower()


def whole(value: Any, what: str, low: int, high: int) -> int:
    """Returns a whole number from ``low`` to ``high``; NumPy's are whole numbers too."""
    try:
        number = operator.index(value)
    except (TypeError, ValueError):
        raise Error(f"{what} is {value!r}, must be a whole number") from None
    if not low <= number <= high:
        raise Error(f"{what} is {number}, must be from {low} to {high}")
    return number


def plain(value: Any, what: str) -> int | float:
    """Returns a finite number as Python's own type: NumPy's are numbers too."""
    try:
        return number(value, what) if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError):
        return number(value, what)


def number(value: Any, what: str) -> float:
    """Returns a finite number; NumPy's are numbers too."""
    try:
        exact = math.nan if isinstance(value, (str, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        exact = math.nan
    if not math.isfinite(exact):
        raise Error(f"{what} is {value!r}, must be a number")
    return exact


def seconds(value: float | str | timedelta, what: str) -> float:
    """Converts a duration to seconds: a number of seconds, a text such as ``"6h"``, or a
    ``timedelta``."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if not isinstance(value, str):
        plain = number(value, what)
        if plain < 0:
            raise Error(f"{what} is {value}, must be 0 seconds or more")
        return plain
    digits, unit = _split(value, what, "60s, 10min or 6h")
    if unit not in _SPANS:
        raise Error(f"{what} is {value!r}", "use one of the units ns, us, ms, s, min, h and d")
    # The nearest number to the decimal one: 100 us are 0.0001 s.
    scale = Fraction(str(_SPANS[unit])) if _SPANS[unit] < 1 else Fraction(_SPANS[unit])
    return number(Fraction(digits) * scale, what)


def nanoseconds(value: int | str | timedelta, what: str, high: int) -> int:
    """Converts a time to whole nanoseconds: a number of them, a text such as ``"5 us"``, or a
    ``timedelta``."""
    if isinstance(value, timedelta):
        # pandas' own have nanoseconds besides.
        value = value // timedelta(microseconds=1) * 1000 + getattr(value, "nanoseconds", 0)
    elif isinstance(value, str):
        value = round(seconds(value, what) * 1e9)
    return whole(value, what, 0, high)


def _bytes(text: str, what: str, *, binary: bool) -> Fraction:
    number, unit = _split(text, what, "4k or 128KiB" if binary else "480G or 596GiB")
    if unit.endswith("ib"):
        letter, base = unit[:-2], 1024
    elif unit.endswith("b"):
        letter, base = unit[:-1], 1000
    else:
        letter, base = unit, 1024 if binary else 1000
    if letter not in _POWERS or not unit:
        raise Error(f"{what} is {text!r}", "use one of the units k, M, G and T, or KiB and so on")
    return Fraction(number) * base ** _POWERS[letter]


def capacity_gb(value: float | str, what: str) -> int | float:
    """Converts a capacity to decimal GB: a number of GB, or a text such as ``"480G"``."""
    if isinstance(value, str):
        exact = _bytes(value, what, binary=False) / 10**9
        return int(exact) if exact.denominator == 1 else float(exact)
    return plain(value, what)


def transfer_bytes(value: int | str, what: str) -> int:
    """Converts a transfer size to bytes: a number of bytes, or a text such as ``"4k"`` (4096)."""
    if isinstance(value, str):
        exact = _bytes(value, what, binary=True)
        if exact.denominator != 1:
            raise Error(f"{what} is {value!r}, must be a whole number of bytes")
        return int(exact)
    return whole(value, what, 1, _BYTES_MAX)


def items(values: Any, what: str) -> list[Any]:
    """Returns the values of a list, an array, or a column of pandas, Polars or Arrow, as Python's
    own types."""
    if (isinstance(values, (str, bytes)) or not hasattr(values, "__iter__")
            or getattr(values, "ndim", 1) != 1):
        raise Error(f"{what} is {values!r}", "pass a list, an array or a column of values")
    for own in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, own):
            values = getattr(values, own)()
            break
    return [value.item() if hasattr(value, "item") else value for value in values]


#: Seconds of the units in which keys of a drive's file end.
_UNITS = {"_ns": 1e-9, "_us": 1e-6, "_ms": 1e-3, "_s": 1.0}


def in_unit(value: Any, key: str) -> Any:
    """Converts a value of a drive's file: NumPy's numbers, and times such as ``"5 us"`` for keys
    with a unit of time; returns any other as it is."""
    if getattr(value, "ndim", 0) != 0:
        raise Error(f"{key} is {value!r}", "pass one value")
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    # The unit of one of a list, nand.t_program_us.1, stands before its index.
    stem = key.rstrip(".0123456789")
    is_rate = stem.endswith("mb_s")
    unit = None if is_rate else next((it for it in _UNITS if stem.endswith(it)), None)
    is_time = isinstance(value, str) and any(map(str.isdigit, value))
    if unit is not None and (is_time or isinstance(value, timedelta)):
        exact = Fraction(str(seconds(value, key))) / Fraction(str(_UNITS[unit]))
        return int(exact) if exact.denominator == 1 else float(exact)
    return value


def text_of(value: Any, what: str) -> str:
    """Returns a name, or a path as text."""
    if not isinstance(value, (str, PathLike)):
        raise Error(f"{what} is {value!r}", "pass a name or a path")
    return str(fspath(value))


def refuse_beside_resume(given: dict[str, Any]) -> None:
    """Raises ``Error`` if an argument is neither ``None`` nor ``False``: work that is continued was
    ordered before."""
    beside = [name for name, value in given.items() if value is not None and value is not False]
    if beside:
        raise Error(f"{', '.join(beside)} beside resume",
                    "leave it out: what is continued keeps its order")


def repeats_of(repeat: Any) -> int | None:
    """Returns a number of repeats, or ``None`` for as many as are quick."""
    return None if repeat is None else whole(repeat, "repeat", 1, REPEAT_MAX)


def rows_of(given: Any, what: str) -> list[dict[str, Any]]:
    """Returns the rows of a table: dicts, or a table of pandas, Polars or Arrow."""
    if hasattr(given, "to_pylist"):
        rows = given.to_pylist()
    elif hasattr(given, "to_dicts"):
        rows = given.to_dicts()
    elif hasattr(given, "to_dict"):
        columns = given.to_dict() if hasattr(given, "__arrow_c_stream__") and not hasattr(
            given, "iloc") else given.to_dict("list")
        rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
    else:
        rows = list(given) if hasattr(given, "__iter__") else [given]
    for index, row in enumerate(rows, 1):
        if not hasattr(row, "keys"):
            raise Error(f"row {index} of {what} is {row!r}", "pass dicts, or a table")
    # An empty cell is None in some libraries, and not a number in others.
    return [{key: "" if value is None or value != value else value for key, value in row.items()}
            for row in rows]
