"""Live volumes: what their servers say of them, or their dies."""

from __future__ import annotations

import json
from os import PathLike, fspath
from typing import Any

from . import _core
from ._html import escaped, table


class Volume:
    """A volume that ``floatgate create`` made, served or closed. Nothing of it is changed.

    >>> volume = Volume.open("volume")
    >>> volume.status()["health"]["state"]
    """

    def __init__(self, path: str) -> None:
        #: Path of its folder.
        self.path = path

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Volume:
        """The volume in a folder. Fails if there is none, or its dies cannot be read."""
        volume = cls(fspath(path))
        volume.status()
        return volume

    def status(self) -> dict[str, Any]:
        """Its status, as docs/reference/status.md describes it: what its server says, or its dies
        where nobody serves it."""
        return json.loads(_core.volume_status(self.path))

    def counters(self) -> dict[str, float]:
        """The numbers of its status, by path: ``writes.host_bytes``, ``smart.power_cycles``.

        Two looks at them and the time between make rates. Numbers that are not known, such as the
        traffic of a volume that nobody serves, are absent.
        """
        counters: dict[str, float] = {}
        _flatten("", self.status(), counters)
        return counters

    def history(self, span: str = "1h") -> list[dict[str, Any]]:
        """What its server did over the last ``2min``, ``1h`` or ``24h``: a flat dict a step, the
        latest last, such as pandas and Polars take."""
        history = json.loads(_core.volume_history(self.path, span))
        rows = []
        for step in history["steps"]:
            row: dict[str, Any] = {}
            for key, value in step.items():
                if isinstance(value, dict):
                    row.update({f"{key}_{inner}": it for inner, it in value.items()})
                elif key == "written_bytes_per_s":
                    row.update({f"{cause}_{key}": it for cause, it in zip(_CAUSES, value)})
                else:
                    row[key] = value
            rows.append(row)
        return rows

    def __reduce__(self) -> tuple[Any, ...]:
        return (Volume, (self.path,))

    def __repr__(self) -> str:
        return f"<Volume {self.path}>"

    def _repr_html_(self) -> str:
        status = self.status()
        health = status["health"]
        problems = "".join(f"<p>{escaped(it['text'])}. {escaped(it['remedy'])}</p>"
                           for it in health["problems"])
        rows = sorted(self.counters().items())
        head = f"<b>{escaped(status['name'])}</b>: {escaped(status['state'])}, {health['state']}"
        return f"{head}{problems}<details><summary>{len(rows)} counters</summary>" \
               f"{table(['counter', 'value'], rows)}</details>"


_CAUSES = ("host", "relocation", "wear", "parity", "metadata")


def _flatten(path: str, value: Any, into: dict[str, float]) -> None:
    """Puts every number of a value into a dict by its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{path}.{key}" if path else key, inner, into)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _flatten(f"{path}.{index}", inner, into)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        into[path] = value
