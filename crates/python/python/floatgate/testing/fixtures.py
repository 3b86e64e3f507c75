"""Fixtures of pytest: ``pytest_plugins = ["floatgate.testing.fixtures"]`` in ``conftest.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from . import ServedVolume


@pytest.fixture
def served_volumes() -> Iterator[Callable[..., ServedVolume]]:
    """Makes served volumes with the arguments of ``ServedVolume``, gone after the test."""
    with ExitStack() as stack:

        def serve(*arguments: Any, **named: Any) -> ServedVolume:
            return stack.enter_context(ServedVolume(*arguments, **named))

        yield serve


@pytest.fixture
def served_volume(served_volumes: Callable[..., ServedVolume]) -> ServedVolume:
    """A served volume of 256 MB over four dies, one of them parity."""
    return served_volumes()
