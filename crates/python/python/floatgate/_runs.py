"""Stored runs as a table, and imports."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from . import _core
from ._error import Error
from ._quantity import text_of
from ._run import Run

#: Columns that are values of ``run.json``, and those of its target.
_OF_RUN = ("id", "protocol", "started_at", "model_version", "seed")
_OF_TARGET = ("name", "format", "host", "kind", "time_lapse")


def runs(folder: str | PathLike[str] = "runs", **filters: Any) -> list[dict[str, Any]]:
    """Returns a dict for each run that is stored in a folder, in the order of their names.

    Filters are values of columns: ``runs(name="iodrive-duo", protocol="quick")``.
    """
    columns = (*_OF_RUN, *_OF_TARGET, "path")
    unknown = sorted(set(filters) - set(columns))
    if unknown:
        raise Error(f"runs have no column {unknown[0]!r}", f"they have {', '.join(columns)}")
    place = Path(text_of(folder, "folder"))
    filters = {key: text_of(it, key) if key == "path" else it for key, it in filters.items()}
    if not place.is_dir():
        raise Error(f"{place} is no folder", "name the folder of runs, which a review got as out")
    rows = []
    for path in sorted(place.glob("*/run.json")):
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            row = {key: values.get(key) for key in _OF_RUN}
            row |= {key: values["target"].get(key) for key in _OF_TARGET}
        except (OSError, ValueError, LookupError, TypeError) as cause:
            raise Error(f"reading {path}: {cause!r}", "remove the folder, or measure it again"
                        ) from cause
        row["path"] = str(path.parent)
        if all(row[key] == wanted for key, wanted in filters.items()):
            rows.append(row)
    return rows


def import_run(
    path: str | PathLike[str],
    *,
    title: str | None = None,
    out: str | PathLike[str] = "runs",
) -> Run:
    """Imports a fio report (``--output-format=json+`` or ``json``) or a flat file of vdbench, like
    ``floatgate runs import``.

    The run is stored in the folder ``out``. What the file does not say is unknown.
    """
    place = Path(text_of(out, "out"))
    return Run(_core.import_run(Path(text_of(path, "path")), title, place))
