"""HTML for notebooks."""

from __future__ import annotations

import html
from typing import Any, Iterable, Sequence


def escaped(value: Any) -> str:
    """Returns a value as escaped text; numbers have four digits, ``None`` is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return html.escape(", ".join(str(each) for each in value))
    return html.escape(str(value))


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a table whose numbers are right-aligned."""
    head = "".join(f"<th>{escaped(each)}</th>" for each in heads)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    align = "right" if is_number else "left"
    return f'<td style="text-align:{align}">{escaped(value)}</td>'


def frame(page: str) -> str:
    """Returns a frame that shows a whole page."""
    source = html.escape(page, quote=True)
    return f'<iframe srcdoc="{source}" width="100%" height="800" style="border:0"></iframe>'
