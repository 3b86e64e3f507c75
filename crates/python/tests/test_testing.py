"""Volumes for tests are served, fail on demand and leave nothing; the guide's examples run."""

import os
import re
import subprocess
import sys

import pytest

import floatgate as fg
from floatgate.testing import ServedVolume

pytest_plugins = ["floatgate.testing.fixtures"]


@pytest.fixture(autouse=True)
def command_for_volumes(command, monkeypatch):
    monkeypatch.setenv("FLOATGATE_COMMAND", command)


def written_and_read(drive, offset, data):
    file = os.open(drive.file, os.O_RDWR)
    try:
        os.pwrite(file, data, offset)
        os.fsync(file)
        return os.pread(file, len(data), offset)
    finally:
        os.close(file)


def test_a_volume_outlives_its_servers_and_leaves_nothing(tmp_path):
    with ServedVolume("64M", nvme=True, folder=tmp_path) as drive:
        assert drive.nbd_uri.startswith("nbd+unix:") and "127.0.0.1" in drive.nvme_uri
        assert written_and_read(drive, 4096, b"a" * 4096) == b"a" * 4096
        with pytest.raises(fg.Error, match="that is served"):
            drive.start()
        assert drive.stop() == 0
        drive.start()
        assert drive.kill() == -9
        drive.start()
        drive.cut_power()
        drive.start()
        file = os.open(drive.file, os.O_RDONLY)
        assert os.pread(file, 4096, 4096) == b"a" * 4096
        os.close(file)
        assert "started" in drive.log
    assert list(tmp_path.iterdir()) == []


def test_faults_come_by_order_and_by_schedule(served_volumes):
    drive = served_volumes("64M", faults=[{"kind": "fill", "after_commands": 2}])
    with pytest.raises(OSError, match="No space"):
        for page in range(16):
            written_and_read(drive, page * 4096, b"b" * 4096)
    drive.stop()
    drive.start()
    assert written_and_read(drive, 0, b"c" * 4096) == b"c" * 4096
    drive.inject("fail-die", die=0)
    written_and_read(drive, 0, os.urandom(1 << 20))
    assert drive.status()["health"]["state"] == "degraded"
    assert drive.counters()["writes.host_bytes"] >= 1 << 20


def test_wrong_arguments_are_named(served_volume, tmp_path):
    with pytest.raises(fg.Error, match="unknown variant `stal`.*`stall`"):
        served_volume.inject("stal")
    with pytest.raises(fg.Error, match="at most 3600000 ms"):
        served_volume.inject("stall", stall_ms=10**9)
    for kind in ("cut-power", "fail-plp", "fail-controllers", "reset-controllers"):
        with pytest.raises(fg.Error, match="unknown field `die`"):
            served_volume.inject(kind, die=1)
    with pytest.raises(fg.Error, match="unknown field `fault`"):
        served_volume.inject("stall", fault=1)
    with pytest.raises(fg.Error, match="there is no die 9") as raised:
        served_volume.inject("fail-die", die=9)
    assert raised.value.remedy == ""
    with pytest.raises(fg.Error, match=r"nvme\+tcp") as raised:
        served_volume.nvme_uri
    assert raised.value.remedy == "needs nvme=True"
    served_volume.stop()
    with pytest.raises(fg.Error, match="not served") as raised:
        served_volume.inject("fill")
    assert "--fault-injection" in raised.value.remedy
    with pytest.raises(fg.Error, match="creating a volume.*--dies"):
        ServedVolume(dies=0, folder=tmp_path)
    with pytest.raises(fg.Error, match="(?s)serving a volume.*unknown field"):
        unknown = {"kind": "stall", "after_ms": 1, "ms": 2}
        with ServedVolume("64M", faults=[unknown], folder=tmp_path):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_server_without_faults_says_what_allows_them(command, tmp_path):
    with ServedVolume("64M", file=False, folder=tmp_path) as drive:
        drive.stop()
        words = [command, "volume", "serve", drive.volume.path, "--json", "--nbd",
                 f"unix:{tmp_path / 'nbd.sock'}"]
        server = subprocess.Popen(words, stdout=subprocess.PIPE)
        try:
            assert server.stdout.readline()
            with pytest.raises(fg.Error, match="faults are not allowed") as raised:
                drive.inject("fill")
            assert raised.value.remedy.endswith("--fault-injection`")
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()


def test_a_server_that_does_not_begin_is_killed_and_its_last_lines_are_told(
        command, monkeypatch, tmp_path):
    hanging = tmp_path / "hanging"
    hanging.write_text(f"#!/bin/sh\n[ $2 = serve ] || exec '{command}' \"$@\"\n"
                       "seq 20 >&2\nexec sleep 600\n")
    hanging.chmod(0o755)
    drive = ServedVolume("64M", folder=tmp_path)
    drive.start()
    drive.stop()
    monkeypatch.setattr(drive, "_command", str(hanging))
    with pytest.raises(fg.Error, match="(?s)within 5 s.*killed.*last lines: 11\n.*20") as raised:
        drive.start(timeout_s=5)
    assert "timeout_s" in raised.value.remedy and "started" not in raised.value.text
    monkeypatch.undo()
    drive.remove()


def test_the_files_of_a_killed_server_are_gone_when_it_is(served_volumes, monkeypatch, tmp_path):
    # A shell unmounts after a server that was killed: this one is late.
    late = tmp_path / "umount"
    late.write_text("#!/bin/sh\nsleep 1\nPATH=${PATH#*:} exec umount \"$@\"\n")
    late.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    drive = served_volumes("64M")
    folder = drive.file.parent
    assert os.listdir(folder) == [drive.file.name]
    drive.kill()
    assert os.listdir(folder) == []


def test_the_examples_of_the_guide_find_both_mistakes(root, tmp_path):
    text = (root / "docs/guide/test-storage-software.md").read_text()
    blocks = re.findall(r"^```python\n# ([a-z_]+\.py)(?:, (\w+))?\n(.*?)^```$", text,
                        re.DOTALL | re.MULTILINE)
    files = {name: body for name, function, body in blocks if not function}
    for name, body in files.items():
        (tmp_path / name).write_text(body)
    assert outcome(tmp_path) == "2 failed"
    store, mended = files["store.py"], {function: body for _, function, body in blocks if function}
    caught = re.search(r"^        try:\n(?:.*\n)*?            return None\n", store, re.MULTILINE)
    store = store.replace(caught[0], mended["record_at"])
    written = mended["put"].splitlines(keepends=True)[0]
    assert written in store
    (tmp_path / "store.py").write_text(store.replace(written, mended["put"]))
    assert outcome(tmp_path) == "2 passed"


def outcome(folder):
    """Runs the tests in a folder, and returns what came of them."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines()[-1].partition(" in ")[0]
