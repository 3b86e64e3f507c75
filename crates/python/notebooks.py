"""Executes the notebooks of docs/notebooks, and writes what they show into them."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
#: Seconds that one cell may take on a slow machine.
CELL_S = 1800


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook at a path with its output, executed in a folder. Fails if a cell does."""
    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=CELL_S, kernel_name="python3", resources=place).execute()
    return notebook


def _without_times(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what differs from one execution to the next."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def main() -> None:
    """Executes the notebooks that are named, or all of them."""
    names = sys.argv[1:] or sorted(path.name for path in FOLDER.glob("*.ipynb"))
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            notebook = _without_times(executed(FOLDER / name, Path(folder)))
        nbformat.write(notebook, FOLDER / name)
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
