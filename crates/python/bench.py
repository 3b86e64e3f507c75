"""Speed of closed loops beside the built-in driver: processor time of a request, in nanoseconds.

python crates/python/bench.py [DRIVE] [WORKLOAD]

Both are the difference of a long and a short run, so that what comes before the first request
counts in neither; the least of several, in alternation.
"""

import sys
import time

import numpy as np

import floatgate as fg

ROUNDS = 8
REQUESTS = 6_000_000
LAPSE = 32


def spent(work):
    """Returns the processor time of ``work`` in seconds, and its result."""
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


def built_in(drive, workload, seconds):
    spent_s, run = spent(lambda: fg.run(drive, workload, runtime=seconds, time_lapse=LAPSE,
                                        precondition="1h" if "write" in workload else 0))
    return spent_s, run.iops * seconds / LAPSE


def main(name="iodrive-duo", workload="4k-rand-read"):
    drive = fg.Drive.load(name)
    simulator = fg.Simulator(drive, time_lapse=LAPSE)
    simulator.fill()
    op = fg.WRITE if "write" in workload else fg.READ
    lbas = np.random.default_rng(1).integers(0, simulator.sectors // 8, REQUESTS) * 8
    columns = (np.full(REQUESTS, op, np.uint8), lbas.astype(np.uint64),
               np.full(REQUESTS, 8, np.uint32))
    if op == fg.WRITE:
        for _ in range(4):
            simulator.closed_loop(columns)
    halves = tuple(column[: REQUESTS // 2] for column in columns)
    least = dict.fromkeys(("short", "long", "half", "whole"), float("inf"))
    for _ in range(ROUNDS):
        for key, seconds in (("short", 1200), ("long", 2400)):
            spent_s, count = built_in(drive, workload, seconds)
            least[key], least[f"{key} count"] = min(least[key], spent_s), count
        for key, given in (("half", halves), ("whole", columns)):
            copy = simulator.copy()
            least[key] = min(least[key], spent(lambda c=copy, g=given: c.closed_loop(g))[0])
    driver = (least["long"] - least["short"]) / (least["long count"] - least["short count"])
    loop = (least["whole"] - least["half"]) / (REQUESTS - REQUESTS // 2)
    print(f"{name} {workload}: built-in driver {driver * 1e9:.0f} ns, closed_loop "
          f"{loop * 1e9:.0f} ns, {loop / driver:.2f} times")


if __name__ == "__main__":
    main(*sys.argv[1:])
