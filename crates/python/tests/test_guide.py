"""The guide's examples run as they stand, one after the other, in a folder of their own."""

import re

import pytest


def test_the_examples_of_the_guide_run(root, tmp_path, monkeypatch, capsys):
    text = (root / "docs/guide/use-from-python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 12
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, block in enumerate(blocks, 1):
        try:
            exec(compile(block, f"use-from-python.md, block {number}", "exec"), names)
        except Exception as failure:
            pytest.fail(f"block {number} of the guide: {failure}")
    assert "IOPS" in capsys.readouterr().out
