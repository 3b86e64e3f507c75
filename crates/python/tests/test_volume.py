"""Live volumes are seen as the command sees them, served and closed."""

import json
import signal
import subprocess
import time

import pytest

import floatgate as fg


@pytest.fixture
def folder(tmp_path, floatgate):
    """A volume over two files."""
    dies = ",".join(str(tmp_path / f"d{index}.img") for index in range(2))
    floatgate("create", tmp_path / "volume", "--dies", dies, "--size", "64M")
    return tmp_path / "volume"


def test_a_closed_volume_has_the_status_of_the_command(folder, floatgate):
    volume = fg.Volume.open(folder)
    printed = json.loads(floatgate("status", folder, "--json"))
    assert volume.status() == printed and printed["state"] == "closed"
    counters = volume.counters()
    assert counters["smart.power_cycles"] == printed["smart"]["power_cycles"]
    assert all(isinstance(value, (int, float)) for value in counters.values())
    assert "closed" in volume._repr_html_()
    with pytest.raises(fg.Error, match="is not served"):
        volume.history()


def test_a_served_volume_tells_of_its_server_and_its_past(folder, command):
    socket = folder.parent / "nbd.sock"
    words = [command, "serve", folder, "--nbd", f"unix:{socket}"]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        volume, until = fg.Volume(str(folder)), time.monotonic() + 60
        while not (socket.exists() and (folder / "manage.sock").exists()):
            assert server.poll() is None and time.monotonic() < until
            time.sleep(0.02)
        status = volume.status()
        assert status["state"] == "open" and status["server"]["pid"] == server.pid
        assert volume.counters()["server.uptime_s"] >= 0
        for step in volume.history("2min"):
            assert step["reads_iops"] == 0 and "host_written_bytes_per_s" in step
            assert "rebuild_written_bytes_per_s" in step
        with pytest.raises(fg.Error, match="no history has the span") as raised:
            volume.history("2h")
        assert "24h" in raised.value.remedy
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    assert volume.status()["state"] == "closed"


def test_what_is_no_volume_is_refused_with_a_remedy(tmp_path):
    with pytest.raises(fg.Error, match="opening") as raised:
        fg.Volume.open(tmp_path / "nothing")
    assert "floatgate volume create" in raised.value.remedy
