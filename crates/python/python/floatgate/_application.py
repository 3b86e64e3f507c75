"""Predictions of recorded applications on other drives."""

from __future__ import annotations

import json
from os import PathLike, fspath
from typing import Any

from . import _core
from ._drive import Drive


def _order(
    drive: Drive,
    host_speed: float,
    buffered: float,
    compressible: float,
    setup: tuple[str | None, str | None, int | None, int],
) -> str:
    return json.dumps({
        "drive": drive._order(*setup),
        "host_speed": host_speed,
        "buffered_percent": buffered,
        "compressible_percent": compressible,
    })


def replay(
    recording: str | PathLike[str],
    drive: Drive,
    *,
    host_speed: float = 1.0,
    buffered: float = 0.0,
    compressible: float = 0.0,
    format: str | None = None,
    host: str | None = None,
    time_lapse: int | None = None,
    seed: int = 1,
) -> dict[str, Any]:
    """Predicts a recorded application on another drive, like ``floatgate replay``."""
    order = _order(drive, host_speed, buffered, compressible, (format, host, time_lapse, seed))
    return json.loads(_core.replay(fspath(recording), order))


def app(
    name: str,
    drive: Drive,
    threads: int,
    *,
    recordings: str | PathLike[str] | None = None,
    host_speed: float = 1.0,
    buffered: float = 0.0,
    compressible: float = 0.0,
    format: str | None = None,
    host: str | None = None,
    time_lapse: int | None = None,
    seed: int = 1,
) -> dict[str, Any]:
    """Predicts the rate of an application with ``threads`` clients, like ``floatgate app``.

    Uses a built-in recording, or one in the folder ``recordings``.
    """
    order = _order(drive, host_speed, buffered, compressible, (format, host, time_lapse, seed))
    folder = None if recordings is None else fspath(recordings)
    return json.loads(_core.app(name, threads, order, folder))
