"""Predictions of recorded applications on other drives."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Sequence, overload

from . import _core
from ._drive import Drive, drives_of
from ._error import Error
from ._executor import executor_or_threads, jobs_or_processors
from ._progress import Progress, observer
from ._quantity import COPIES_MAX, number, text_of, whole
from ._tasks import gather

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class Options(TypedDict, total=False):
        """Options of a replay."""

        host_speed: float
        host_processors: int | None
        buffered: float
        copies: int
        keep_front_end: bool
        compressible: float
        state: Literal["settled", "filled"]
        format: str | None
        host: str | None
        time_lapse: int | None
        seed: int
        executor: Any
        batch: int | None
        out: str | PathLike[str] | None
        jobs: int | None
        progress: Progress | bool | None


def replay_one(name: str, recording: bytes, order: str) -> str:
    """Replays a recording on one drive and returns JSON: a task of ``replay`` and ``app``."""
    return _core.replay(name, recording, order)


@overload
def replay(
    recording: str | PathLike[str], drive: Drive, **options: Unpack[Options]
) -> dict[str, Any]: ...
@overload
def replay(
    recording: str | PathLike[str], drive: Sequence[Drive], **options: Unpack[Options]
) -> list[dict[str, Any]]: ...
def replay(
    recording: str | PathLike[str], drive: Drive | Sequence[Drive], **options: Unpack[Options]
) -> dict[str, Any] | list[dict[str, Any]]:
    """Predicts a recorded application on another drive, like ``floatgate trace replay``.

    Options are ``host_speed`` (1.0), ``host_processors`` (those of the recording's host),
    ``buffered`` and ``compressible`` in percent (0), ``copies`` of the recording that run at once
    (1), ``keep_front_end`` for a drive that is served as the recording's was (False), the
    ``state`` of the drive, written at random until it is ``"settled"`` or only ``"filled"``, and
    ``format``, ``host``, ``time_lapse`` and ``seed`` of the drive.

    A list of drives gives a list of results. Replays run on ``jobs`` threads, or on an
    ``executor`` with ``batch`` drives per task. The folder ``out`` stores finished results.
    """
    path = text_of(recording, "recording")
    try:
        content = Path(path).read_bytes()
    except OSError as cause:
        raise Error(f"opening {path}: {cause.strerror}",
                    "name a file that `floatgate trace record` made") from cause
    return _replay(path, content, drive, **options)


@overload
def app(
    name: str,
    drive: Drive,
    threads: int,
    *,
    recordings: str | PathLike[str] | None = ...,
    **options: Unpack[Options],
) -> dict[str, Any]: ...
@overload
def app(
    name: str,
    drive: Sequence[Drive],
    threads: int,
    *,
    recordings: str | PathLike[str] | None = ...,
    **options: Unpack[Options],
) -> list[dict[str, Any]]: ...
def app(
    name: str,
    drive: Drive | Sequence[Drive],
    threads: int,
    *,
    recordings: str | PathLike[str] | None = None,
    **options: Unpack[Options],
) -> dict[str, Any] | list[dict[str, Any]]:
    """Predicts the rate of an application with ``threads`` clients, like ``floatgate app``.

    Uses a built-in recording, or one in the folder ``recordings``. Options are those of
    ``replay``.
    """
    if recordings is not None:
        return replay(Path(recordings) / f"{name}-t{threads}.rec", drive, **options)
    content = _core.recording(text_of(name, "name"), whole(threads, "threads", 1, COPIES_MAX))
    return _replay(f"{name}-t{threads}.rec", content, drive, **options)


def _replay(
    name: str,
    content: bytes,
    drive: Drive | Sequence[Drive],
    *,
    host_speed: float = 1.0,
    host_processors: int | None = None,
    buffered: float = 0.0,
    copies: int = 1,
    keep_front_end: bool = False,
    compressible: float = 0.0,
    state: Literal["settled", "filled"] = "settled",
    format: str | None = None,
    host: str | None = None,
    time_lapse: int | None = None,
    seed: int = 1,
    executor: Any = None,
    batch: int | None = None,
    out: str | PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
) -> dict[str, Any] | list[dict[str, Any]]:
    if state not in ("settled", "filled"):
        raise Error(f"state is {state!r}", 'pass "settled" or "filled"')

    def order(drive: Drive) -> str:
        return json.dumps({
            "drive": drive._order(format, host, time_lapse, seed),
            "host_speed": number(host_speed, "host_speed"),
            "host_processors": (None if host_processors is None else
                                whole(host_processors, "host_processors", 1, COPIES_MAX)),
            "copies": whole(copies, "copies", 1, COPIES_MAX),
            "keep_front_end": bool(keep_front_end),
            "buffered_percent": number(buffered, "buffered"),
            "compressible_percent": number(compressible, "compressible"),
            "state": state,
        })

    drives = drives_of(drive)
    tasks = [(name, content, order(each)) for each in drives]
    with executor_or_threads(executor, jobs_or_processors(jobs)) as workers:
        texts = gather(replay_one, tasks, executor=workers, batch=batch, out=out,
                       progress=observer(progress))
    results = [json.loads(text) for text in texts]
    return results[0] if isinstance(drive, Drive) else results
