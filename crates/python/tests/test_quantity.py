"""Values come as they are at hand: numbers of NumPy, texts with units, columns and tables."""

from datetime import timedelta

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from conftest import LAPSE

import floatgate as fg

#: A run that takes no time.
BRIEF = {"threads": 1, "queue": 1, "time_lapse": LAPSE}


def test_times_are_seconds_texts_or_spans(duo):
    plain = fg.run(duo, "4k-rand-read", runtime=2, **BRIEF)
    for runtime in (np.int64(2), np.float32(2), "2s", "2000 ms", "2000000 us", timedelta(seconds=2)):
        assert fg.run(duo, "4k-rand-read", runtime=runtime, **BRIEF) == plain, runtime
    for wrong in ("2 weeks", [2], True, float("nan"), -1):
        with pytest.raises(fg.Error, match="runtime is"):
            fg.run(duo, runtime=wrong, **BRIEF)
    drive = fg.Simulator(duo, time_lapse=LAPSE)
    for until, now in (("5 us", 5000), (timedelta(microseconds=6), 6000), (np.uint64(7000), 7000)):
        drive.advance(until)
        assert drive.now_ns == now


def test_keys_with_a_unit_of_time_take_times(duo):
    assert duo.set("nand.t_read_us", "60 us") == duo.set("nand.t_read_us", 60)
    assert duo.set("nand.t_read_us", timedelta(milliseconds=1)) == duo.set("nand.t_read_us", 1000)
    with pytest.raises(fg.Error, match="nand.t_read_us is '5 parsecs'"):
        duo.set("nand.t_read_us", "5 parsecs")


def test_numbers_of_numpy_are_numbers(duo):
    plain = fg.run(duo, "4k-rand-read", runtime=1, rate=1000, bs=8192, seed=2, **BRIEF)
    theirs = fg.run(
        duo, "4k-rand-read", runtime=1, rate=np.float32(1000), bs=np.int32(8192),
        seed=np.uint8(2), threads=np.int8(1), queue=np.int64(1), time_lapse=np.int16(LAPSE),
    )
    assert plain == theirs
    with pytest.raises(fg.Error, match="bs is 4096.5"):
        fg.run(duo, bs=4096.5)
    fit = {"search": 0.5, "run": plain}
    with pytest.raises(fg.Error, match="search is 0.5"):
        fg.fit(duo, free={"controller.read_us": (np.int64(5), np.float32(20))}, **fit)


def test_columns_of_any_library_are_values_of_a_grid():
    from floatgate._sweep import _dimensions

    expected = _dimensions({"threads": [1, 2], "nand.t_read_us": [50, 60]})
    for column in (np.array, pandas.Series, polars.Series, pyarrow.array, tuple):
        grid = {"threads": column([1, 2]), "nand.t_read_us": ["50 us", timedelta(microseconds=60)]}
        assert _dimensions(grid) == expected, column
    with pytest.raises(fg.Error, match="threads is 4"):
        _dimensions({"threads": 4})


def test_tables_of_any_library_are_figures(duo):
    from floatgate._fit import table_of

    rows = fg.figures(duo)
    for table in (pandas.DataFrame(rows), polars.DataFrame(rows), pyarrow.Table.from_pylist(rows)):
        assert table_of(table) == table_of(rows), type(table)
    with pytest.raises(fg.Error, match="row 1 of figures is 3"):
        table_of([3])


def test_what_no_argument_can_be_is_refused_by_the_package(duo, tmp_path):
    drive = fg.Simulator(duo, time_lapse=64)
    trace = tmp_path / "t.csv"
    trace.write_text("0,host,0,Write,0,4096,1\n")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text("{}")
    for call in (
        lambda: duo.set("link.read_mb_s", timedelta(seconds=900)),
        lambda: duo.set("channels.mb_s", "10min"),
        lambda: duo.set("nand.t_erase_us", np.array([1, 2])),
        lambda: fg.run(duo, 5),
        lambda: fg.run(duo, trace=trace, rate=5),
        lambda: fg.run(duo, trace=trace, bs="8k"),
        lambda: fg.run(duo, speed=2),
        lambda: fg.plan(duo, 5),
        lambda: fg.review(resume=[]),
        lambda: fg.review(resume="x", seed=9),
        lambda: fg.review(resume="x", ambient=0),
        lambda: fg.review(resume=["x", "x"]),
        lambda: fg.runs(tmp_path),
        lambda: fg.sweep(duo, [1]),
        lambda: fg.sweep(duo, {"threads": np.array(4)}),
        lambda: fg.sweep(duo, {"threads": [1]}, load_gb_per_day=-1, time_lapse=64),
        lambda: fg.app("sysbench-oltp", duo, "x"),
        lambda: drive.run(np.int64(0), [0], [0], [8]),
        lambda: drive.run([[0]], [0], [0], [8]),
        lambda: drive.run([2**61], [0], [0], [8]),
        lambda: drive.advance("9" * 400 + "s"),
    ):
        with pytest.raises(fg.Error):
            call()
    assert fg.app("sysbench-oltp", duo, 4, host_speed=np.float32(1), time_lapse=64)["factor"] > 0
