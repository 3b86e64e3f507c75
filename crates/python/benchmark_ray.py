"""Compares two workers of a local Ray cluster with two threads, on a sweep of points of a second.

Each pair runs the same sweep with both, one after the other, in alternating order. Efficiency is
the time of the threads by that of the workers: wall time, which needs a quiet machine, and processor
time of all processes, Ray's own among them, which does not.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any, Callable

import psutil

import floatgate as fg

#: One point, T1Q1 with time lapse 64, takes about a second of processor time.
POINT: dict[str, Any] = {"threads": 1, "queue": 1, "time_lapse": 64}


def _processor_s() -> float:
    """Processor time of this process and of those below it, among them all of Ray's."""
    here = psutil.Process()
    total = 0.0
    for process in [here, *here.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def _timed(sweep: Callable[[], fg.Sweep]) -> tuple[fg.Sweep, float, float]:
    processor_s, wall_s = _processor_s(), time.perf_counter()
    result = sweep()
    return result, time.perf_counter() - wall_s, _processor_s() - processor_s


def main() -> None:
    """Prints the times of each pair, and the medians of the efficiencies."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--pairs", type=int, default=3)
    words.add_argument("--points", type=int, default=16)
    chosen = words.parse_args()
    # Ray may lower the priority of its workers, which matters where other processes want to run.
    os.environ["RAY_worker_niceness"] = "0"
    import ray  # noqa: PLC0415, since it reads the variable

    drive = fg.Drive.load("iodrive-duo")
    grid = {"user_capacity": [f"{400 + 10 * index}G" for index in range(chosen.points)]}
    ways: dict[str, dict[str, Any]] = {"threads": {"jobs": 2}, "ray": {"executor": ray}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        fg.sweep(drive, {"user_capacity": ["480G", "500G"]}, executor=ray, batch=1, **POINT)
        wall, processor = [], []
        for pair in range(chosen.pairs):
            seen = {}
            for way in sorted(ways, reverse=bool(pair % 2)):
                seen[way] = _timed(lambda way=way: fg.sweep(drive, grid, **POINT, **ways[way]))
            assert seen["ray"][0] == seen["threads"][0], "the same sweep has two results"
            (_, threads_s, threads_cpu_s), (_, ray_s, ray_cpu_s) = seen["threads"], seen["ray"]
            wall.append(threads_s / ray_s)
            processor.append(threads_cpu_s / ray_cpu_s)
            print(f"pair {pair + 1}: threads {threads_s:.1f} s, {threads_cpu_s:.1f} s of processors;"
                  f" ray {ray_s:.1f} s, {ray_cpu_s:.1f} s of processors;"
                  f" efficiency {wall[-1]:.1%}, {processor[-1]:.1%}", flush=True)
    finally:
        ray.shutdown()
    print(f"median efficiency: wall time {statistics.median(wall):.1%},"
          f" processor time {statistics.median(processor):.1%}")


if __name__ == "__main__":
    main()
