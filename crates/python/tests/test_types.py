"""The package is typed: its sources, its stubs beside the compiled half, and what users write."""

import inspect
import subprocess
import sys

import pytest
from conftest import ROOT

import floatgate as fg

pytest.importorskip("mypy", reason="mypy is not installed: pip install mypy")

PACKAGE = ROOT / "crates" / "python"
USE = '''
import floatgate as fg

drive: fg.Drive = fg.Drive.load("iodrive-duo").set("user_capacity", "480G")
one: fg.Fit = fg.fit(drive, free=["controller.read_us"], search=0)
several: list[fg.Fit] = fg.fit([drive], free={"controller.read_us": (5, 20)})
rate: float = fg.run(drive, precondition="1h").iops
counters: dict[str, float] = fg.Volume.open("volume").counters()
'''
#: What the checker must refuse, line by line.
MISUSE = ["fg.run('iodrive-duo')", "fg.fit(drive, searching=3)", "drive.set(1, 2)",
          "fg.fit([drive]).drive"]


def undocumented(owner):
    """Public functions, methods and properties of a class without a docstring."""
    for name, member in vars(owner).items():
        inner = getattr(member, "fget", None) or getattr(member, "func", None) or member
        inner = getattr(inner, "__func__", inner)
        if not name.startswith("_") and callable(inner) and not inspect.getdoc(inner):
            yield f"{owner.__name__}.{name}"


def test_every_public_item_is_documented():
    items = [item for name in fg.__all__ if callable(item := getattr(fg, name))]
    missing = [item.__name__ for item in items if not item.__doc__]
    for item in filter(inspect.isclass, items):
        missing += undocumented(item)
    assert len(items) > 20 and missing == []


def mypy(*words, cwd, path=""):
    command = [sys.executable, "-m", "mypy", "--config-file", PACKAGE / "pyproject.toml", *words]
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True,
                          check=False, env={"MYPYPATH": path, "MYPY_CACHE_DIR": str(cwd)})
    return done.stdout + done.stderr


def test_sources_are_typed(tmp_path):
    said = mypy("-p", "floatgate", cwd=tmp_path, path=str(PACKAGE / "python"))
    assert said.startswith("Success"), said


def test_use_is_checked_against_the_installed_package(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    assert mypy("use.py", cwd=tmp_path).startswith("Success"), mypy("use.py", cwd=tmp_path)
    (tmp_path / "misuse.py").write_text(USE + "\n".join(MISUSE))
    said = mypy("misuse.py", cwd=tmp_path)
    lines = USE.count("\n") + 1
    for index in range(len(MISUSE)):
        assert f"misuse.py:{lines + index}: error" in said, (MISUSE[index], said)


def test_stubs_are_those_of_the_compiled_half(tmp_path):
    allowed = tmp_path / "allowed"
    allowed.write_text("floatgate._core.__all__\n")
    command = [sys.executable, "-m", "mypy.stubtest", "floatgate._core", "--concise",
               "--ignore-positional-only", "--allowlist", allowed]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
