"""Brokers that fail: one that dies under a task, a leader that moves; and one that ends with its tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import NewTopic

from pystorm_source.spouts import KafkaBatchSpout
from testbed.kafka_broker import kafka_cluster
from tests.spouts.kafka.topic import Topic, numbers, until, values_of

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.campaign
def test_a_broker_killed_under_a_reading_task_costs_and_doubles_nothing(kafka):
    topic = Topic(kafka)
    topic.write(numbers(0, 3000))
    driven = topic.spout(KafkaBatchSpout)  # by tuple: test_kafka_through_spark
    spout = driven.instance("task")
    place = f"{topic.name}-0"
    assert values_of(driven.read(place, 0, 100, spout)) == numbers(0, 100)
    broker = kafka.brokers[0]
    broker.kill()
    broker.start()
    # It has fetched some ahead; the rest comes when the broker is back. Another consumer begins with nothing.
    rows = values_of(driven.read(place, 100, 2000, spout)) + values_of(driven.read(place, 2000, 3000))
    kafka.wait()
    assert rows == numbers(100, 3000)
    assert driven.driver.snapshot({}, {}).heads == {place: (0, 3000)}
    spout.cleanup()


@pytest.mark.campaign
def test_a_leader_that_moves_is_followed_there_and_back(tmp_path, kafka):
    with kafka_cluster(tmp_path, brokers=2) as cluster:
        # The first broker is the controller and has to live: the second one leads, dies and comes back.
        new = NewTopic("moved", num_partitions=1, replica_assignment=[[2, 1]])
        cluster.admin.create_topics([new])["moved"].result(20)
        cluster.await_leaders("moved", 1)

        def leads(node):
            found = cluster.admin.list_topics("moved", timeout=10).topics["moved"].partitions[0]
            return found.leader == node and set(found.isrs) >= {node}

        topic = Topic(cluster, name="moved")
        topic.write(numbers(0, 1000))
        driven = topic.spout()
        spout = driven.instance("task")
        assert leads(2)
        assert values_of(driven.read("moved-0", 0, 300, spout)) == numbers(0, 300)
        assert driven.driver.snapshot({}, {}).heads == {"moved-0": (0, 1000)}
        cluster.brokers[1].kill()
        assert values_of(driven.read("moved-0", 300, 1000, spout)) == numbers(300, 1000)
        until(lambda: leads(1))
        assert values_of(driven.read("moved-0", 200, 900, spout)) == numbers(200, 900)
        topic.write(numbers(1000, 1010))
        assert driven.driver.snapshot({}, {}).heads == {"moved-0": (0, 1010)}
        cluster.brokers[1].start()
        until(lambda: len(cluster.admin.list_topics("moved", timeout=10).topics["moved"].partitions[0].isrs) == 2)
        places = [TopicPartition("moved", 0)]
        cluster.admin.elect_leaders(ElectionType.PREFERRED, places).result(20)
        until(lambda: leads(2))
        assert values_of(driven.read("moved-0", 1000, 1010, spout)) == numbers(1000, 1010)
        assert driven.driver.snapshot({}, {}).heads == {"moved-0": (0, 1010)}
        spout.cleanup()


@pytest.mark.parametrize("slow", [False, True], ids=["running", "not asked for the signal yet"])
def test_a_broker_dies_with_the_process_that_has_started_it(tmp_path, slow):
    if slow:
        late = tmp_path / "setpriv"
        late.write_text(f'#!/bin/sh\nread line < "{tmp_path}/go"\nexec {shutil.which("setpriv")} "$@"\n')
        late.chmod(0o755)
        os.mkfifo(tmp_path / "go")
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom testbed.kafka_broker import KafkaCluster\n"
        "broker = KafkaCluster(Path(sys.argv[1])).brokers[0]\nbroker.start()\n"
        "print(broker.pid, flush=True)\ntime.sleep(60)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | path, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        broker = int(parent.stdout.readline())
        if not slow:
            until(lambda: b"/java" in Path(f"/proc/{broker}/cmdline").read_bytes().split(b"\0")[0])
        parent.kill()
    if slow:
        (tmp_path / "go").write_text("\n")
    until(lambda: not _lives(broker))


def _lives(pid: int) -> bool:
    """Whether the process is there, and not only as an entry that its parent has not read yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
