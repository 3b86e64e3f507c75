"""Drives as values."""

from __future__ import annotations

import hashlib
import html
import json
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from . import _core
from ._quantity import capacity_gb

#: Keys that stand for the user capacity of a format.
_USER_CAPACITY = {"user_capacity", "user_capacity_gb", "ftl.user_capacity"}


class Drive:
    """A modelled drive: a value that is never changed, equal to every drive of the same text.

    >>> drive = Drive.load("iodrive-duo").set("user_capacity", "480G")
    """

    def __init__(self, text: str, name: str = "") -> None:
        """The drive in the text of a drive's TOML file; ``name`` stands for it in messages."""
        self._text = text
        self._facts: dict[str, Any] = json.loads(_core.drive_facts(name or "drive", text))
        self._name = name or self._facts["name"]

    @classmethod
    def load(cls, name: str | PathLike[str]) -> Drive:
        """The drive of the catalogue with this name, or the one in this TOML file."""
        name = fspath(name)
        return cls(_core.drive_text(name), name)

    def set(self, key: str, value: object, *, format: str | None = None) -> Drive:
        """Another drive, with ``value`` at ``key`` of its file, such as ``nand.t_erase_us``.

        ``user_capacity`` is that of a format, the first one where none is named: a number of
        decimal GB, or a text such as ``"480G"``.
        """
        if key in _USER_CAPACITY:
            value = capacity_gb(value, key)  # type: ignore[arg-type]
            key = f"format.{format or self.formats[0]}.user_gb"
        # NumPy's numbers are none of Python's.
        if hasattr(value, "item") and not isinstance(value, (str, bytes)):
            value = value.item()
        return Drive(_core.drive_with(self._name, self._text, key, value), self._name)

    def toml(self) -> str:
        """The text of its file."""
        return self._text

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes its file, which the command takes in the place of a name."""
        path = Path(path)
        path.write_text(self._text, encoding="utf-8")
        return path

    @property
    def name(self) -> str:
        """Its name, as results have it."""
        return self._facts["name"]

    @property
    def title(self) -> str:
        """Its heading on a report."""
        return self._facts["title"]

    @property
    def formats(self) -> list[str]:
        """Names of its formats; the first one is used where none is named."""
        return list(self._facts["formats"])

    @property
    def hosts(self) -> list[str]:
        """Names of its host drivers; the first one is used where none is named."""
        return list(self._facts["hosts"])

    @property
    def is_validated(self) -> bool:
        """True if its rates have been compared with published ones."""
        return self._facts["validated"]

    @property
    def raw_capacity_gb(self) -> float:
        """All of its media, in decimal GB."""
        return self._facts["raw_capacity_gb"]

    @property
    def time_lapse_default(self) -> int:
        """The time lapse at which it runs where none is named."""
        return self._facts["time_lapse_default"]

    @property
    def sheet(self) -> list[dict[str, str]]:
        """Its specification sheet: group, name, value and source of every number."""
        return list(self._facts["sheet"])

    @cached_property
    def _is_of_catalogue(self) -> bool:
        return self._name in _core.drives() and _core.drive_text(self._name) == self._text

    def _named_below(self, folder: Path) -> str:
        """A name by which runs find it again: that of the catalogue, or a file in ``folder``."""
        if self._is_of_catalogue:
            return self._name
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(self._text.encode()).hexdigest()[:8]
        return str(self.save(folder / f"{self.name}-{digest}.toml"))

    def _order(
        self, format: str | None, host: str | None, time_lapse: int | None, seed: int
    ) -> dict[str, Any]:
        return {
            "name": self._name,
            "text": self._text,
            "format": format,
            "host": host,
            "time_lapse": time_lapse,
            "seed": seed,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Drive) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Drive, (self._text, self._name))

    def __repr__(self) -> str:
        return f"<Drive {self.name}: {self.title}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(row[key])}</td>" for key in row) + "</tr>"
            for row in ({k: f[k] for k in ("group", "name", "value", "source")} for f in self.sheet)
        )
        return f"<b>{html.escape(self.title)}</b><table>{rows}</table>"


def drives() -> list[str]:
    """Names of the drives of the catalogue."""
    return _core.drives()


def workloads() -> dict[str, str]:
    """Titles of the workloads, built in and of the user, by name."""
    return dict(_core.workloads())


def protocols() -> dict[str, str]:
    """Titles of the protocols, built in and of the user, by name."""
    return dict(_core.protocols())
