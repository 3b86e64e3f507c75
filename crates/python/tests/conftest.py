"""What the tests share: the command, and a drive in a time lapse that takes no time."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import floatgate as fg

ROOT = Path(__file__).resolve().parents[3]
#: Time lapse of the tests: the smallest drive that the model can be.
LAPSE = 64


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the project."""
    return ROOT


@pytest.fixture(scope="session")
def duo() -> fg.Drive:
    """The drive of the first example."""
    return fg.Drive.load("iodrive-duo")


@pytest.fixture(scope="session")
def command() -> str:
    """Path of the command: FLOATGATE_COMMAND, or PATH's."""
    found = os.environ.get("FLOATGATE_COMMAND") or shutil.which("floatgate")
    assert found, "set FLOATGATE_COMMAND to the command, as `cargo xtask test` does"
    return found


@pytest.fixture(scope="session")
def floatgate(command):
    """Runs the command and returns what it prints."""

    def run(*args: object, cwd: Path | None = None, failing: bool = False) -> str:
        words = [command, *map(str, args)]
        done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, check=False)
        # 3: something did not settle, which is no failure.
        assert failing or done.returncode in (0, 3), done.stderr
        return done.stdout

    return run
