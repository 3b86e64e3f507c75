"""Commands that reach beyond an export: all fail, and the export beside it stays as it is."""

import sys

import nbd

one, two = (nbd.NBD() for _ in range(2))
for handle, uri in ((one, sys.argv[1]), (two, sys.argv[2])):
    handle.add_meta_context("base:allocation")
    # Otherwise the client itself would refuse.
    handle.set_strict_mode(0)
    handle.connect_uri(uri)

size = one.get_size()
pattern = bytes(range(256)) * 16
two.pwrite(pattern, 0)
two.pwrite(pattern, two.get_size() - len(pattern))
one.pwrite(b"\1" * 4096, size - 4096)

COMMANDS = {
    "read": lambda at: one.pread(4096, at),
    "write": lambda at: one.pwrite(b"\2" * 4096, at),
    "trim": lambda at: one.trim(4096, at),
    "zero": lambda at: one.zero(4096, at),
    "zero, no hole": lambda at: one.zero(4096, at, nbd.CMD_FLAG_NO_HOLE),
    "status": lambda at: one.block_status(4096, at, lambda *_: 0),
}
for at in (size, size - 1, size - 4095, size + 4096, 2**63 - 4096, 2**63, 2**64 - 4096, 2**64 - 1):
    for name, command in COMMANDS.items():
        try:
            command(at)
        except nbd.Error:
            continue
        sys.exit(f"{name} at {at} of {size} was done")

assert two.pread(len(pattern), 0) == pattern
assert two.pread(len(pattern), two.get_size() - len(pattern)) == pattern
assert one.pread(4096, size - 4096) == b"\1" * 4096
print("none reached")
