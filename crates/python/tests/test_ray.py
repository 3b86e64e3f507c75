"""Tasks of Ray write the bytes of the command, also where a node is lost midway."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import pytest
from conftest import LAPSE

import floatgate as fg

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

SWEEP = ["sweep", "iodrive-duo", "--user-capacity", "440G,480G,520G,560G", "--threads", "1,2",
         "--queue", "1", "--time-lapse", LAPSE]


def test_an_address_where_nothing_answers_is_refused_at_once(tmp_path):
    unused = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{unused.getsockname()[1]}"
    unused.close()
    driver = [sys.executable, "-m", "floatgate", "sweep", "--resume", tmp_path, "--ray", address]
    done = subprocess.run(driver, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert f"connecting to a cluster of Ray at {address}" in done.stderr, done.stderr
    assert "ray start --head" in done.stderr


@pytest.fixture(scope="module")
def commanded(floatgate, tmp_path_factory):
    """The folder of a sweep of the command on this machine."""
    out = tmp_path_factory.mktemp("commanded")
    floatgate(*SWEEP, "--out", out)
    return next(path for path in out.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def cluster():
    """A cluster of a head that takes no tasks, and two nodes."""
    quiet = {"include_dashboard": False, "object_store_memory": 80 * 2**20}
    cluster = cluster_utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, **quiet})
    cluster.nodes = [cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
                     for _ in range(2)]
    yield cluster
    cluster.shutdown()


def begun(commanded, folder, kept=()):
    """A copy of the sweep as if it had been interrupted after some points."""
    shutil.copytree(commanded, folder)
    for name in ("sweep.json", "sweep.csv", "sweep.html"):
        (folder / name).unlink()
    for path in (folder / "points").iterdir():
        if path.stem not in kept:
            path.unlink()
    return folder


def is_soon_without_a_node():
    """True once the head knows of a node that is gone: it learns so from missing heartbeats."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if sum(node["Alive"] for node in ray.nodes()) < 3:
            return True
        time.sleep(0.2)
    return False


def test_two_nodes_one_lost_midway_write_the_bytes_of_the_command(commanded, cluster, tmp_path):
    ray.init(address=cluster.address, log_to_driver=False)
    lost = threading.Event()

    def watch(event):
        if event["done"] < 1 and not lost.is_set():
            lost.set()
            cluster.remove_node(cluster.nodes.pop(), allow_graceful=False)

    try:
        folder = begun(commanded, tmp_path / commanded.name)
        fg.sweep(resume=folder, executor=ray, batch=1, progress=watch)
        assert lost.is_set() and is_soon_without_a_node()
    finally:
        ray.shutdown()
    for name in ("sweep.json", "sweep.csv", "sweep.html"):
        assert (folder / name).read_bytes() == (commanded / name).read_bytes(), name


def test_the_command_has_a_cluster_measure(commanded, cluster, tmp_path, command):
    folder = begun(commanded, tmp_path / commanded.name, kept=("0000", "0003"))
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    words = [command, "sweep", "--resume", folder, "--ray", cluster.address, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": path})
    assert done.returncode in (0, 3), done.stderr
    expected = (commanded / "sweep.json").read_bytes()
    assert (folder / "sweep.json").read_bytes() == expected
    assert json.loads(done.stdout) == json.loads(expected)


def test_failures_on_the_cluster_are_told_in_our_words(cluster):
    with pytest.raises(fg.Error, match="not connected"):
        fg.sweep(fg.Drive.load("iodrive-duo"), {"threads": [1]}, executor=ray)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        executor = fg.RayExecutor(ray)
        task = executor.submit(fg.carry_out, 0, repr, [(1,)])
        failure = executor.failure(task.exception())
    finally:
        ray.shutdown()
    assert isinstance(failure, fg.Error) and "model version" in failure.text
    assert "same version" in failure.remedy
