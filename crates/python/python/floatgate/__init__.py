"""Solid-state drives in virtual time: the enterprise test protocol on modelled drives.

>>> import floatgate as fg
>>> drive = fg.Drive.load("iodrive-duo").set("user_capacity", "480G")
>>> fg.run(drive, "4k-rand-write", precondition="6h").iops
"""

from ._application import app, replay
from ._chart import Chart
from ._comparison import Comparison, compare
from ._core import MODEL_VERSION, __version__
from ._core import ArrowTable as Table
from ._core import Completion
from ._drive import Drive, drives, protocols, workloads
from ._error import Error, SweepWarning
from ._executor import RayExecutor
from ._fit import Fit, figures, fit
from ._plan import Plan, plan, review
from ._progress import Bar, NotebookBar
from ._run import Review, Run, run
from ._runs import import_run, runs
from ._search import Search, Trial, search
from ._simulator import FLUSH, READ, STATUSES, TRIM, WRITE, Completions, Simulator
from ._sweep import Sweep, sweep
from ._tasks import carry_out
from ._validation import Validation, cross_validate, validate, validate_rankings
from ._volume import Volume

Error.__module__ = SweepWarning.__module__ = __name__

__all__ = [
    "FLUSH",
    "MODEL_VERSION",
    "READ",
    "STATUSES",
    "TRIM",
    "WRITE",
    "Bar",
    "Chart",
    "Comparison",
    "Completion",
    "Completions",
    "Drive",
    "Error",
    "Fit",
    "NotebookBar",
    "Plan",
    "RayExecutor",
    "Review",
    "Run",
    "Search",
    "Simulator",
    "Sweep",
    "SweepWarning",
    "Table",
    "Trial",
    "Validation",
    "Volume",
    "__version__",
    "app",
    "carry_out",
    "compare",
    "cross_validate",
    "drives",
    "figures",
    "fit",
    "import_run",
    "plan",
    "protocols",
    "replay",
    "review",
    "run",
    "runs",
    "search",
    "sweep",
    "validate",
    "validate_rankings",
    "workloads",
]
