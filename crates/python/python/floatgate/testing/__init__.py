"""Served volumes that misbehave on demand, for the tests of storage software.

>>> from floatgate.testing import ServedVolume
>>> with ServedVolume() as drive:
...     put_records(drive.file)
...     drive.cut_power()
...     drive.start()
...     assert records(drive.file) == acknowledged
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from .._error import Error
from .._volume import Volume

__all__ = ["ServedVolume"]

#: Seconds that a server has to open its volume, or to end.
_PATIENCE_S = 60.0


class ServedVolume:
    """A volume in a folder of its own, served by the command ``floatgate`` with faults on demand.

    It is created and served on entering a ``with`` block, and gone afterwards; ``start`` and
    ``stop`` do that by hand. Needs the command on the ``PATH``, or its path in
    ``FLOATGATE_COMMAND``.

    - ``size``: bytes that clients see, such as ``"256M"``.
    - ``dies``: number of its die files; ``protect`` as of ``floatgate volume create``.
    - ``faults``: a schedule of faults, each a dict as in docs/guide/inject-faults.md, such as
      ``{"kind": "stall", "after_commands": 1000, "stall_ms": 2000}``; or the name of one that is
      built in, such as ``"dying-drive"``, or its file. It is followed once, by the first server.
    - ``file``: false to make no file of the volume, where FUSE cannot be used.
    - ``nvme``: true to listen for NVMe/TCP hosts on a free port of the loopback.
    - ``options``: further options of ``floatgate volume serve``.
    - ``folder``: parent of the folder with everything [default: that for temporary files]. Sockets
      lie in it, whose paths have at most 107 bytes.
    """

    def __init__(
        self,
        size: str = "256M",
        *,
        dies: int = 4,
        protect: str | None = None,
        faults: str | PathLike[str] | Iterable[Mapping[str, Any]] = (),
        file: bool = True,
        nvme: bool = False,
        options: Sequence[str] = (),
        folder: str | PathLike[str] | None = None,
    ) -> None:
        self._command = _command()
        self._root = Path(tempfile.mkdtemp(prefix="floatgate-", dir=folder))
        self._server: subprocess.Popen[str] | None = None
        self._served: list[str] = []
        self._schedule: str | None = None
        self._fronts = ["--nbd", f"unix:{self._root / 'nbd.sock'}", *options]
        self._fronts += ["--nvme", "tcp:0"] if nvme else []
        if file:
            (self._root / "files").mkdir()
            self._fronts += ["--fuse", fspath(self._root / "files")]
        try:
            self._create(size, dies, protect)
            self._schedule = self._schedule_of(faults)
        except BaseException:
            self._remove()
            raise
        self.volume = Volume(fspath(self._root / "volume"))
        """The volume as the management software sees it: its status, counters and history."""

    def _create(self, size: str, dies: int, protect: str | None) -> None:
        paths = ",".join(fspath(self._root / f"die{index}.img") for index in range(dies))
        words = [self._command, "volume", "create", fspath(self._root / "volume"),
                 "--dies", paths, "--size", size, "--name", "drive"]
        words += ["--protect", protect] if protect else []
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise _failure("creating a volume", done.stderr)

    def _schedule_of(self, faults: str | PathLike[str] | Iterable[Mapping[str, Any]]) -> str | None:
        if isinstance(faults, (str, os.PathLike)):
            return fspath(faults)
        text = _toml(faults)
        if not text:
            return None
        path = self._root / "schedule.toml"
        path.write_text(text)
        return fspath(path)

    # The server

    def start(self) -> None:
        """Starts the server, and returns once clients are served. Raises ``Error`` if the volume
        cannot be opened or is served already."""
        if self._server is not None and self._server.poll() is None:
            raise Error("starting a server of a volume that is served", "stop() or kill() it first")
        words = [self._command, "volume", "serve", self.volume.path, *self._fronts, "--json",
                 "--fault-injection"]
        words += [self._schedule] if self._schedule else []
        self._schedule = None
        with open(self._root / "server.log", "a", encoding="utf-8") as log:
            self._server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._server.stdout is not None
        line = self._first_line(self._server.stdout)
        if not line:
            self._wait()
            raise _failure("serving a volume", self.log)
        [export] = json.loads(line)
        self._served = export["uris"]

    def _first_line(self, stdout: IO[str]) -> str:
        # A server prints nothing before clients are served, and closes its output when it ends.
        return stdout.readline()

    def stop(self) -> int:
        """Stops the server as an operator does, and returns its exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """Kills the server (SIGKILL), and returns its exit status."""
        return self._end(signal.SIGKILL)

    def cut_power(self) -> None:
        """Cuts the power: what no flush covers is kept, lost or torn, sector by sector, and the
        server ends. ``start`` serves the volume again."""
        self.inject("cut-power")
        self._wait()

    def _end(self, number: signal.Signals) -> int:
        if self._server is None:
            raise Error("ending the server of a volume that was not served", "start() it first")
        self._server.send_signal(number)
        return self._wait()

    def _wait(self) -> int:
        assert self._server is not None
        try:
            status = self._server.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
            raise Error(f"waiting {_PATIENCE_S:.0f} s for the server of a volume to end; "
                        "it was killed") from None
        finally:
            if self._server.stdout is not None:
                self._server.stdout.close()
        return status

    @property
    def log(self) -> str:
        """All messages of the servers so far."""
        return (self._root / "server.log").read_text(encoding="utf-8")

    # For clients

    @property
    def file(self) -> Path:
        """The volume as a file, through FUSE."""
        return Path(self._uri("/", "file=True"))

    @property
    def nbd_uri(self) -> str:
        """URI for NBD clients."""
        return self._uri("nbd+unix:", "start()")

    @property
    def nvme_uri(self) -> str:
        """Address, subsystem and namespace for NVMe/TCP hosts."""
        return self._uri("nvme+tcp:", "nvme=True")

    def _uri(self, start: str, remedy: str) -> str:
        for uri in self._served:
            if uri.startswith(start):
                return uri
        raise Error(f"looking for the client's address {start}… of a volume", f"needs {remedy}")

    # Faults

    def inject(self, kind: str, **values: int) -> None:
        """Injects a fault, with the names that a schedule has: ``inject("stall",
        stall_ms=2000)``. See ``Volume.inject``."""
        self.volume.inject(kind, **values)

    def status(self) -> dict[str, Any]:
        """Returns the status of the volume. See ``Volume.status``."""
        return self.volume.status()

    def counters(self) -> dict[str, float]:
        """Returns all numbers of the status by path. See ``Volume.counters``."""
        return self.volume.counters()

    def __enter__(self) -> ServedVolume:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.remove()

    def remove(self) -> None:
        """Stops the server and removes the volume with all its files."""
        try:
            if self._server is not None and self._server.poll() is None:
                self.stop()
        finally:
            self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    def __repr__(self) -> str:
        return f"<ServedVolume {self.volume.path}>"


def _command() -> str:
    found = os.environ.get("FLOATGATE_COMMAND") or shutil.which("floatgate")
    if not found:
        raise Error("looking for the command floatgate on the PATH",
                    "install it (README.md), or set FLOATGATE_COMMAND to its path")
    return found


def _failure(attempt: str, printed: str) -> Error:
    """The error of a command, by what it printed."""
    text, _, remedy = printed.strip().partition("\nhint: ")
    return Error(f"{attempt}: {text.removeprefix('error: ')}", remedy)


def _toml(faults: Iterable[Mapping[str, Any]]) -> str:
    """The schedule of faults as TOML; a string of JSON is one of TOML."""
    tables = []
    for fault in faults:
        rows = (f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in fault.items())
        tables.append("[[fault]]\n" + "".join(rows))
    return "\n".join(tables)
