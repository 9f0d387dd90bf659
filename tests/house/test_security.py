"""SECURITY.md says what the code does: what is unpickled, modes of files, where it listens, how long a token is."""

import ast
import inspect
import stat
from pathlib import Path

from pystorm_source.channel.reports import protocol, server
from pystorm_source.cli.ui import ui
from pystorm_source.observe import Prometheus
from pystorm_source.records.record import PystormProgress
from pystorm_source.records.record_file import Begin
from pystorm_source.records.record_folder import make_private
from pystorm_source.records.record_writer import RecordWriter

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()

UNPICKLED = {
    "pystorm_source/spark/interned.py",  # a task's own plan
    "pystorm_source/source/task/range_partition.py",  # a task's input partition
    "pystorm_source/worker/processes/frames.py",  # between a process and its own children, over memory of theirs
    "pystorm_source/testing/law.py",  # a copy of a class that the test itself has
}
"""Modules that unpickle: what Spark has carried, or what the process itself has pickled."""
EVALUATED = {"pystorm_source/formats/json_columns.py"}
"""Modules that evaluate text: their own, of which only a number is variable."""


def calls(name: str) -> set[str]:
    """``module.function`` and ``function`` of what a file calls."""
    called = (node.func for node in ast.walk(ast.parse(Path(name).read_text())) if isinstance(node, ast.Call))
    return {ast.unparse(each) for each in called if isinstance(each, (ast.Name, ast.Attribute))}


def test_only_what_spark_carries_is_unpickled_and_nothing_is_evaluated():
    unpickle, evaluate = set(), set()
    for path in ROOT.glob("pystorm_source/**/*.py"):
        found, name = calls(path), str(path.relative_to(ROOT))
        if found & {"pickle.loads", "pickle.load", "cloudpickle.loads", "loads", "marshal.loads", "dill.loads"}:
            unpickle.add(name)
        if found & {"eval", "exec", "yaml.load", "yaml.unsafe_load", "yaml.full_load"}:
            evaluate.add(name)
    assert unpickle == UNPICKLED
    assert evaluate == EVALUATED
    assert "unpickled or evaluated" in TEXT


def test_the_token_of_a_run_has_256_bits_and_every_frame_its_own_mac():
    assert server._TOKEN_BYTES * 8 == 256
    one, two = (protocol.frame(b"t" * 32, b"n" * 32, sequence, b"{}") for sequence in (0, 1))
    assert one != two and one != protocol.frame(b"t" * 32, b"m" * 32, 0, b"{}")


def test_records_are_for_the_user_of_the_driver(tmp_path):
    folder = tmp_path / "private"
    make_private(folder)
    writer = RecordWriter(folder, Begin(topology="Orders", run="0123456789ab"))
    writer.write(PystormProgress())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(writer.path.stat().st_mode) == 0o600


def test_the_page_and_the_metrics_listen_on_this_machine_alone():
    assert inspect.signature(ui).parameters["host"].default == "127.0.0.1"
    assert inspect.signature(Prometheus).parameters["addr"].default == "127.0.0.1"
