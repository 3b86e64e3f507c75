"""Status of live volumes."""

from __future__ import annotations

import json
from os import PathLike, fspath
from typing import Any

from . import _core
from ._error import Error
from ._html import escaped, table


class Volume:
    """A volume that ``floatgate volume create`` created, served or closed.

    >>> volume = Volume.open("volume")
    >>> volume.status()["health"]["state"]
    """

    def __init__(self, path: str) -> None:
        self.path = path
        """Path of the volume's folder."""

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Volume:
        """Opens the volume in a folder. Raises ``Error`` if its status cannot be read."""
        volume = cls(fspath(path))
        volume.status()
        return volume

    def status(self) -> dict[str, Any]:
        """Returns the status that docs/reference/status.md describes, from the server, or from the
        dies if the volume is not served."""
        return json.loads(_core.volume_status(self.path))

    def counters(self) -> dict[str, float]:
        """Returns all numbers of the status by path, such as ``writes.host_bytes``.

        Rates are the difference of two calls divided by the time between them. Unknown numbers are
        absent, for example the traffic of a volume that is not served.
        """
        counters: dict[str, float] = {}
        _flatten("", self.status(), counters)
        return counters

    def history(self, span: str = "1h") -> list[dict[str, Any]]:
        """Returns the traffic of the last ``2min``, ``1h`` or ``24h``: a flat dict per step, oldest
        first, as pandas and Polars accept them."""
        history = json.loads(_core.volume_history(self.path, span))
        rows = []
        for step in history["steps"]:
            row: dict[str, Any] = {}
            for key, value in step.items():
                if isinstance(value, dict):
                    row.update({f"{key}_{inner}": it for inner, it in value.items()})
                elif key == "written_bytes_per_s":
                    row.update({f"{cause}_{key}": it for cause, it in zip(_CAUSES, value, strict=True)})
                else:
                    row[key] = value
            rows.append(row)
        return rows

    def inject(self, kind: str, /, **values: int) -> None:
        """Injects a fault that docs/guide/inject-faults.md lists, with the names that a schedule
        has: ``inject("stall", stall_ms=2000)``. Defaults are those of a schedule.

        Raises ``Error`` unless a server was started with ``--fault-injection``, and if the fault
        has no value of such a name.
        """
        if "fault" in values:
            raise Error("injecting a fault: unknown field `fault`")
        fault = {"fault": kind, **values}
        _core.volume_inject(self.path, json.dumps(fault))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Volume, (self.path,))

    def __repr__(self) -> str:
        return f"<Volume {self.path}>"

    def _repr_html_(self) -> str:
        status = self.status()
        health = status["health"]
        problems = "".join(f"<p>{escaped(it['text'])} {escaped(it['remedy'])}</p>"
                           for it in health["problems"])
        rows = sorted(self.counters().items())
        head = f"<b>{escaped(status['name'])}</b>: {escaped(status['state'])}, {health['state']}"
        return f"{head}{problems}<details><summary>{len(rows)} counters</summary>" \
               f"{table(['counter', 'value'], rows)}</details>"


_CAUSES = ("host", "relocation", "wear", "parity", "metadata", "rebuild")


def _flatten(path: str, value: Any, into: dict[str, float]) -> None:
    """Adds every number in a value to a dict, by its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{path}.{key}" if path else key, inner, into)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _flatten(f"{path}.{index}", inner, into)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        into[path] = value
