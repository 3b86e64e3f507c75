"""Kills a server under load, again and again, and looks at what a client is left with.

crash.py FLOATGATE VOLUME SOCKET CYCLES SEED [OPTION OF THE SERVER]...

Every sector says which block it belongs to and which write it is of. After each crash it must be
of the last write that was durable when the server died, or of a later one; whole, and of that
block. What was found once must be found again after the next crash. Beside the client that keeps
account, fio loads the other half of the drive and verifies it, where there is fio.
"""

import random
import shutil
import signal
import struct
import subprocess
import sys
import time

import nbd

FLOATGATE, VOLUME, SOCKET, CYCLES, SEED, *OPTIONS = sys.argv[1:]
URI = "nbd+unix:///?socket=" + SOCKET
BLOCK, SECTOR, BLOCKS = 4096, 512, 1024
DEPTH, PATIENCE_S = 16, 60
rng = random.Random(int(SEED))


class Account:
    """Which writes each sector of a block may be of: their numbers, from `durable` on."""

    def __init__(self):
        self.number = 0
        self.durable = [0] * (BLOCKS * BLOCK // SECTOR)
        self.issued = [[0] for _ in range(BLOCKS)]
        self.zeroes = {0}
        self.acknowledged = 0

    def payload(self, block):
        words = struct.pack("<QQ", self.number, block) + b"floatgate crash!" * 31
        return words * (BLOCK // SECTOR)

    def settle(self, writes):
        for number, blocks in writes:
            for block in blocks:
                for sector in range(block * 8, block * 8 + 8):
                    self.durable[sector] = max(self.durable[sector], number)

    def check(self, block, found):
        for index in range(BLOCK // SECTOR):
            sector = found[index * SECTOR : (index + 1) * SECTOR]
            number, of = struct.unpack_from("<QQ", sector)
            place = block * 8 + index
            if not any(sector):
                allowed = [it for it in self.issued[block] if it in self.zeroes]
                later = [it for it in allowed if it >= self.durable[place]]
                assert later, f"block {block}: zeroes, durable was {self.durable[place]}"
                number = later[0]
            else:
                assert of == block, f"block {block}: holds block {of}"
                assert sector[16:] == b"floatgate crash!" * 31, f"block {block}: torn"
                assert number in self.issued[block], f"block {block}: write {number} never was"
                assert number not in self.zeroes, f"block {block}: write {number} was a trim"
            least = self.durable[place]
            assert number >= least, f"block {block}: write {number}, durable was {least}"
            self.durable[place] = number
        # What was lost must not come back.
        self.issued[block] = sorted(set(self.durable[block * 8 : block * 8 + 8]))


def serve():
    server = subprocess.Popen(
        [FLOATGATE, "serve", VOLUME, "--nbd", "unix:" + SOCKET, *OPTIONS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = server.stdout.readline()
    assert said.startswith("nbd+unix"), (said, server.stderr.read())
    return server


def connected():
    client = nbd.NBD()
    client.connect_uri(URI)
    return client


def load(account, server, lives_s):
    """Writes, trims and flushes until the server, which is killed on the way, is gone."""
    client = connected()
    dies_at = time.monotonic() + lives_s
    busy, acknowledged, is_dead = set(), [], False

    def issue():
        start, count = rng.randrange(BLOCKS), rng.choice([1, 1, 1, 2, 8])
        blocks = [block for block in range(start, min(start + count, BLOCKS))]
        if busy.intersection(blocks):
            return
        account.number += 1
        number, is_trim, is_durable = account.number, rng.random() < 0.05, rng.random() < 0.05
        for block in blocks:
            account.issued[block].append(number)
        busy.update(blocks)

        def done(error):
            busy.difference_update(blocks)
            if not error.value:
                account.acknowledged += 1
                if is_durable:
                    account.settle([(number, blocks)])
                else:
                    acknowledged.append((number, blocks))
            return 1

        flags = nbd.CMD_FLAG_FUA if is_durable else 0
        if is_trim:
            account.zeroes.add(number)
            client.aio_trim(len(blocks) * BLOCK, start * BLOCK, done, flags)
        else:
            data = bytearray(b"".join(account.payload(block) for block in blocks))
            client.aio_pwrite(nbd.Buffer.from_bytearray(data), start * BLOCK, done, flags)

    def flush():
        nonlocal is_flushing
        is_flushing, covered = True, list(acknowledged)

        def done(error):
            nonlocal is_flushing
            is_flushing = False
            if not error.value:
                account.settle(covered)
                del acknowledged[: len(covered)]
            return 1

        client.aio_flush(done)

    is_flushing = False
    try:
        while True:
            if not is_dead and time.monotonic() >= dies_at:
                server.send_signal(signal.SIGKILL)
                is_dead = True
            if client.aio_in_flight() < DEPTH:
                issue()
            if not is_flushing and rng.random() < 0.02:
                flush()
            client.poll(0 if client.aio_in_flight() < DEPTH else 10)
    except nbd.Error:
        pass
    server.wait(PATIENCE_S)


def fio():
    """A load on the other half that fio verifies as it goes, until the server is gone."""
    if not shutil.which("fio"):
        return None
    half = BLOCKS * BLOCK
    words = ["fio", "--name=t", "--ioengine=nbd", "--uri=" + URI, "--rw=randwrite", "--bs=4k"]
    words += ["--iodepth=16", "--verify=crc32c", "--verify_backlog=256", "--time_based"]
    words += [f"--offset={half}", f"--size={half}", f"--runtime={PATIENCE_S}"]
    words += ["--verify_state_save=0"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    account = Account()
    for cycle in range(int(CYCLES)):
        server = serve()
        try:
            client = connected()
            for block in range(BLOCKS):
                account.check(block, client.pread(BLOCK, block * BLOCK))
            client.shutdown()
            other = fio()
            load(account, server, rng.uniform(0.2, 1.0))
            if other:
                said, _ = other.communicate(timeout=PATIENCE_S)
                assert "verify:" not in said and "verify failed" not in said, said[-2000:]
        finally:
            server.kill()
            server.wait()
    # The last of them ends as it should, and the next finds it all.
    for _ in range(2):
        server = serve()
        client = connected()
        for block in range(BLOCKS):
            account.check(block, client.pread(BLOCK, block * BLOCK))
        client.shutdown()
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 0
    print(f"{CYCLES} crashes, {account.acknowledged} writes acknowledged, none lost")


main()
