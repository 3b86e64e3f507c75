"""Modelled drives as immutable values."""

from __future__ import annotations

import hashlib
import html
import json
import math
from datetime import timedelta
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Iterable, Sequence, Tuple, Union

from . import _core
from ._error import Error
from ._quantity import SEED_MAX, capacity_gb, in_unit, seconds, whole

#: A die and the time from the first load on at which it fails.
DieFailure = Tuple[int, Union[float, str, timedelta]]
#: Largest time lapse that can be asked for.
_TIME_LAPSE_MAX = 2**32 - 1
#: Keys that mean the user capacity of a format.
_USER_CAPACITY = {"user_capacity", "user_capacity_gb", "ftl.user_capacity"}


class Drive:
    """A modelled drive: an immutable value. Drives with the same TOML text are equal.

    >>> drive = Drive.load("iodrive-duo").set("user_capacity", "480G")
    """

    def __init__(self, text: str, name: str = "") -> None:
        """Creates a drive from the text of its TOML file; messages call it ``name``."""
        self._text = text
        self._facts: dict[str, Any] = json.loads(_core.drive_facts(name or "drive", text))
        self._name = name or self._facts["name"]

    @classmethod
    def load(cls, name: str | PathLike[str]) -> Drive:
        """Loads a drive by its name in the catalogue, or from the path of its TOML file."""
        name = fspath(name)
        return cls(_core.drive_text(name), name)

    def set(self, key: str, value: object, *, format: str | None = None) -> Drive:
        """Returns a copy with ``value`` at ``key`` of its file, such as ``nand.t_erase_us``.

        Keys with a unit of time take texts such as ``"50 us"`` and a ``timedelta``, too.

        ``user_capacity`` sets the user capacity of ``format``, by default of the first one: a
        number of decimal GB, or a text such as ``"480G"``.
        """
        if key in _USER_CAPACITY:
            value = capacity_gb(value, key)  # type: ignore[arg-type]
            key = f"format.{format or self.formats[0]}.user_gb"
        value = in_unit(value, key)
        return Drive(_core.drive_with(self._name, self._text, key, value), self._name)

    def toml(self) -> str:
        """Returns the text of the drive's TOML file."""
        return self._text

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the drive's TOML file, whose path the command accepts in place of a name."""
        path = Path(path)
        path.write_text(self._text, encoding="utf-8")
        return path

    @property
    def name(self) -> str:
        """Name of the drive, as it appears in results."""
        return self._facts["name"]

    @property
    def title(self) -> str:
        """Title of the drive, as it appears in reports."""
        return self._facts["title"]

    @property
    def formats(self) -> list[str]:
        """Names of the drive's formats; the first one is the default."""
        return list(self._facts["formats"])

    @property
    def hosts(self) -> list[str]:
        """Names of the drive's host drivers; the first one is the default."""
        return list(self._facts["hosts"])

    @property
    def is_validated(self) -> bool:
        """True if rates of the model, as it is, were compared with published ones."""
        return self._facts["validated"]

    @property
    def raw_capacity_gb(self) -> float:
        """Raw capacity of the media in decimal GB."""
        return self._facts["raw_capacity_gb"]

    @property
    def time_lapse_default(self) -> int:
        """Default time lapse of the drive."""
        return self._facts["time_lapse_default"]

    @property
    def sheet(self) -> list[dict[str, str]]:
        """Specification sheet: group, name, value and source of every number."""
        return list(self._facts["sheet"])

    @cached_property
    def _is_of_catalogue(self) -> bool:
        return self._name in _core.drives() and _core.drive_text(self._name) == self._text

    def _named_below(self, folder: Path) -> str:
        """Returns a name that runs can find: one of the catalogue, or a file in ``folder``."""
        if self._is_of_catalogue:
            return self._name
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(self._text.encode()).hexdigest()[:8]
        return str(self.save(folder / f"{self.name}-{digest}.toml"))

    def _order(
        self, format: str | None, host: str | None, time_lapse: int | None, seed: int,
        surroundings: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        beside = {} if surroundings is None else {"surroundings": surroundings}
        return {
            **beside,
            "name": self._name,
            "text": self._text,
            "format": _text(format, "format", "the name of a format"),
            "host": _text(host, "host", "the name of a host driver"),
            "time_lapse": (None if time_lapse is None
                           else whole(time_lapse, "time_lapse", 1, _TIME_LAPSE_MAX)),
            "seed": whole(seed, "seed", 0, SEED_MAX),
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


def _text(value: Any, what: str, meaning: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise Error(f"{what} is {value!r}, must be {meaning}")
    return value


def _several(fail_die: Any) -> Sequence[Any]:
    is_sequence = isinstance(fail_die, (tuple, list))
    if is_sequence and fail_die and all(isinstance(one, (tuple, list)) for one in fail_die):
        return fail_die
    return [fail_die]


def _failure(one: Any) -> dict[str, int]:
    if not (isinstance(one, (tuple, list)) and len(one) == 2):
        hint = 'pass a die and a time, such as (3, "2h"), or a list of these'
        raise Error(f"fail_die is {one!r}", hint)
    return {
        "die": whole(one[0], "fail_die", 0, 2**32 - 1),
        "after_s": whole(math.ceil(seconds(one[1], "fail_die")), "fail_die", 0, 2**63 - 1),
    }


def surroundings_of(
    ambient: int | None, airflow: int | None, slot_power: int | str | None,
    fail_die: DieFailure | Sequence[DieFailure] | None,
) -> dict[str, Any] | None:
    """Returns air, power supply and failures of dies as an order has them; ``None`` if they are
    those of a review."""
    if ambient is None and airflow is None and slot_power is None and fail_die is None:
        return None
    failures = [] if fail_die is None else [_failure(one) for one in _several(fail_die)]
    slot: Any = slot_power
    if slot_power is not None and slot_power != "external":
        slot = {"watts": whole(slot_power, "slot_power", 1, 2**16 - 1)}
    return {
        "ambient_c": None if ambient is None else whole(ambient, "ambient", -2**15, 2**15 - 1),
        "airflow_lfm": None if airflow is None else whole(airflow, "airflow", 0, 2**16 - 1),
        "slot": slot,
        "die_failures": failures,
    }


def drive_of(value: Any) -> Drive:
    """Returns the drive that a function was given.

    Raises ``Error`` if it is something else, such as the name of a drive.
    """
    if not isinstance(value, Drive):
        load = f"Drive.load({value!r})" if isinstance(value, str) else "Drive.load(NAME)"
        raise Error(f"the drive is {value!r}, which is no Drive", f"pass {load}")
    return value


def drives_of(value: Any) -> list[Drive]:
    """Returns the drives that a function was given: one, or several.

    Raises ``Error`` if one of them is something else.
    """
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    return [drive_of(it) for it in value] if several else [drive_of(value)]


def drives() -> list[str]:
    """Returns the names of the drives in the catalogue."""
    return _core.drives()


def workloads() -> dict[str, str]:
    """Returns the titles of the workloads, built-in and the user's, by name."""
    return dict(_core.workloads())


def protocols() -> dict[str, str]:
    """Returns the titles of the protocols, built-in and the user's, by name."""
    return dict(_core.protocols())
