"""Values with units in the syntax of the command: ``60s``, ``4k``, ``480G``."""

from __future__ import annotations

import math
import operator
import re
from fractions import Fraction
from typing import Any

from ._error import Error

_SPANS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
#: Most threads, and most outstanding requests of a thread.
LOAD_MAX = 1024
REPEAT_MAX = 99
_PARTS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def _split(text: str, what: str, like: str) -> tuple[str, str]:
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise Error(f"{what} is {text!r}", f"write it like {like}")
    return parts[1], parts[2].lower()


def whole(value: Any, what: str, low: int, high: int) -> int:
    """Returns a whole number from ``low`` to ``high``; NumPy's are whole numbers too."""
    try:
        number = operator.index(value)
    except TypeError:
        raise Error(f"{what} is {value!r}, must be a whole number") from None
    if not low <= number <= high:
        raise Error(f"{what} is {number}, must be from {low} to {high}")
    return number


def number(value: Any, what: str) -> float:
    """Returns a finite number; NumPy's are numbers too."""
    try:
        plain = float("nan") if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        plain = math.nan
    if not math.isfinite(plain):
        raise Error(f"{what} is {value!r}, must be a number")
    return plain


def seconds(value: float | str, what: str) -> float:
    """Converts a duration to seconds: a number of seconds, or a text such as ``"6h"``."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value) or value < 0:
            raise Error(f"{what} is {value}, must be 0 seconds or more")
        return float(value)
    number, unit = _split(str(value), what, "60s, 10min or 6h")
    if unit not in _SPANS:
        raise Error(f"{what} is {value!r}", "use one of the units ms, s, min, h and d")
    return float(number) * _SPANS[unit]


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
    return value


def transfer_bytes(value: int | str, what: str) -> int:
    """Converts a transfer size to bytes: a number of bytes, or a text such as ``"4k"`` (4096)."""
    if isinstance(value, str):
        exact = _bytes(value, what, binary=True)
        if exact.denominator != 1:
            raise Error(f"{what} is {value!r}, must be a whole number of bytes")
        return int(exact)
    return value
