"""The package takes every option of the command, but for those with a reason."""

import inspect
import re

import pytest

import floatgate as fg

#: Names of arguments that differ from those of the options.
RENAMED = {
    "run": {}, "review": {}, "plan": {}, "validate": {},
    "sweep": {"user-capacity": "grid", "read-percent": "grid", "compressible": "grid",
              "set": "grid", "ray": "executor"},
    "fit": {"dir": "run"}, "replay": {}, "app": {}, "compare": {}, "import_run": {"dir": "out"},
}
#: Reasons why an option of any command is no argument.
EVERYWHERE = {
    "help": "of the command line",
    "version": "floatgate.__version__",
    "json": "results are values",
    "full-scale": "time_lapse=1",
    "require-steady": "an exit status; results say whether they are steady",
    "overwrite": "results are returned, not written to a file",
    "destroy": "a real drive: only the command writes to one",
    "read-only": "a real drive", "purge": "a real drive", "size": "a real drive",
    "precision": "sampling is the command's, until reviews use it by default",
    "temperature-max": "a real drive", "tune": "a real drive", "client": "a real drive",
}
#: Options of one command that are no argument.
EXCEPTIONS = {
    "run": {"out": "Run is a value that can be pickled; review() stores"},
    "review": {"one-page": "a page for paper, which the command writes"},
    "plan": {},
    "fit": {},
    "validate": {"cross": "cross_validate()", "from": "Validation.rows are values",
                 "rankings": "validate_rankings()",
                 "at-least": "an exit status"},
    "replay": {},
    "app": {"memory": "runs the application", "mkfs": "runs the application",
            "runtime": "runs the application", "set": "runs the application",
            "timing": "runs the application", "model": "drives are values",
            "ambient": "runs the application", "airflow": "runs the application",
            "slot-power": "runs the application"},
    "compare": {"dir": "paths of runs", "out": "Comparison.save",
                "one-page": "a page for paper, which the command writes",
                "price": "arithmetic on Comparison.rows",
                "fail-if": "an exit status; Comparison.rows has the ratios"},
    "sweep": {"price": "arithmetic on the columns of a Sweep"}, "import_run": {},
}
#: Arguments of functions whose signature is that of a part.
SIGNATURES = {"replay": fg._application._replay, "app": fg._application._replay}


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_every_option_is_an_argument_or_an_exception_with_a_reason(floatgate, name):
    words = {"replay": ["trace", "replay"], "import_run": ["runs", "import"]}.get(name, [name])
    options = set(re.findall(r"^ +(?:-\w, )?--([a-z][a-z0-9-]*)", floatgate(*words, "--help"),
                             re.MULTILINE))
    assert len(options) >= 3
    arguments = set()
    for function in (getattr(fg, name), SIGNATURES.get(name)):
        arguments |= set(inspect.signature(function).parameters) if function else set()
    missing = {option for option in options
               if RENAMED[name].get(option, option.replace("-", "_")) not in arguments}
    excused = {**EVERYWHERE, **EXCEPTIONS[name]}
    assert missing <= set(excused), missing - set(excused)
    needless = set(EXCEPTIONS[name]) - missing
    assert not needless, f"{name}: {needless} are arguments by now, or no option any more"
