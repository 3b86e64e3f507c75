"""Plans are values, which say what would be done and do it."""

import json
import pickle

import pytest
from conftest import LAPSE

import floatgate as fg


def test_a_plan_is_that_of_the_command(duo, floatgate):
    printed = json.loads(floatgate("plan", "iodrive-duo", "--protocol", "quick", "--json"))
    plan = fg.plan(duo, "quick")
    assert plan.steps == printed["plan"]["steps"]
    assert plan.targets == printed["targets"] and len(plan.targets) == 2
    assert plan.protocol == "quick" and plan.seed == 1
    assert plan.steps[0]["id"] in plan._repr_html_()


def test_every_argument_of_a_plan_is_that_of_the_command(duo, floatgate, tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("0,host,0,Write,0,4096,1\n1000,host,0,Read,4096,4096,1\n")
    given = {"mail-server": {"trace": trace, "compressible": 40, "seed": 3},
             "quick": {"precondition": "90m", "compressible": 40}}
    for protocol, arguments in given.items():
        options = [text for name, value in arguments.items() for text in (f"--{name}", value)]
        printed = floatgate("plan", "iodrive-duo", "--protocol", protocol, "--json", *options)
        plan = fg.plan(duo, protocol, **arguments)
        assert plan.steps == json.loads(printed)["plan"]["steps"]
        loads = [it["workload"] for it in plan.steps if it["workload"]]
        assert {load["compressible_percent"] for load in loads} == {40}
        assert (str(trace) in str(plan.steps)) == ("trace" in arguments)
    with pytest.raises(fg.Error, match="compressible is 140, must be from 0 to 100 percent"):
        fg.plan(duo, "quick", compressible=140)


def test_a_plan_that_was_pickled_does_the_same(duo, tmp_path):
    plan = fg.plan(duo, "quick", format="stock", time_lapse=LAPSE)
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan and hash(again) == hash(plan)
    assert fg.plan(duo, "quick", format="stock", time_lapse=LAPSE, seed=2) != plan
    mine, theirs = (it.review(out=tmp_path / name).runs[0]
                    for name, it in [("mine", plan), ("theirs", again)])
    assert mine.steps == theirs.steps
    comparison = fg.compare([mine, tmp_path / "theirs" / theirs.values["id"]])
    assert comparison.differences == []
    rows = comparison.rows()
    assert {row["iops_ratio"] for row in rows if not row["lacks_requests"]} == {1.0}
    assert all(row["rank"] is None for row in rows if row["lacks_requests"])
    assert comparison.orders == [], "repeats of one drive do not compete"
    assert "<html" in comparison.save(tmp_path / "both.html").read_text()
    assert mine.values["id"] in comparison._repr_html_()


def test_runs_are_put_in_order_by_each_metric(duo):
    runs = [fg.run(duo, "8k-70-30", format=name, time_lapse=LAPSE, precondition="2h", runtime="5m")
            for name in ("stock", "high-performance")]
    (order,) = fg.compare(runs).orders
    assert (order["workload"], order["level"]) == ("8k-70-30", "full")
    by = {it["metric"]: [standing["run"] for standing in it["standings"]]
          for it in order["metrics"]}
    assert list(by) == ["iops", "latency-avg", "latency-p999", "latency-max", "latency-stdev"]
    assert by["iops"] == by["latency-avg"] == [1, 0], "the format with more spare space leads"


def test_runs_survive_pickles(duo):
    run = fg.run(duo, "8k-70-30", time_lapse=LAPSE)
    again = pickle.loads(pickle.dumps(run))
    assert again == run
    assert again.samples().to_dict() == run.samples().to_dict()
    assert again.latencies().to_dict() == run.latencies().to_dict()


def test_comparisons_and_plans_of_nothing_are_refused(duo):
    with pytest.raises(fg.Error, match="no runs"):
        fg.compare([])
    with pytest.raises(fg.Error, match="unknown protocol") as raised:
        fg.plan(duo, "quikc")
    assert "quick" in raised.value.remedy
