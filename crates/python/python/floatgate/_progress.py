"""Reports of progress."""

from __future__ import annotations

import html
import sys
import time
from typing import Any, Callable, Optional

from ._error import Error

#: A function that is called with a dict: ``run``, ``step``, ``step_done``, ``step_finished``,
#: ``done`` (0 to 1), ``left_s`` and ``text``.
Progress = Callable[[dict[str, Any]], None]

#: Seconds between two lines if stderr is no terminal.
_BETWEEN_S = 10.0


def _line(event: dict[str, Any]) -> str:
    left = event["left_s"]
    parts = [
        f"{event['done'] * 100:3.0f} %",
        "" if left is None else f"{left:.0f} s left",
        event["text"],
        f"{event['run']} {event['step']}".strip(),
    ]
    return "  ".join(part for part in parts if part)


def _is_end(event: dict[str, Any]) -> bool:
    return event["done"] >= 1 and event["step_finished"]


class Bar:
    """Progress on stderr: one line that changes on a terminal, a new line every ten seconds
    elsewhere."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._written_at = -_BETWEEN_S

    def __call__(self, event: dict[str, Any]) -> None:
        line = _line(event)
        if self._is_terminal:
            end = "\n" if _is_end(event) else ""
            sys.stderr.write(f"\r{line[:78]:<78}{end}")
        elif _is_end(event) or time.monotonic() - self._written_at >= _BETWEEN_S:
            self._written_at = time.monotonic()
            sys.stderr.write(line + "\n")
        sys.stderr.flush()


class NotebookBar:
    """A progress bar below the cell of a notebook, which is removed at the end."""

    def __init__(self) -> None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        show: Any = display
        self._shown = show(_Html(""), display_id=True)

    def __call__(self, event: dict[str, Any]) -> None:
        if _is_end(event):
            self._shown.update(_Html(""))
            return
        bar = f'<progress value="{event["done"]:.4f}" style="width:16em"></progress>'
        self._shown.update(_Html(f"{bar} {html.escape(_line(event))}"))


class _Html:
    """HTML for a notebook."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return ""


def _is_notebook() -> bool:
    """Returns true in the kernel of a notebook. IPython on a terminal has no kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def observer(progress: Progress | bool | None) -> Optional[Progress]:
    """Returns the function to call with progress: ``True`` means a bar."""
    if progress is True:
        return NotebookBar() if _is_notebook() else Bar()
    if progress and not callable(progress):
        raise Error(f"progress is {progress!r}", "pass True for a bar, or a function of a dict")
    return progress or None
