"""Applications that were recorded, on other drives."""

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
    """What an application that was recorded makes of another drive, as ``floatgate replay``."""
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
    """The rate of an application with so many clients on a drive, as ``floatgate app``.

    Goes by a recording that is built in, or by one in the folder ``recordings``.
    """
    order = _order(drive, host_speed, buffered, compressible, (format, host, time_lapse, seed))
    folder = None if recordings is None else fspath(recordings)
    return json.loads(_core.app(name, threads, order, folder))
