"""A real Kafka for tests and benchmarks: the released broker in its own JVM, on the loopback interface.

    with kafka_cluster(folder) as cluster:
        cluster.bootstrap                      # "127.0.0.1:41234"
        cluster.create("orders", partitions=2)
        cluster.brokers[0].kill()              # -9
        cluster.brokers[0].start()             # same port, same data

``secured``: the first broker also has listeners that need a password (``SASL``), a token (``OAUTH``) or a certificate
(``TLS``): ``USER`` and ``PASSWORD``, any unsigned token, or the properties ``tls``.

KRaft: the first broker is also the controller. Brokers end with the context. If the process that started them is
killed, the kernel ends them (``PR_SET_PDEATHSIG``, by ``setpriv``). Maven fetches the jars into the ignored folder
``.peers/``.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from pystorm_source.spark.java import ensure_java
from testbed.certificates import self_signed
from testbed.maven import Jar, java_jars
from testbed.ports import free_port

BROKER = Jar("org.apache.kafka", "kafka_2.13", "4.1.1")

STARTING_SECONDS = 150
USER, PASSWORD = "reader", "correct-horse"
CLUSTER_ID = "pystorm-tests-kafka-01"
# Order: first ask the kernel for the signal, then check that the parent, the first argument, still exists.
DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')
JVM = ("-Xmx384m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

# Small and quick: one partition for each of Kafka's own topics, a log cleaner that runs often, no waiting for members.
SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "num.network.threads": 2,
    "num.io.threads": 2,
    "background.threads": 2,
    "metadata.max.idle.interval.ms": 5000,
    "num.recovery.threads.per.data.dir": 1,
    "log.cleaner.backoff.ms": 250,
    "log.cleaner.dedupe.buffer.size": 4_194_304,
    "log.initial.task.delay.ms": 100,
    "log.segment.delete.delay.ms": 200,  # 0: the task that deletes runs without a pause, 5 % of a core
    "controlled.shutdown.enable": "false",
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 400,
}


class KafkaBroker:
    """One broker process; ``port`` and data survive restarts."""

    def __init__(self, node: int, folder: Path, controller: str, jars: Path, is_controller: bool, secured: bool):
        self.node = node
        self.port = free_port()
        self.secured = {name: free_port() for name in ("SASL", "OAUTH", "TLS")} if secured else {}
        self.folder = folder / f"broker-{node}"
        self._jars = jars
        self._process: subprocess.Popen[bytes] | None = None
        self.folder.mkdir(parents=True)
        data = self.folder / "data"
        data.mkdir()
        roles = "broker,controller" if is_controller else "broker"
        ports = {"PLAINTEXT": self.port, **self.secured}
        advertised = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
        settings = {
            "node.id": node,
            "process.roles": roles,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,"
            "OAUTH:SASL_PLAINTEXT,TLS:SSL",
            "listeners": advertised + (f",CONTROLLER://{controller}" if is_controller else ""),
            "advertised.listeners": advertised,
            "log.dirs": data,
            "broker.rack": f"rack-{node}",
            **SETTINGS,
            **(_secured(folder) if secured else {}),
        }
        _write_properties(self.folder / "server.properties", settings)
        # What `kafka-storage format` would write, without another JVM.
        _write_properties(data / "meta.properties", {"version": 1, "cluster.id": CLUSTER_ID, "node.id": node})

    def start(self) -> None:
        """Starts the process; ``KafkaCluster.wait`` returns once it answers. It ends with the calling thread."""
        java = ensure_java().home / "bin" / "java"
        command = [*DIES_WITH_PARENT, str(os.getpid()), str(java), *JVM, "-cp", f"{self._jars}/*", "kafka.Kafka"]
        with open(self.folder / "broker.log", "ab") as log:
            self._process = subprocess.Popen(
                [*command, str(self.folder / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kills it like a power cut, and waits until it is gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Shuts it down cleanly; after 20 seconds by force."""
        self._end(signal.SIGTERM)

    def _end(self, how: int) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(20)
        self._process = None

    def log(self) -> str:
        return (self.folder / "broker.log").read_text(errors="replace")[-3000:]


class KafkaCluster:
    """Brokers and an admin client."""

    def __init__(self, folder: Path, brokers: int = 1, secured: bool = False):
        jars = java_jars(BROKER)
        controller = f"127.0.0.1:{free_port()}"
        self.folder = folder
        self.brokers = [
            KafkaBroker(node, folder, controller, jars, node == 1, secured and node == 1)
            for node in range(1, brokers + 1)
        ]
        self.bootstrap = ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers)

    def start(self) -> None:
        for broker in self.brokers:
            broker.start()
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self.wait()
        if self.brokers[0].secured:
            scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
            upsertion = UserScramCredentialUpsertion(USER, scram, PASSWORD.encode())
            self.admin.alter_user_scram_credentials([upsertion])[USER].result(20)

    @property
    def tls(self) -> dict[str, str]:
        """Properties for a client of the listener ``TLS``: the broker's certificate and the client's."""
        return {"ssl.ca.location": str(self.folder / "broker.pem"), **certified(self.folder / "client.pem")}

    def wait(self) -> None:
        """Waits until every running broker is a member. Raises RuntimeError with the log of one that does not join."""
        end = time.monotonic() + STARTING_SECONDS
        while True:
            alive = [broker for broker in self.brokers if broker.alive()]
            try:
                if len(self.admin.list_topics(timeout=1).brokers) >= len(alive) > 0:
                    return
            except KafkaException:
                pass
            if not alive or time.monotonic() > end:
                raise RuntimeError(f"no Kafka here; log: {self.brokers[0].log()}")

    def stop(self) -> None:
        # By force: nothing is needed any more.
        for broker in self.brokers:
            broker.kill()

    def create(self, topic: str, partitions: int = 1, replicas: int = 1, **config: object) -> str:
        """Creates a topic and waits for its leaders; ``config`` with ``_`` for ``.``."""
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        new = NewTopic(topic, partitions, replicas, config=settings)
        self.admin.create_topics([new])[topic].result(20)
        self.await_leaders(topic, partitions)
        return topic

    def await_leaders(self, topic: str, partitions: int) -> None:
        end = time.monotonic() + 20
        while True:
            found = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
            if len(found) == partitions and all(each.leader >= 0 for each in found.values()):
                return
            assert time.monotonic() < end, f"{topic} has no leaders"

    def delete(self, topic: str) -> None:
        """Deletes a topic and waits until no broker knows it."""
        self.admin.delete_topics([topic])[topic].result(20)
        end = time.monotonic() + 20
        while topic in self.admin.list_topics(timeout=10).topics:
            assert time.monotonic() < end, f"{topic} is still there"


@contextmanager
def kafka_cluster(folder: Path, brokers: int = 1, secured: bool = False) -> Iterator[KafkaCluster]:
    """Running brokers, which end with the context."""
    cluster = KafkaCluster(folder, brokers, secured)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def certified(pem: Path) -> dict[str, str]:
    """Returns the properties of a client with this certificate and its key."""
    return {"ssl.certificate.location": str(pem), "ssl.key.location": str(pem)}


def _secured(folder: Path) -> dict[str, object]:
    """Returns the settings of the listeners that need a password, a token or a certificate."""
    module = "org.apache.kafka.common.security"
    sasl, oauth, tls = "listener.name.sasl.", "listener.name.oauth.", "listener.name.tls."
    return {
        f"{oauth}sasl.enabled.mechanisms": "OAUTHBEARER",
        # Without a validating class, Kafka accepts unsigned tokens.
        f"{oauth}oauthbearer.sasl.jaas.config": f"{module}.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="broker";',
        f"{sasl}sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        f"{sasl}plain.sasl.jaas.config": f'{module}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
        f"{sasl}scram-sha-256.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
        f"{tls}ssl.keystore.type": "PEM",
        f"{tls}ssl.keystore.location": self_signed(folder / "broker.pem"),
        f"{tls}ssl.truststore.type": "PEM",
        f"{tls}ssl.truststore.location": self_signed(folder / "client.pem"),
        f"{tls}ssl.client.auth": "required",
    }


def _write_properties(path: Path, settings: Mapping[str, object]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
