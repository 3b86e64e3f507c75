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
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any

from .._error import Error
from .._volume import Volume

__all__ = ["ServedVolume"]

#: Seconds that a server has to open its volume, or to end.
_PATIENCE_S = 60.0
#: Seconds that the files of a server have to be gone once it has ended.
_UNMOUNT_PATIENCE_S = 10.0
#: Lines of a server that an error has at most.
_LINES_MAX = 10


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
        self._server: subprocess.Popen[bytes] | None = None
        self._log_bytes = 0
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

    def start(self, timeout_s: float = _PATIENCE_S) -> None:
        """Starts the server, and returns once clients are served. Raises ``Error`` if the volume
        cannot be opened or is served already, or if no clients are served within ``timeout_s``
        seconds: that server is killed."""
        if self._server is not None and self._server.poll() is None:
            raise Error("starting a server of a volume that is served", "stop() or kill() it first")
        words = [self._command, "volume", "serve", self.volume.path, *self._fronts, "--json",
                 "--fault-injection"]
        words += [self._schedule] if self._schedule else []
        self._schedule = None
        with open(self._root / "server.log", "ab") as log:
            self._log_bytes = log.tell()
            self._server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log)
        line = self._first_line(self._server, timeout_s)
        if not line:
            self._wait()
            raise _failure("serving a volume", self._last_log())
        [export] = json.loads(line)
        self._served = export["uris"]

    def _first_line(self, server: subprocess.Popen[bytes], timeout_s: float) -> bytes:
        """The line that a server prints once clients are served; empty if it ends before that."""
        assert server.stdout is not None
        line, until = b"", time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(server.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, until - time.monotonic())):
                    server.kill()
                    self._wait()
                    lines = "\n".join(self._last_log().splitlines()[-_LINES_MAX:])
                    raise Error(f"serving a volume: no clients were served within {timeout_s:g} s, "
                                f"so the server was killed; its last lines: {lines or 'none'}",
                                "a slow machine needs a longer timeout_s of start()")
                part = os.read(server.stdout.fileno(), 1 << 16)
                if not part:
                    return b""
                line += part
        return line

    def _last_log(self) -> str:
        """The messages of the server that was started last."""
        whole = (self._root / "server.log").read_bytes()
        return whole[self._log_bytes:].decode(errors="replace")

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
            self._await_unmount()
        return status

    def _await_unmount(self) -> None:
        """Waits until the files of a server that has ended are gone: one that was killed leaves
        that to another process."""
        files, until = self._root / "files", time.monotonic() + _UNMOUNT_PATIENCE_S
        while _is_mounted(files) and time.monotonic() < until:
            time.sleep(0.01)
        if not _is_mounted(files):
            return
        words = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-u", "-z"]
        done = subprocess.run([*words, files], capture_output=True, text=True, check=False)
        if _is_mounted(files):
            raise Error(f"unmounting {files} of a server that ended: {done.stderr.strip()}",
                        "end what uses it, and unmount it by hand")

    @property
    def log(self) -> str:
        """All messages of the servers so far."""
        return (self._root / "server.log").read_text(encoding="utf-8", errors="replace")

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

    def inject(self, kind: str, /, **values: int) -> None:
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


def _is_mounted(folder: Path) -> bool:
    """True if a file system is mounted there, even one whose server is gone: of that, the system
    tells no more than its line here."""
    wanted = os.fsencode(os.path.realpath(folder.parent) + "/" + folder.name)
    mounts = Path("/proc/self/mountinfo").read_bytes().splitlines()
    # Spaces and the like are octal.
    places = (re.sub(rb"\\([0-7]{3})", lambda it: bytes([int(it[1], 8)]), mount.split(b" ")[4])
              for mount in mounts)
    return wanted in places


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
