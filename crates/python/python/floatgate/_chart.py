"""Line charts as SVG, which notebooks show inline."""

from __future__ import annotations

import html
import math
from typing import Any, Mapping, Sequence

from ._error import Error

#: Colours that people with any colour vision can distinguish (Okabe and Ito).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
#: Patterns of lines, which make a colour distinguishable when it is used again.
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4")
_WIDTH, _HEIGHT = 640, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 16, 34, 54
#: Height of a row of the legend.
_ROW = 17
#: Most points of a line for which each has a dot.
_DOTS_MAX = 30

#: Points of a line: x, numbers or names, and y.
Line = tuple[Sequence[Any], Sequence[float]]
#: Words of units with which names of figures end.
_UNITS = {"_gb_per_day": "GB a day", "_mb_s": "MB/s", "_ns": "ns", "_us": "µs", "_ms": "ms",
          "_s": "s", "_gb": "GB", "_kib": "KiB", "_percent": "%", "_c": "°C", "_w": "W",
          "_bytes": "bytes", "_years": "years"}
_RATES = {"iops": "requests a second", "write_amplification": "write amplification",
          "threads": "threads", "queue_per_thread": "outstanding requests of a thread"}


def labelled(figure: str) -> str:
    """Returns the label of an axis: the name of a figure, and its unit."""
    if figure in _RATES:
        return _RATES[figure]
    plain = figure
    for qualifier in ("_avg", "_max", "_min", "_p50", "_p90", "_p99", "_p999", "_p9999"):
        plain = plain.removesuffix(qualifier)
    unit = next((unit for end, unit in _UNITS.items() if plain.endswith(end)), None)
    return figure if unit is None else f"{figure}, {unit}"


class Chart:
    """A line chart. An axis starts at zero unless the values lie far from it. Where x are names,
    such as those of formats, they stand side by side in their order.

    >>> Chart("Write amplification", "spare, %", "", {"model": ([10, 20], [4.1, 2.7])})
    """

    def __init__(
        self, title: str, x: str, y: str, lines: Mapping[str, Line], note: str = ""
    ) -> None:
        """``x`` and ``y`` label the axes with their units; ``note`` names the source."""
        self.title = title
        self._x, self._y, self._note = x, y, note
        self._names = _names(lines)
        self._lines = {name: _clean(line, self._names) for name, line in lines.items()}
        points = [point for line in self._lines.values() for point in line]
        if not points:
            raise Error(f"the chart {title!r} has no points")
        # Half a place is left on both sides of names.
        self._ticks_x = ([-0.5, len(self._names) - 0.5] if self._names
                         else _ticks([point[0] for point in points]))
        self._ticks_y = _ticks([point[1] for point in points])

    def svg(self) -> str:
        """Returns the chart as the text of an SVG file."""
        legend, more = self._legend()
        height = _HEIGHT + more
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" font-family="system-ui, sans-serif" '
            f'font-size="12" role="img" aria-label="{html.escape(self.title, quote=True)}">',
            f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
            _text(_LEFT, 20, self.title, "start", 'font-weight="bold" font-size="14"'),
            *self._grid(),
            *(self._line(*item) for item in zip(_strokes(len(self._lines)), self._lines.items())),
            *legend,
        ]
        return "".join(parts) + "</svg>"

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<Chart {self.title}: {', '.join(self._lines)}>"

    def _place_x(self, value: float) -> float:
        low, high = self._ticks_x[0], self._ticks_x[-1]
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def _place_y(self, value: float) -> float:
        low, high = self._ticks_y[0], self._ticks_y[-1]
        return _HEIGHT - _BOTTOM - (value - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    def _shown(self, x: float) -> str:
        return html.escape(self._names[int(x)]) if self._names else f"{x:g}"

    def _grid(self) -> list[str]:
        parts = []
        for value in self._ticks_y:
            y = self._place_y(value)
            parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#dddddd"/>')
            parts.append(_text(_LEFT - 6, y + 4, _number(value), "end"))
        marks: dict[float, str] = {float(place): name for place, name in enumerate(self._names)}
        marks = marks or {it: _number(it) for it in self._ticks_x}
        for value, mark in marks.items():
            x = self._place_x(value)
            parts.append(f'<path d="M{x:.1f} {_HEIGHT - _BOTTOM}v4" stroke="#666666"/>')
            parts.append(_text(x, _HEIGHT - _BOTTOM + 17, mark, "middle"))
        parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 20, self._x, "middle"))
        middle = (_HEIGHT - _BOTTOM + _TOP) / 2
        turned = f'transform="rotate(-90 16 {middle:.0f})"'
        parts.append(_text(16, middle, self._y, "middle", turned))
        parts.append(_text(_WIDTH - _RIGHT, _HEIGHT - 2, self._note, "end",
                           'font-size="9" fill="#666666"'))
        return parts

    def _line(self, stroke: tuple[str, str], line: tuple[str, list[tuple[float, float]]]) -> str:
        name, points = line
        places = [(self._place_x(x), self._place_y(y)) for x, y in points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        colour, pattern = stroke
        svg = f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{pattern}/>'
        if len(points) <= _DOTS_MAX:
            svg += "".join(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}">'
                f'<title>{html.escape(name)}: {self._shown(at[0])}, {at[1]:g}</title></circle>'
                for (x, y), at in zip(places, points))
        return svg

    def _legend(self) -> tuple[list[str], int]:
        """Returns the names of the lines in rows below the plot, and the height of the rows."""
        if len(self._lines) < 2:
            return [], 0
        parts: list[str] = []
        x, y = float(_LEFT), float(_HEIGHT + 12)
        for (colour, pattern), name in zip(_strokes(len(self._lines)), self._lines):
            width = 7.0 * len(name) + 48
            if x > _LEFT and x + width > _WIDTH:
                x, y = float(_LEFT), y + _ROW
            parts.append(f'<path d="M{x:.1f} {y - 4:.1f}h28" stroke="{colour}" '
                         f'stroke-width="3"{pattern}/>')
            parts.append(_text(x + 33, y, name, "start"))
            x += width
        return parts, int(y) - _HEIGHT + 8


def _strokes(count: int) -> list[tuple[str, str]]:
    """Returns a colour and the attribute of a pattern for each line, no two of which are alike."""
    if count > len(_COLOURS) * len(_DASHES):
        raise Error(f"a chart has {count} lines, more than can be told apart",
                    f"draw {len(_COLOURS) * len(_DASHES)} lines at most")
    dashes = ["" if not dash else f' stroke-dasharray="{dash}"' for dash in _DASHES]
    return [(colour, dash) for dash in dashes for colour in _COLOURS][:count]


def _names(lines: Mapping[str, Line]) -> list[str]:
    """Returns the names among the x of all lines in their order; none where x are numbers."""
    xs = [x for line in lines.values() for x in line[0]]
    if not any(isinstance(x, str) for x in xs):
        return []
    return list(dict.fromkeys(map(str, xs)))


def _clean(line: Line, names: list[str]) -> list[tuple[float, float]]:
    xs, ys = line
    if len(xs) != len(ys):
        raise Error(f"a line has {len(xs)} x and {len(ys)} y", "give as many of each")
    if names:
        xs = [names.index(str(x)) for x in xs]
    points = [(float(x), float(y)) for x, y in zip(xs, ys) if x is not None and y is not None]
    return [point for point in points if all(map(math.isfinite, point))]


def _ticks(values: Sequence[float]) -> list[float]:
    """Returns about five round numbers that span the values, from zero if that is near."""
    low, high = min(values), max(values)
    if 0 <= low < 0.6 * high:
        low = 0.0
    if low == high:
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step for step in (power, 2 * power, 2.5 * power, 5 * power, 10 * power)
                if step >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def _number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}" if value == int(value) else f"{value:,}"
    return f"{round(value, 9):g}"


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    fill = "" if "fill=" in more else ' fill="#222222"'
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{fill} {more}>' \
           f'{html.escape(text)}</text>'
