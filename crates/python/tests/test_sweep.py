"""Sweeps are those of the command, to the byte, whatever executor measures their points."""

import html
import multiprocessing
import pickle
import shutil
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import distributed
import pytest
from conftest import LAPSE

import floatgate as fg

#: A light load, which a point of takes a second or two.
GRID = {"user_capacity": ["480G", "600G"], "threads": [1, 2]}
LOAD = {"queue": 1, "time_lapse": LAPSE}


class Serial:
    """The smallest executor: it measures when it is asked."""

    def __init__(self):
        self.tasks = 0

    def submit(self, function, *args):
        self.tasks += 1
        task = Future()
        task.set_result(function(*args))
        return task


@pytest.fixture(scope="module")
def commanded(floatgate, tmp_path_factory):
    """The folder of a sweep of the command."""
    out = tmp_path_factory.mktemp("commanded")
    floatgate("sweep", "iodrive-duo", "--user-capacity", "480G,600G", "--threads", "1,2",
              "--queue", 1, "--time-lapse", LAPSE, "--repeat", 1, "--out", out)
    return next(path for path in out.iterdir() if path.is_dir())


def begun(commanded, tmp_path, points):
    """A copy of the sweep as if it had been interrupted after so many points."""
    folder = tmp_path / commanded.name
    shutil.copytree(commanded, folder)
    for name in ("sweep.json", "sweep.csv", "sweep.html"):
        (folder / name).unlink()
    for path in sorted((folder / "points").iterdir())[points:]:
        path.unlink()
    return folder


def test_processes_write_the_bytes_of_the_command(commanded, tmp_path):
    folder = begun(commanded, tmp_path, 1)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        sweep = fg.sweep(resume=folder, executor=executor, batch=2)
    assert sweep.path == folder
    for name in ("sweep.json", "sweep.csv", "sweep.html"):
        assert (folder / name).read_bytes() == (commanded / name).read_bytes(), name


def test_threads_and_one_at_a_time_write_them_too(commanded, tmp_path):
    expected = (commanded / "sweep.json").read_bytes()
    threads = begun(commanded, tmp_path / "threads", 2)
    with ThreadPoolExecutor(2) as executor:
        fg.sweep(resume=threads, executor=executor)
    assert (threads / "sweep.json").read_bytes() == expected
    serial, executor = begun(commanded, tmp_path / "serial", 2), Serial()
    fg.sweep(resume=serial, executor=executor)
    assert (serial / "sweep.json").read_bytes() == expected
    assert executor.tasks == 2
    alone = begun(commanded, tmp_path / "alone", 3)
    fg.sweep(resume=alone, jobs=2)
    assert (alone / "sweep.json").read_bytes() == expected


def test_a_cluster_of_dask_writes_them_too(commanded, tmp_path):
    folder = begun(commanded, tmp_path, 2)
    # Within this process, without a network.
    place = {"processes": False, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, **place) as cluster:
        with distributed.Client(cluster) as client:
            fg.sweep(resume=folder, executor=client)
    assert (folder / "sweep.json").read_bytes() == (commanded / "sweep.json").read_bytes()


def test_a_grid_of_python_is_that_of_the_command(duo, commanded, tmp_path):
    told = []
    sweep = fg.sweep(duo, GRID, **LOAD, executor=Serial(), out=tmp_path,
                     progress=lambda event: told.append(event["done"]))
    theirs = fg.Sweep((commanded / "sweep.json").read_text())
    assert sweep.points == theirs.points
    assert sweep.values["dimensions"] == theirs.values["dimensions"]
    assert told == [0.25, 0.5, 0.75, 1.0]
    assert (sweep.path / "sweep.html").is_file()
    rows = sweep.rows()
    assert [row["user_capacity_gb"] for row in rows] == [480, 480, 600, 600]
    assert rows[0]["write_amplification"] < rows[2]["write_amplification"]


def test_ranges_are_read_as_by_the_command(duo):
    with pytest.raises(fg.Error, match="no parameter to sweep"):
        fg.sweep(duo, {})
    with pytest.raises(fg.Error, match="sweeping threads over `4..1`"):
        fg.sweep(duo, {"threads": "4..1"})
    sweep = fg.sweep(duo, {"threads": "1..2/2"}, **LOAD, jobs=2)
    assert [point["at"] for point in sweep.points] == [[1], [2]]
    assert sweep.path is None


def test_an_infeasible_point_is_a_result(duo):
    grid = {"user_capacity_gb": [480, 5000]}
    with pytest.warns(fg.SweepWarning, match="1 of 2 points are not possible, .*5000"):
        sweep = fg.sweep(duo, grid, threads=1, **LOAD, executor=Serial())
    assert [point["outcome"] for point in sweep.points] == ["measured", "infeasible"]
    measured, missing = sweep.rows()
    assert list(measured) == list(missing) and measured["reason"] is None
    assert missing["outcome"] == "infeasible" and missing["iops"] is None
    assert sweep.infeasible == [{"user_capacity_gb": 5000, "reason": missing["reason"]}]
    assert html.escape(missing["reason"]) in sweep._repr_html_()
    with pytest.raises(fg.Error, match="no point of the sweep is feasible: .*5000"):
        fg.sweep(duo, {"user_capacity": ["5000G", "6000G"]}, threads=1, **LOAD)


def test_a_folder_of_another_grid_is_not_resumed(duo, commanded, tmp_path):
    folder = begun(commanded, tmp_path, 4)
    assert fg.sweep(duo, GRID, **LOAD, resume=folder).path == folder
    with pytest.raises(fg.Error, match="threads, seed beside resume"):
        fg.sweep(resume=folder, threads=7, seed=99)
    for other, said in [
        (({"threads": [1, 2]}, LOAD), "dimensions is"),
        ((GRID, {**LOAD, "queue": 2}), "queue_per_thread is 1 there, 2 here"),
    ]:
        with pytest.raises(fg.Error, match=said):
            fg.sweep(duo, other[0], **other[1], resume=folder)
    with pytest.raises(fg.Error, match="the drive's file"):
        fg.sweep(duo.set("nand.t_read_us", "60 us"), GRID, **LOAD, resume=folder)


def test_words_of_a_dimension_stand_side_by_side(commanded):
    sweep = fg.Sweep((commanded / "sweep.json").read_text())
    for dimension, point in ((it, point) for it in sweep.values["dimensions"]
                             for point in sweep.points):
        if dimension["key"] == "threads":
            point["at"][1] = {1: "one", 2: "two"}.get(point["at"][1], point["at"][1])
    chart = sweep.chart(against="threads").svg()
    assert ">one<" in chart and ">two<" in chart


def test_a_page_a_chart_and_a_pickle_of_a_sweep(commanded):
    sweep = fg.Sweep((commanded / "sweep.json").read_text())
    assert sweep.html() == (commanded / "sweep.html").read_text()
    assert pickle.loads(pickle.dumps(sweep)) == sweep
    chart = sweep.chart("write_amplification")
    assert "threads 1" in chart.svg() and chart.svg().count("<circle") == 4
    assert sweep._repr_html_().count("<svg") == 2
    with pytest.raises(fg.Error, match="no figure 'iopses'"):
        sweep.chart("iopses")
    with pytest.raises(fg.Error, match="nand.t_read_us was not swept"):
        sweep.chart(against="nand.t_read_us")


def test_a_failure_of_a_worker_is_raised_and_what_was_done_is_kept(duo, tmp_path):
    class Failing(Serial):
        def submit(self, function, *args):
            task = super().submit(function, *args)
            if self.tasks < 2:
                return task
            failed = Future()
            failed.set_exception(RuntimeError("a node was lost"))
            return failed

    grid = {"threads": [1, 2]}
    with pytest.raises(RuntimeError, match="a node was lost"):
        fg.sweep(duo, grid, **LOAD, out=tmp_path, executor=Failing())
    folder = next(tmp_path.iterdir())
    executor = Serial()
    sweep = fg.sweep(resume=folder, executor=executor)
    assert len(sweep.points) == 2 and executor.tasks == 1
