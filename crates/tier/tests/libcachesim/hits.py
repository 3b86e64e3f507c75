"""Hits of libCacheSim, request by request, that `tests/hits.rs` compares with.

    pip install 'libcachesim==0.3.5'
    python hits.py

It writes `trace.csv`, a generated trace in the format of MSR Cambridge, and `hits.txt`: a line for
each trace, policy and size of a cache in blocks, with a bit for each access, as hexadecimal digits.
"""

import libcachesim

MASK = (1 << 64) - 1
NEVER = (1 << 63) - 1
CACHES = {
    "lru": libcachesim.LRU,
    "sieve": libcachesim.Sieve,
    "s3-fifo": libcachesim.S3FIFO,
    "arc": libcachesim.ARC,
    "two-q": libcachesim.TwoQ,
    "belady": libcachesim.Belady,
}


class Draws:
    """Xorshift, as the test has it."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state ^= self.state << 13 & MASK
        self.state ^= self.state >> 7
        self.state ^= self.state << 17 & MASK
        return (self.state >> 11) % limit


def skewed(count):
    """Low blocks are drawn more often than high ones."""
    draws = Draws(88172645463325252)
    return [min(draws.below(1000) for _ in range(4)) for _ in range(count)]


def scanned(count):
    """Scans of fresh blocks between draws of a small hot set and a loop."""
    draws = Draws(362436069)
    blocks = []
    for at in range(count):
        kind = at // 60 % 4
        blocks.append([draws.below(80), 100 + at % 150, draws.below(40), 1000 + at][kind])
    return blocks


def msr(count):
    """Requests of 4 to 64 KiB, some sequential, as lines of a trace."""
    draws = Draws(521288629)
    lines, at, begin = [], 128166372003061629, 0
    for _ in range(count):
        at += 1000 + draws.below(500000)
        blocks = 1 << draws.below(5)
        if draws.below(3) > 0:
            begin = min(draws.below(1200) for _ in range(3))
        kind = "Read" if draws.below(4) > 0 else "Write"
        lines.append(f"{at},hm,0,{kind},{begin * 4096},{blocks * 4096},{1 + draws.below(900)}")
        begin += blocks
    return lines


def accesses(lines):
    """Blocks of the requests of a trace, in order."""
    for line in lines:
        offset, size = map(int, line.split(",")[4:6])
        yield from range(offset // 4096, (offset + size) // 4096)


def hits(cache, blocks):
    """A bit for each access."""
    next_use, seen = [NEVER] * len(blocks), {}
    for at in reversed(range(len(blocks))):
        next_use[at] = seen.get(blocks[at], NEVER)
        seen[blocks[at]] = at
    bits = ""
    for at, block in enumerate(blocks):
        request = libcachesim.Request()
        request.obj_id, request.obj_size, request.next_access_vtime = block, 1, next_use[at]
        bits += "1" if cache.get(request) else "0"
    bits += "0" * (-len(bits) % 4)
    return f"{int(bits, 2):0{len(bits) // 4}x}"


lines = msr(300)
with open("trace.csv", "w") as file:
    file.write("\n".join(lines) + "\n")
traces = {"skewed": skewed(2400), "scanned": scanned(2400), "msr": list(accesses(lines))}
with open("hits.txt", "w") as file:
    for trace, blocks in traces.items():
        for name, cache in CACHES.items():
            for size in (20, 97, 300):
                found = hits(cache(size, hashpower=14), blocks)
                file.write(f"{trace} {name} {size} {found}\n")
