"""The exception of this package, and its warning."""

from __future__ import annotations


class Error(Exception):
    """A failure: ``text`` describes it, and ``remedy`` says what to do about it."""

    def __init__(self, text: str, remedy: str = "") -> None:
        # Both are arguments, so that pickling an exception keeps them.
        super().__init__(text, remedy)
        self.text = text
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.text}\nhint: {self.remedy}" if self.remedy else self.text


class SweepWarning(UserWarning):
    """Points of a sweep at which no drive can be set up."""
