"""Driver of sweeps on clusters, which ``floatgate sweep --ray`` runs."""

from __future__ import annotations

import argparse
import logging
import socket
import sys
from typing import Any

from . import Error, __version__, sweep

#: Exit status after Ctrl-C.
_INTERRUPTED = 130
#: Seconds that a cluster has to answer.
_ANSWER_S = 10.0


def _cluster(address: str) -> Any:
    """Connects to a cluster of Ray, and returns the module ``ray``."""
    try:
        import ray
    except ImportError as cause:
        raise Error(f"this Python has no package ray: {cause}",
                    f"{sys.executable} -m pip install ray") from cause
    _reach(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as cause:
        raise Error(f"connecting to a cluster of Ray at {address}: {cause}",
                    "`ray start --head` starts one, and `ray status` says how it is") from cause
    return ray


def _reach(address: str) -> None:
    """Raises ``Error`` if nothing answers at ``HOST:PORT``, for which Ray waits three minutes."""
    host, separator, port = address.rpartition("://")[2].rpartition(":")
    if not (separator and port.isdecimal()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except (OSError, OverflowError) as cause:
        raise Error(f"connecting to a cluster of Ray at {address}: {cause}",
                    "`ray start --head --port 6379` starts one, whose address is HOST:6379"
                    ) from cause


def main(words: list[str] | None = None) -> int:
    """Runs a command. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m floatgate", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    resume = commands.add_parser("sweep", help="continues a sweep on a cluster")
    resume.add_argument("--resume", required=True, metavar="FOLDER", help="folder of the sweep")
    resume.add_argument("--ray", required=True, metavar="ADDRESS",
                        help="HOST:PORT of a cluster, auto, or local for one on this machine")
    resume.add_argument("--batch", type=int, metavar="N",
                        help="points a task [default: as many as take two seconds]")
    asked = parser.parse_args(words)
    try:
        ray = _cluster(asked.ray)
        done = sweep(resume=asked.resume, executor=ray, batch=asked.batch, progress=True)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Error as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    print(done.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
