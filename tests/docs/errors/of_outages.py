"""Examples of errors about checkpoints, the journal and other systems: each really damages or stops something."""

import contextlib
import json
import resource
import socketserver
import ssl
import threading

import pyarrow as pa

from pystorm_source.api import Topology
from pystorm_source.journal.committed import Part, tuples_of
from pystorm_source.journal.log import Journal
from pystorm_source.journal.options import JournalOptions
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import FilesSpout, KafkaSpout
from pystorm_source.testing import run_topology
from pystorm_source.worker import OutputPlan
from pystorm_source.worker.new_worker import new_worker
from testbed.certificates import self_signed
from tests.docs.errors.examples import raises
from tests.formats.schema_registry import schema_registry
from tests.formats.test_avro import decoder, record
from tests.journal import test_log as journals
from tests.kafka_mock import mock_kafka
from tests.processes.spark_topologies import Squared
from tests.source.spark_calls import Checkpoint, Run

NUMBERS = {"topology": "tests.docs.errors.examples:Numbers"}
MESSAGES = {"topology": "tests.source.journal_topologies:Messages", "maxOffsetsPerTrigger": "7"}


class Logs(Topology):
    lines = FilesSpout.spec()


def options(folder):
    """Of a query of messages behind a journal."""
    (folder / "messages").write_text("".join(f"{n}\n" for n in range(40)))
    return {**MESSAGES, "path": str(folder), "journal.path": str(folder / "journal")}


def ran(given, batches=1):
    """The checkpoint of a query of so many micro-batches."""
    checkpoint = Checkpoint()
    query = Run(given, checkpoint)
    for _ in range(batches):
        query.trigger()
    query.reader.stop()
    return checkpoint


def logs(folder):
    """Of a query that follows one file, and its checkpoint."""
    (folder / "app.log").write_text("started\nready\n")
    given = {"topology": f"{__name__}:Logs", "path": str(folder / "app.log")}
    return given, ran(given)


@raises("PYSTORM_CHECKPOINT_DAMAGED", "An offset in the folder `offsets` of the checkpoint was edited.")
def _():
    checkpoint = ran(NUMBERS)
    checkpoint.offsets[-1] = checkpoint.offsets[-1].replace(": 2}", ": 1}")
    Run(NUMBERS, checkpoint).trigger()


@raises("PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY", "A query was started with the checkpoint of another one.")
def _(folder):
    given, _ = logs(folder)
    Run(given, ran(NUMBERS)).trigger()


@raises("PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY", "The checkpoint was written by a later version of this package.")
def _():
    checkpoint = ran(NUMBERS)
    later = {**json.loads(checkpoint.offsets[-1]), "version": 2}
    checkpoint.offsets[-1] = json.dumps(later)
    Run(NUMBERS, checkpoint).trigger()


@raises("PYSTORM_CHECKPOINT_DAMAGED", "The checkpoint was restored from a backup two micro-batches old.")
def _(folder):
    given = options(folder)
    checkpoint, backup = ran(given, batches=4), Checkpoint()
    backup.offsets, backup.finished = checkpoint.offsets[:-2], len(checkpoint.offsets) - 2
    Run(given, backup).trigger()


@raises("PYSTORM_DATA_LOST", "A file was truncated and overwritten before the query had read it to its end.")
def _(folder):
    given, checkpoint = logs(folder)
    (folder / "app.log").write_text("anew\n")
    Run(given, checkpoint).trigger()


@raises("PYSTORM_PERMITS_UNREACHABLE", "The process on the driver cannot listen, and the topology has a rate limit.")
def _():
    given = {"topology": "tests.docs.errors.examples:Numbers", "topology.rate.limit": '{"api": "10/s"}'}
    ran(given)


@raises("PYSTORM_NO_PROCESSES", "The Python worker had reached its limit of open files.")
def _():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        new_worker(compile_plan(Squared), OutputPlan(pa.schema([]), ()))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@raises("PYSTORM_FILE_UNREADABLE", "The directory was unmounted while a query followed its files.")
def _(folder):
    mounted = folder / "logs"
    mounted.mkdir()
    given, checkpoint = logs(mounted)
    given["path"] = str(mounted)
    mounted.rename(folder / "elsewhere")
    Run(given, checkpoint).trigger()


@raises(
    "PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY",
    "The query was restarted with a smaller `par` while a micro-batch was unfinished.",
)
def _(folder):
    journal, rows = journals.opened(folder)
    journal.found()
    for batch in (journals.BatchRange(0, 50), journals.BatchRange(50, 100)):
        clock = journals.SystemClock()
        journals.BatchWriter(journal, JournalOptions(path=str(folder)), batch, rows, clock).commit()
    journal.opened(journals.BatchRange(0, 100), 1, True)


@raises("PYSTORM_DATA_LOST", "A segment of the journal lost its end.")
def _(folder):
    journals.committed(folder, range(10))
    segment = next(folder.glob(f"lines/{journals.ID}/*.segment"))
    segment.write_bytes(segment.read_bytes()[:200])
    journals.read(folder)


@raises("PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY", "`outputs` of the spout changed while a micro-batch was unfinished.")
def _(folder):
    journal = journals.committed(folder, range(10))
    renamed = journals.JournalRows("lines", {"default": journals.pa.schema([("m", journals.pa.int64())])})
    list(tuples_of(journal, Part(journal.opened(journals.BATCH, 1, True)), renamed, True))


@raises("PYSTORM_JOURNAL_UNREACHABLE", "Where the folder of `journal.path` should be is a file.")
def _(folder):
    given = options(folder)
    (folder / "journal").write_text("")
    ran(given)


@raises("PYSTORM_ATTEMPT_SUPERSEDED", "A slow attempt of a task ends when its micro-batch has long been finished.")
def _(folder):
    journal, rows = journals.opened(folder)
    journal.found()
    slow = journals.BatchWriter(journal, JournalOptions(path=str(folder)), journals.BATCH, rows, journals.SystemClock())
    Journal(JournalOptions(path=str(folder)), "lines", journals.ID).trim(journals.BATCH.end)
    slow.commit()


def orders(servers, **config):
    class Orders(Topology):
        orders = KafkaSpout.spec(servers=servers, config={**QUICK, "subscribe": "orders", **config})

    return run_topology(Orders)


QUICK = {"fetchOffset.numRetries": 0, "fetchOffset.retryIntervalMs": 10, "kafka.default.api.timeout.ms": 2000}


@raises("PYSTORM_KAFKA_UNREACHABLE", "No broker listens at that address.")
def _():
    orders("127.0.0.1:9")


@raises("PYSTORM_KAFKA_REFUSES", "The broker's certificate is self-signed, and the client does not know it.")
def _(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(folder / "stranger.pem"))

    class Greets(socketserver.BaseRequestHandler):
        def handle(self):
            with contextlib.suppress(OSError):
                context.wrap_socket(self.request, server_side=True)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Greets) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        try:
            orders(f"127.0.0.1:{listener.server_address[1]}", **{"kafka.security.protocol": "SSL"})
        finally:
            listener.shutdown()


@raises("PYSTORM_KAFKA_TOPIC_NOT_FOUND", "The topic has one partition, and the option names another one.")
def _():
    with mock_kafka() as mock:
        mock.create("orders")

        class Orders(Topology):
            orders = KafkaSpout.spec(servers=mock.bootstrap, config={**QUICK, "assign": '{"orders": [7]}'})

        run_topology(Orders)


@raises("PYSTORM_KAFKA_REFUSES", "The function of `kafka.oauth_cb` raises an exception.")
def _(folder):
    (folder / "tokens.py").write_text("def of_kafka(config):\n    raise PermissionError('no such user')\n")
    security = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "OAUTHBEARER"}
    orders("127.0.0.1:9", **security, **{"kafka.oauth_cb": "tokens:of_kafka"})


@raises("PYSTORM_KAFKA_UNREACHABLE", "The schema registry was stopped.")
def _():
    with schema_registry() as gone:
        data = gone.avro([{"id": 1}], record(id="long"))
    decoder(gone, "id bigint").values(data, {})


@raises("PYSTORM_KAFKA_UNREACHABLE", "The schema registry wants a password, and another one is given.")
def _():
    with schema_registry("me:secret") as registry:
        data = registry.avro([{"id": 1}], record(id="long"))
        decoder(registry, "id bigint", **{"schema.registry.basic.auth.user.info": "me:wrong"}).values(data, {})
