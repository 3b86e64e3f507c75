"""Validations are those of the command, whole or drive by drive."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import floatgate as fg

#: A drive with a figure that takes little to simulate, and one without.
NAMES = ["iodrive-duo", "p320h-700"]


@pytest.fixture(scope="module")
def drives():
    return [fg.Drive.load(name) for name in NAMES]


@pytest.fixture(scope="module")
def rows(drives):
    """Facts of data sheets, a row that nothing expresses, and one that is simulated."""
    own = [row for drive in drives for row in fg.figures(drive)]
    facts = [row for row in own if row["phase"] in ("datasheet", "sustained")]
    quick = {**fg.figures(drives[0])[0], "id": "Q1", "workload": "mysql-sysbench", "threads": "2",
             "queue_per_thread": "2", "phase": "primary", "metric": "iops", "os": "any",
             "mode": "any", "value_low": "20000", "value_high": "20000"}
    foreign = {**facts[0], "id": "F1", "device": "an unknown drive"}
    return [facts[0], quick, foreign, *facts[-3:]]


def test_drives_by_an_executor_are_the_command_s(drives, rows, tmp_path, floatgate):
    with ThreadPoolExecutor(2) as executor:
        validation = fg.validate(drives, rows, executor=executor, out=tmp_path / "kept")
    table = tmp_path / "figures.csv"
    columns = list(rows[0])
    table.write_text("\n".join([",".join(columns)] + [
        ",".join(row[name] for name in columns) for row in rows]) + "\n")
    printed = json.loads(floatgate("validate", *NAMES, "--figures", table, "--json", failing=True))
    assert validation.rows == printed
    assert [row["id"] for row in printed] == [row["id"] for row in rows if row["id"] != "F1"]
    assert len(validation.compared) == 1 and validation.compared[0]["modelled"] > 1000
    assert validation.compared[0]["workload"] in validation._repr_html_()
    assert validation.error_median is None, "what a data sheet states was not measured"
    # Stored: nothing is simulated again, without an executor either.
    with ThreadPoolExecutor(1) as executor:
        assert fg.validate(drives, rows, executor=executor, out=tmp_path / "kept") == validation
    stored = sorted((tmp_path / "kept").iterdir())
    assert fg.validate(drives, rows, out=tmp_path / "kept") == validation
    assert sorted((tmp_path / "kept").iterdir()) == stored


def test_the_median_error_is_that_of_the_command():
    def row(id, confidence, low, ratio):
        return {"id": id, "device": "d", "mode": "", "host": "", "workload": "4k-rand-read",
                "threads": "1", "queue_per_thread": "1", "phase": "primary", "metric": "iops",
                "value_low": low, "value_high": 100.0, "verdict": "in", "drive": "d", "model": "d",
                "protocol": "p", "modelled": 100.0, "ratio": ratio, "from_listed_stalls": False,
                "model_version": 1}

    rows = [row("1", "", 100.0, 1.1), row("2", "", 100.0, 1.3), row("3", "", 0.0, 1.0)]
    assert fg.Validation(rows).error_median == pytest.approx(0.2), "an upper bound has no error"
    assert "≤ 100" in fg.Validation(rows)._repr_html_()
    assert fg.Validation([]).error_median is None


def test_results_are_stored_without_an_executor(drives, rows, tmp_path):
    facts = [row for row in rows if row["phase"] == "datasheet"]
    validation = fg.validate(drives[0], facts, out=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert validation == fg.validate(drives[0], facts)


def test_a_drive_given_twice_is_refused(drives):
    with pytest.raises(fg.Error, match="iodrive-duo is given twice"):
        fg.validate([drives[0], drives[0].set("nand.t_read_us", 60)])


def test_rankings_are_judged_as_by_the_command(drives, tmp_path, floatgate):
    columns = ("id", "review", "statement", "readable", "relation", "better", "order", "numerator",
               "denominator", "ratio_low", "ratio_high", "protocol", "suite", "workload",
               "step_load", "window", "reduce", "step_metric")
    row = {"id": "R1", "review": "r", "statement": "Both are fast.", "readable": "yes",
           "relation": "order", "better": "high", "protocol": "iometer",
           "order": "iodrive-duo/soft/linux > iodrive-duo/stock/linux",
           "suite": "4k-read", "workload": "4k-rand-read", "step_load": "T4Q1",
           "window": "step", "step_metric": "iops"}
    table = tmp_path / "rankings.csv"
    table.write_text(",".join(columns) + "\n"
                     + ",".join(row.get(column, "") for column in columns) + "\n")
    found = fg.validate_rankings(rankings=table)
    printed = floatgate("validate", "--rankings", table, "--json", failing=True)
    assert found == json.loads(printed)
    assert [(it["id"], it["verdict"]) for it in found] == [("R1", "not-run")]
    assert found[0]["reason"] == "iodrive-duo has no format `soft`"
    assert fg.validate_rankings(drives[0], table) == found
    with pytest.raises(fg.Error, match="no statement is about any of these drives"):
        fg.validate_rankings(drives[1], table)
    with pytest.raises(fg.Error, match="reading absent.csv: No such file"):
        fg.validate_rankings(rankings="absent.csv")
