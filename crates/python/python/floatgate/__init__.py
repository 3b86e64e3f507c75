"""Solid-state drives in virtual time: the enterprise test protocol on modelled drives.

>>> import floatgate as fg
>>> drive = fg.Drive.load("iodrive-duo").set("user_capacity", "480G")
>>> fg.run(drive, "4k-rand-write", precondition="6h").iops
"""

from ._application import app, replay
from ._core import MODEL_VERSION, __version__
from ._core import ArrowTable as Table
from ._drive import Drive, drives, protocols, workloads
from ._error import Error
from ._progress import Bar
from ._run import Review, Run, review, run
from ._simulator import FLUSH, READ, STATUSES, TRIM, WRITE, Completions, Simulator
from ._sweep import Sweep, measure_points, sweep

Error.__module__ = __name__

__all__ = [
    "FLUSH",
    "MODEL_VERSION",
    "READ",
    "STATUSES",
    "TRIM",
    "WRITE",
    "Bar",
    "Completions",
    "Drive",
    "Error",
    "Review",
    "Run",
    "Simulator",
    "Sweep",
    "Table",
    "__version__",
    "app",
    "drives",
    "measure_points",
    "protocols",
    "replay",
    "review",
    "run",
    "sweep",
    "workloads",
]
