"""The notebooks of the documentation run, each in a folder of its own, and show what they say."""

import sys

import pytest
from conftest import ROOT

pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
pytest.importorskip("ipykernel")
sys.path.insert(0, str(ROOT / "crates" / "python"))

import notebooks  # noqa: E402

NAMES = sorted(path.name for path in notebooks.FOLDER.glob("*.ipynb"))


def test_there_are_four():
    assert len(NAMES) >= 4


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_a_chart(name, tmp_path):
    notebook = notebooks.executed(notebooks.FOLDER / name, tmp_path)
    shown = [kind for cell in notebook.cells if cell.cell_type == "code"
             for output in cell.outputs for kind in output.get("data", {})]
    assert {"text/html", "image/svg+xml"} & set(shown), shown
    if name != "fit-your-drive.ipynb":
        assert "image/svg+xml" in shown, shown
