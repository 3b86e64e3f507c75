"""Reports of progress."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

#: A function that is called with a dict: ``run``, ``step``, ``step_done``, ``step_finished``,
#: ``done`` (0 to 1), ``left_s`` and ``text``.
Progress = Callable[[dict[str, Any]], None]


class Bar:
    """A line on stderr with the progress, for terminals and notebooks."""

    def __call__(self, event: dict[str, Any]) -> None:
        left = event["left_s"]
        parts = [
            f"{event['done'] * 100:3.0f} %",
            "" if left is None else f"{left:.0f} s left",
            event["text"],
            f"{event['run']} {event['step']}".strip(),
        ]
        line = "  ".join(part for part in parts if part)[:78]
        end = "\n" if event["done"] >= 1 and event["step_finished"] else ""
        sys.stderr.write(f"\r{line:<78}{end}")
        sys.stderr.flush()


def observer(progress: Progress | bool | None) -> Optional[Progress]:
    """Returns the function to call with progress: ``True`` means a bar."""
    if progress is True:
        return Bar()
    return progress or None
