"""Jobs with a session of their own: settings of Spark's that bear on processes, and what is left when a job ends."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.spark_classes import submit_options
from tests.kills.processes import MARK, gone, marked
from tests.kills.session import environment

pytestmark = [pytest.mark.spark, pytest.mark.campaign, pytest.mark.timeout(240)]
ROOT = Path(__file__).resolve().parents[2]
SMALL_SHM = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=64k none /dev/shm && exec "$@"', "sh"]


def can_mount():
    return subprocess.run([*SMALL_SHM, "true"], capture_output=True).returncode == 0


def begun(folder, master, *settings, under=()):
    """The job, when it has read all rows; its JVM's process id; the mark of its processes; what it has said."""
    mark = f"processes {folder.name} {os.getpid()}"
    command = [*under, sys.executable, "-m", "tests.processes.job", master, str(folder), *settings]
    env = {**os.environ, **environment(folder), MARK: mark, "SPARK_SUBMIT_OPTS": submit_options()}
    with (folder / "stderr").open("w") as stderr:
        job = subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    said = []
    for line in job.stdout:
        said.append(line.rstrip())
        if line.startswith("gateway "):
            return job, int(line.split()[1]), mark, said[:-1]
    raise AssertionError((said, (folder / "stderr").read_text()[-3000:]))


def end(job):
    job.stdin.close()
    assert "stopped" in job.stdout.read()
    assert job.wait(60) == 0
    job.stdout.close()


def advice_in(text):
    """Topology → how often its task was told that it has too few cores."""
    found = re.findall(r"bolts of topology '(\w+)' run in 2 processes", text)
    return {name: found.count(name) for name in found}


def test_workers_are_not_used_again_and_shared_memory_has_a_file_system_of_64_kb(tmp_path):
    settings = ["spark.python.worker.reuse=false", "spark.executor.pyspark.memory=1500m"]
    job, _, mark, said = begun(tmp_path, "local[2,4]", *settings, under=SMALL_SHM if can_mount() else ())
    assert said == ["source True", "apply True"]
    assert not gone(lambda: {pid: text for pid, text in marked(mark).items() if has_bolt(pid)}, 20)
    told = advice_in((tmp_path / "stderr").read_text())
    assert told.pop("Squared") == 1
    assert 1 <= told.pop("SquaredRows") <= 2, "a batch, and a stream whose first micro-batch may have no rows"
    assert told == {}
    end(job)
    assert not gone(lambda: marked(mark), 20)


def has_bolt(pid):
    """Whether it is the process of a bolt, by the name that the system shows."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith("squares-")
    except OSError:
        return False


def test_nothing_is_left_when_queries_and_the_session_have_ended(tmp_path):
    settings = ["spark.executor.pyspark.memory=1500m", "spark.task.cpus=2"]
    job, _, mark, said = begun(tmp_path, "local[2,4]", *settings)
    assert said == ["source True", "apply True"]
    assert advice_in((tmp_path / "stderr").read_text()) == {}
    end(job)
    assert not gone(lambda: marked(mark), 20)


def test_nothing_is_left_when_a_cluster_loses_its_driver_in_a_micro_batch(tmp_path):
    job, driver, mark, said = begun(tmp_path, "local-cluster[2,1,1024]", "--killed")
    assert said == ["source True", "apply True"]
    assert any(map(has_bolt, marked(mark)))
    os.kill(driver, signal.SIGKILL)
    job.kill()
    job.wait(60)
    assert not gone(lambda: marked(mark), 60)
    said = "\n".join(path.read_text() for path in (tmp_path / "home" / "work").glob("*/*/stderr"))
    told = advice_in(said)
    assert set(told) == {"Squared", "SquaredRows"}
    job.stdin.close()
    job.stdout.close()
