"""What libnbd finds on an empty, writable export of 64 MiB: conformance.py URI"""

import errno
import sys

import nbd

URI = sys.argv[1]
SIZE = 64 << 20
MOST = 32 << 20


def connected(structured=True):
    client = nbd.NBD()
    client.set_request_structured_replies(structured)
    client.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    # Wrong requests are to reach the server.
    client.set_strict_mode(0)
    client.connect_uri(URI)
    return client


def refused(expected, request, *arguments, **named):
    try:
        request(*arguments, **named)
    except nbd.Error as error:
        assert error.errnum == expected, (request, error.string, error.errnum)
    else:
        raise AssertionError((request, "was not refused"))


def runs(client, length, offset, flags=0):
    found = []

    def told(context, _offset, entries, _error):
        assert context == nbd.CONTEXT_BASE_ALLOCATION
        found.extend(zip(entries[::2], entries[1::2]))

    client.block_status(length, offset, told, flags)
    return found


def abilities():
    client = connected()
    assert client.get_protocol() == "newstyle-fixed"
    assert client.get_structured_replies_negotiated()
    assert client.get_size() == SIZE
    sizes = (nbd.SIZE_MINIMUM, nbd.SIZE_PREFERRED, nbd.SIZE_MAXIMUM)
    assert [client.get_block_size(size) for size in sizes] == [1, 4096, MOST]
    for ability in (
        "can_cache can_df can_fast_zero can_flush can_fua can_multi_conn can_trim can_zero"
    ).split():
        assert getattr(client, ability)(), ability
    assert client.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    assert not client.is_read_only() and not client.is_rotational()
    simple = connected(structured=False)
    assert not simple.get_structured_replies_negotiated() and not simple.can_df()


def reads_and_writes():
    for structured in (True, False):
        client = connected(structured)
        client.pwrite(b"abcdefg", 4093, nbd.CMD_FLAG_FUA)
        assert client.pread(9, 4092) == b"\0abcdefg\0"
        most = bytes(range(256)) * (MOST // 256)
        client.pwrite(most, 1 << 20)
        assert client.pread(MOST, 1 << 20) == most
        client.flush()
        client.cache(4096, 0)
        client.trim(SIZE, 0, nbd.CMD_FLAG_FUA)
        assert client.pread(MOST, 1 << 20) == bytearray(MOST)


def fragments():
    client = connected()
    client.pwrite(b"x" * 8192, 0)
    chunks = []

    def told(data, offset, status, _error):
        chunks.append((offset, len(data), status))

    client.pread_structured(8192, 0, told, nbd.CMD_FLAG_DF)
    assert chunks == [(0, 8192, nbd.READ_DATA)], chunks


def zeroes_and_holes():
    client = connected()
    hole = nbd.STATE_HOLE | nbd.STATE_ZERO
    client.trim(SIZE, 0)
    assert runs(client, SIZE, 0) == [(SIZE, hole)]
    client.pwrite(b"x" * 65536, 0)
    client.zero(8192, 0)
    client.zero(8192, 8192, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
    client.zero(8192, 16384, nbd.CMD_FLAG_FAST_ZERO)
    assert client.pread(24577, 0) == bytearray(24576) + b"x"
    told = runs(client, 65536, 0)
    assert [run for run in told if run[1]] == [(8192, hole), (8192, hole)], told
    assert sum(length for length, _ in told) == 65536
    assert len(runs(client, 65536, 0, nbd.CMD_FLAG_REQ_ONE)) == 1
    fast_and_full = nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_NO_HOLE
    refused(errno.ENOTSUP, client.zero, 4096, 0, fast_and_full)


def several_connections():
    one, other = connected(), connected(structured=False)
    for value in range(20):
        one.pwrite(bytes([value]) * 512, value * 512)
        other.flush()
        assert other.pread(512, value * 512) == bytes([value]) * 512


def wrong_requests():
    client = connected()
    refused(errno.EINVAL, client.pread, 512, SIZE - 511)
    refused(errno.ENOSPC, client.pwrite, b"x" * 512, SIZE - 511)
    refused(errno.ENOSPC, client.zero, 512, SIZE - 511)
    refused(errno.EINVAL, client.trim, 512, SIZE - 511)
    refused(errno.EINVAL, client.pwrite, bytes(MOST + 1), 0)
    refused(errno.EINVAL, client.pread, MOST + 1, 0)
    refused(errno.EINVAL, client.trim, 512, 0, nbd.CMD_FLAG_NO_HOLE)
    assert len(client.pread(512, 0)) == 512, "the connection goes on"


def many_in_flight():
    client = connected()
    buffers = []
    for number in range(128):
        client.aio_pwrite(nbd.Buffer.from_bytearray(bytearray([number]) * 4096), number * 4096)
    client.aio_flush()
    for number in range(128):
        buffers.append(nbd.Buffer(4096))
        client.aio_pread(buffers[-1], number * 4096)
    while client.aio_in_flight():
        client.poll(10000)
    for number, buffer in enumerate(buffers):
        assert buffer.to_bytearray() == bytearray([number]) * 4096, number


def options():
    client = nbd.NBD()
    client.set_opt_mode(True)
    client.add_meta_context("base:")
    client.connect_uri(URI)
    names = []
    client.opt_list(lambda name, _description: names.append(name))
    assert names == ["served"], names
    contexts = []
    client.opt_list_meta_context(contexts.append)
    assert contexts == [nbd.CONTEXT_BASE_ALLOCATION], contexts
    client.set_export_name("none of these")
    refused(errno.ENOENT, client.opt_info)
    client.set_export_name("served")
    client.opt_info()
    assert client.get_size() == SIZE
    client.opt_abort()


for check in (
    abilities,
    reads_and_writes,
    fragments,
    zeroes_and_holes,
    several_connections,
    wrong_requests,
    many_in_flight,
    options,
):
    check()
    print("ok", check.__name__)
