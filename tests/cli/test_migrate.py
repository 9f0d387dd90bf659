"""``pystorm-source migrate``: streamparse's own quickstart from its released package, and projects typed here."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pystorm_source.cli.main import app
from tests.cli.streamparse_projects import quickstart, snapshot, typed
from tests.cli.strict_types import strict
from tests.oracle.conftest import their_tests  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
WIRING = """
from streamparse import Grouping, Topology
from parts import *

class T(Topology):
"""
SPOUT = """
from streamparse import Bolt, BatchingBolt, ReliableSpout, Spout, Stream

class Lines(Spout):
    outputs = ["line", "n"]
    def next_tuple(self):
        self.emit(["a line", 1])
"""


def migrate(*arguments):
    return CliRunner().invoke(app, ["migrate", *map(str, arguments)])


def project(folder, parts="", wiring="", **more):
    """A project of one module `parts` and one topology `T`."""
    imports = WIRING.replace("import *", "import Lines" + "".join(f", {name}" for name in classes(parts)))
    files = {"src/parts.py": SPOUT + parts, "topologies/t.py": imports + wiring, "config.json": '{"envs": {}}'}
    return typed(folder / "p", files | {name.replace("__", "/") + ".txt": text for name, text in more.items()})


def classes(text):
    return [node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]


def schema(folder, parts, wiring="    lines = Lines.spec()\n    b = B.spec(inputs=[lines])\n"):
    """The types that job.py gives to the rows of the bolt ``B``."""
    made = project(folder, parts, wiring)
    assert migrate(made).exit_code == 0
    (line,) = [
        line for line in (folder / "p-spark" / "job.py").read_text().splitlines() if line.startswith('    "t": "')
    ]
    return line.split('"')[3]


def python(folder, *arguments, timeout=100):
    """This Python in the project's folder, as its user runs it; with the project's modules as if installed."""
    path = os.pathsep.join([str(ROOT), str(folder), str(folder / "src")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, env=environment, timeout=timeout
    )


@pytest.fixture(scope="module")
def word_count(their_tests, tmp_path_factory):  # noqa: F811
    """(the report, streamparse's quickstart, the new project)."""
    original = quickstart(their_tests, tmp_path_factory.mktemp("wordcount"))
    before = snapshot(original)
    result = migrate(original)
    assert result.exit_code == 0, result.output
    assert snapshot(original) == before, "the project stays as it is"
    return result.stdout, original, original.with_name("wordcount-spark")


# --- streamparse's quickstart -----------------------------------------------------------------------------------------


def test_its_report(word_count):
    report, _, _ = word_count
    assert "topology WordCount, topologies/wordcount.py:11" in report
    assert "word_spout: Spout WordSpout, src/spouts/words.py:6" in report
    assert "self.counter (src/bolts/wordcount.py:16), self.total (src/bolts/wordcount.py:17):" in report
    assert "its stream leaves as rows: word string, count long" in report
    assert "job.py sets delivery.guarantee=best-effort, as on Storm" in report
    assert "0 questions to answer" in report
    assert max(map(len, report.splitlines())) <= 100


def test_only_import_lines_differ(word_count):
    _, original, made = word_count
    for path in original.rglob("*.py"):
        name = path.relative_to(original)
        if name.parts[0] in ("src", "topologies"):
            new = (made / name).read_text()
            assert new == path.read_text().replace("from streamparse import", "from pystorm_source import")
    assert (
        (made / "conf" / "prod.yaml")
        .read_text()
        .endswith("pystorm.log.max_bytes: 1000000\npystorm.log.backup_count: 10\npystorm.log.level: info\n")
    )


@pytest.mark.campaign
def test_its_tests_pass_and_all_commands_take_it(word_count):
    _, _, made = word_count
    tested = python(made, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert tested.returncode == 0 and "1 passed" in tested.stdout, tested.stdout
    drawn = python(made, "-m", "pystorm_source", "draw", "topologies/wordcount.py")
    assert "bolt count_bolt (WordCountBolt, 2 tasks)" in drawn.stdout
    checked = python(made, "-m", "pystorm_source", "check", "topologies/wordcount.py")
    assert "ok    topology               WordCount: 2 components, 3 tasks" in checked.stdout
    run = python(
        made, "-m", "pystorm_source", "run", "topologies/wordcount.py", "--for", "200ms", "--json", "--rows", "4"
    )
    found = json.loads(run.stdout)
    assert found["components"]["count_bolt"]["executed"] > 100
    rows = found["rows"]["count_bolt.default"]
    assert rows and all(count % (10 if word == "dog" else 1) == 0 for word, count in rows)


@pytest.mark.campaign
def test_what_it_makes_is_formatted_and_typed(word_count):
    pytest.importorskip("mypy", reason="requirements/dev.txt has mypy and ruff")
    _, _, made = word_count
    config = ["--config", str(ROOT / "pyproject.toml")]
    for check in (["check", "--ignore", "I"], ["format", "--check"]):
        done = python(made, "-m", "ruff", *check, "--no-cache", *config, "job.py", "tests")
        assert done.returncode == 0, done.stdout
    done = strict(python, made, "job.py")
    assert done.returncode == 0, done.stdout
    project = tomllib.loads((made / "pyproject.toml").read_text())
    assert project["project"]["dependencies"] == []
    assert project["tool"]["setuptools"]["packages"] == ["bolts", "spouts", "topologies"]


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.timeout(240)
def test_its_job_runs_on_spark(word_count, tmp_path):
    _, _, made = word_count
    done = python(made, "job.py", "--once", "--checkpoint", str(tmp_path / "checkpoint"), timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    table = done.stdout.replace(" ", "")
    assert "|word|count|" in table and "|cat|1|" in table


def test_a_job_without_its_settings_says_where_they_are_missing(word_count):
    done = python(word_count[2], "job.py", "--env", "beta")
    assert done.returncode == 1
    where = "there is no conf/beta.yaml here: mend --env, or say spark-submit --files conf/beta.yaml"
    assert done.stderr == f"job.py: {where}\n"


def test_a_second_run_overwrites_nothing(word_count):
    _, original, made = word_count
    (made / "job.py").write_text("# mine\n")
    (made / "tests" / "test_wordcount.py").unlink()
    second = migrate(original)
    assert (
        "wrote 1 files to " in second.stdout
        and "left as they were: .gitignore, conf/prod.yaml, job.py" in second.stdout
    )
    assert (made / "job.py").read_text() == "# mine\n"
    third = migrate(original)
    assert third.exit_code == 0 and "nothing is new: all 11 files are in " in third.stdout
    assert "To begin anew, remove that folder, or give another one by --output" in third.stdout


def test_a_dry_run_writes_nothing(word_count, tmp_path):
    _, original, _ = word_count
    result = migrate(original, "--output", tmp_path / "new", "--dry-run")
    assert result.exit_code == 0 and "    topologies/wordcount.py\n" in result.stdout
    assert not (tmp_path / "new").exists()
    assert migrate(original, "--output", tmp_path / "new").exit_code == 0
    assert (tmp_path / "new" / "job.py").is_file()


# --- types ------------------------------------------------------------------------------------------------------------

CERTAIN = {
    "tup.values.line": "string",
    "tup.values[1]": "long",
    "line": "string",
    "1.5": "double",
    "len(tup.values.line) > 3": "boolean",
    "f'{tup.values.n}'": "string",
    "len(tup.values.line)": "long",
    "self.seen[tup.values.line]": "long",
    "next(self.names)": "string",
}
UNSURE = [
    "json.loads(tup.values.line)",
    "self.unknown",
    "self.mixed[0]",
    "next(self.shared)",
    "self.given[0]",
    "twice",
    "caught",
    "round_about",
    "tup.values.n / 2",
    "tup.values.other",
    "tup.values[7]",
    "None",
    "helper(tup)",
    "len_of(1)",
]


@pytest.mark.parametrize("expression", [*CERTAIN, *UNSURE])
def test_a_type_is_certain_or_a_question(tmp_path, expression):
    """A type is never guessed: QUESTION stands where the code leaves a doubt."""
    parts = f"""
import json
from collections import Counter
from itertools import cycle

class B(Bolt):
    outputs = ["x"]
    def initialize(self, conf, context):
        self.seen = Counter()
        self.names = cycle(["a", "b"])
        self.mixed = Counter()
        self.mixed = [1]
        self.shared = cycle(["a", 1])
        self.given = Counter(conf)
    def process(self, tup):
        line = tup.values.line
        twice = 1
        twice = "a"
        try:
            caught = 1
        except ValueError as caught:
            pass
        round_about = back
        back = round_about
        self.emit([{expression}])

def helper(*of):
    return of

len_of = len
"""
    assert schema(tmp_path, parts) == f"x {CERTAIN.get(expression, 'QUESTION')}"


@pytest.mark.parametrize(
    "parts",
    [
        "from other import Mixin\nclass B(Mixin, Bolt):\n",
        "class B(Bolt):\n    def activate(self):\n        setattr(self, 'x', {})\n",
        "class B(Bolt):\n    def activate(self):\n        self.__dict__.update(x={})\n",
        "class B(Bolt):\n    def activate(self, c):\n        match c:\n            case {'x': y}:\n"
        "                self.x = y\n",
    ],
)
def test_attributes_that_other_code_may_set_are_questions(tmp_path, parts):
    rest = """    outputs = ['n']
    def initialize(self, conf, context):
        self.x = Counter()
    def process(self, tup):
        self.emit([self.x['a']])
"""
    assert schema(tmp_path, f"\nfrom collections import Counter\n{parts}{rest}") == "n QUESTION"


def test_a_job_with_questions_does_not_start(tmp_path):
    parts = "\nclass B(Bolt):\n    outputs = ['x']\n    def process(self, tup):\n        self.emit([eval('1')])\n"
    assert schema(tmp_path, parts) == "x QUESTION"
    done = python(tmp_path / "p-spark", "job.py")
    assert done.returncode == 1
    assert done.stderr == "job.py: answer these in JOBS and SCHEMAS first:\n  schema: x QUESTION\n"


# --- components -------------------------------------------------------------------------------------------------------


def test_a_spout_with_message_ids_gets_a_journal(tmp_path):
    parts = """
class Sure(ReliableSpout):
    outputs = ["line"]
    def next_tuple(self):
        self.emit(["a"], tup_id=1)
"""
    report = migrate(project(tmp_path, parts, "    lines = Lines.spec()\n    sure = Sure.spec()\n")).stdout
    assert "job.py sets journal.path" in report and "topology.dead.letter=drop" in report
    job = (tmp_path / "p-spark" / "job.py").read_text()
    assert '"journal.path": "journal"' in job and "delivery.guarantee" not in job


def test_emits_that_fit_no_stream(tmp_path):
    parts = """
class Undeclared(Bolt):
    def process(self, tup):
        self.emit([tup.values.line])

class Short(Bolt):
    outputs = ["a", Stream(["b"], name="other")]
    def process(self, tup):
        self.emit([1, 2])
        self.emit([1], stream="third")
"""
    wiring = "    lines = Lines.spec()\n    u = Undeclared.spec(inputs=[lines])\n    s = Short.spec(inputs=[lines])\n"
    report = " ".join(migrate(project(tmp_path, parts, wiring)).stdout.split())
    assert "src/parts.py:11 emits to the stream 'default', which `outputs` does not have: declare it" in report
    assert "src/parts.py:16 emits 2 values for 1 fields" in report
    assert "src/parts.py:17 emits to the stream 'third', which `outputs` does not have" in report


def test_a_topology_without_rows_is_a_question(tmp_path):
    parts = "\nclass Writer(Bolt):\n    def process(self, tup):\n        pass\n"
    made = project(tmp_path, parts, "    lines = Lines.spec()\n    w = Writer.spec(inputs=[lines])\n")
    report = migrate(made).stdout
    assert "QUESTION  no stream leaves the topology, and Spark needs one" in report
    assert "1 question to answer" in report


def test_what_storm_did_otherwise_is_named(tmp_path):
    parts = """

class Slow(BatchingBolt):
    outputs = ["a"]
    def process(self, tup):
        self.emit(["a"])
"""
    wiring = """    config = {"topology.workers": 2, "topology.message.timeout.secs": 60}
    one = Lines.spec()
    two = Lines.spec(par={"prod": 4, "beta": 1})
    slow = Slow.spec(inputs=[one, two], config={"topology.tasks": 3})
"""
    made = project(tmp_path, parts, wiring)
    (made / "config.json").write_text(
        '{"envs": {"prod": {"options": {"topology.workers": 3, "my.key": 1}}, "beta": {}}}'
    )
    report = " ".join(migrate(made).stdout.split())
    for words in (
        "config topology.workers: option minPartitions for more Spark tasks",
        "topology.tasks: `par` of a component",
        "batches fire then, whatever the time",
        "tuples of two spouts never meet in one task",
        "conf/ENVIRONMENT.yaml sets topology.environment",
    ):
        assert words in report, words
    assert "my.key: 1\ntopology.environment: prod\n" in (tmp_path / "p-spark" / "conf" / "prod.yaml").read_text()


def test_a_spout_that_is_not_in_the_project_is_a_question(tmp_path):
    """Its test ends at once, and is red until the question is answered."""
    parts = "\nclass B(Bolt):\n    outputs = ['x']\n    def process(self, tup):\n        self.emit([1])\n"
    wiring = "    words = MemorySpout.spec(fields=['n long'], rows=[])\n    b = B.spec(inputs=[words])\n"
    made = project(tmp_path, parts, wiring)
    topology = made / "topologies" / "t.py"
    topology.write_text("from pystorm_source.spouts import MemorySpout\n" + topology.read_text())
    assert "QUESTION  class MemorySpout is not in src" in migrate(made).stdout
    test = (tmp_path / "p-spark" / "tests" / "test_t.py").read_text()
    assert "    # QUESTION: rows as words emits them?\n    words = ScriptedSpout.of(\n" in test
    tested = python(tmp_path / "p-spark", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "1 failed" in tested.stdout and "assert 0 >= 2" in tested.stdout, tested.stdout


# --- Java and the shell -----------------------------------------------------------------------------------------------

JAVA = "    lines = JavaSpout.spec(name='in', full_class_name='{name}', args_list=[], outputs=['line'], par=2)\n"
KAFKA = {
    "old": (
        '// new SpoutConfig(hosts, "unused", "/r", "g");\n'
        'c = new SpoutConfig(new ZkHosts("zk:2181", "/brokers"), "orders", "/root", "group-1");'
        "c.scheme = new RawMultiScheme();"
        "c.startOffsetTime = kafka.api.OffsetRequest.LatestTime(); // forceFromStart = true",
        ['subscribe="orders"', 'fields=["value binary"]'],
        ['"startingOffsets": "latest"', '"kafka.bootstrap.servers": "QUESTION: brokers, as host:port'],
    ),
    "new": (
        'KafkaSpoutConfig.builder("b1:9092,b2:9092", "orders", "returns").setProp("group.id", "g")'
        ".setFirstPollOffsetStrategy(FirstPollOffsetStrategy.EARLIEST); StringDeserializer.class;",
        ['servers="b1:9092,b2:9092"', 'subscribe="orders,returns"', 'fields=["value string"]'],
        ['"startingOffsets": "earliest"'],
    ),
    "pattern": (
        'KafkaSpoutConfig.builder("b:9092", Pattern.compile("orders-.*"));',
        ['subscribe_pattern="orders-.*"', 'fields=["value string"],  # QUESTION: text? Bytes are value binary'],
        ['"startingOffsets": "QUESTION: earliest or latest"'],
    ),
    "nothing": (
        "",
        ['fields=["value string"]'],
        ['"subscribe": "QUESTION: topics', '"kafka.bootstrap.servers": "QUES'],
    ),
}


@pytest.mark.parametrize("kind", KAFKA)
def test_a_kafka_spout_in_java_becomes_ours(tmp_path, kind):
    text, in_topology, in_job = KAFKA[kind]
    name = "com.acme.OrderSpout" if text else "org.apache.storm.kafka.spout.KafkaSpout"
    parts = "\nclass B(Bolt):\n    outputs = ['n']\n    def process(self, tup):\n        self.emit([tup.values.line])\n"
    wiring = JAVA.format(name=name) + "    b = B.spec(inputs={lines: Grouping.fields('line')})\n"
    made = project(tmp_path, parts, wiring)
    topology = made / "topologies" / "t.py"
    topology.write_text(topology.read_text().replace("Grouping, Topology", "Grouping, JavaSpout, Topology"))
    if text:
        source = f"package com.acme; public class OrderSpout extends KafkaSpout {{ void f() {{ {text} }} }}"
        typed(made, {"src/jvm/com/acme/OrderSpout.java": source})
    report = " ".join(migrate(made).stdout.split())
    assert "becomes KafkaSpout, with offsets: exactly once" in report
    assert "the field 'line' is called 'value' now: say tup.values.value" in report
    copy = (tmp_path / "p-spark" / "topologies" / "t.py").read_text()
    job = (tmp_path / "p-spark" / "job.py").read_text()
    for words in (
        *in_topology,
        'name="in"',
        'Grouping.fields("value")',
        "from pystorm_source.spouts import KafkaSpout",
    ):
        assert words in copy, copy
    assert "JavaSpout," not in copy
    for words in in_job:
        assert words in job, job
    assert '["confluent-kafka>=2.6"]' in (tmp_path / "p-spark" / "pyproject.toml").read_text()
    drawn = python(tmp_path / "p-spark", "-m", "pystorm_source", "draw", "topologies/t.py")
    assert "bolt b (B)" in drawn.stdout, drawn.stderr


def test_other_components_in_java_or_of_the_shell_are_questions(tmp_path):
    wiring = """    lines = JavaSpout.spec(full_class_name="com.acme.Lines", args_list=[], outputs=["line"])
    count = ShellBolt.spec(command="ruby", script="count.rb", inputs=[lines], outputs=["word", "n"], par=3)
"""
    made = project(tmp_path, "", wiring)
    topology = made / "topologies" / "t.py"
    topology.write_text(topology.read_text().replace("Topology\n", "JavaSpout, ShellBolt, Topology\n", 1))
    report = " ".join(migrate(made).stdout.split())
    assert "JavaSpout com.acme.Lines does not run here: write it as a PartitionedSpout" in report
    assert "ShellBolt ruby does not run here: write it as a Bolt" in report
    drawn = python(tmp_path / "p-spark", "-m", "pystorm_source", "draw", "topologies/t.py")
    assert drawn.returncode == 2 and "lines = JavaSpout.spec(" in drawn.stderr, drawn.stderr


# --- imports ----------------------------------------------------------------------------------------------------------

IMPORTS = {
    "from streamparse.bolt import Bolt  # mine": "from pystorm_source.bolt import Bolt  # mine",
    "from streamparse.storm.bolt import Bolt as B": "from pystorm_source.bolt import Bolt as B",
    "import streamparse": "import pystorm_source as streamparse",
    "import os, streamparse.bolt": "import os, pystorm_source as streamparse, pystorm_source.bolt",
    "import pystorm.bolt as bolts": "import pystorm_source.bolt as bolts",
    "from pystorm import Bolt": "from pystorm_source import Bolt",
    "from streamparse import (\n    Bolt,  # é\n)": "from pystorm_source import (\n    Bolt,  # é\n)",
    "if 1:\n    from streamparse import Bolt\n": "if 1:\n    from pystorm_source import Bolt\n",
    "from src.parts import Lines": "from parts import Lines",
    "x = 'é'; from streamparse import Bolt": "x = 'é'; from pystorm_source import Bolt",
}


@pytest.mark.parametrize("line", IMPORTS)
def test_import_lines(tmp_path, line):
    made = project(tmp_path, wiring="    lines = Lines.spec()\n")
    (made / "src" / "more.py").write_text(f"# first\n{line}\n# last\n")
    result = migrate(made)
    assert result.exit_code == 0 and "0 questions" in result.stdout
    assert (tmp_path / "p-spark" / "src" / "more.py").read_text() == f"# first\n{IMPORTS[line]}\n# last\n"


@pytest.mark.parametrize(
    "line", ["from streamparse.run import main", "from streamparse import cli", "import streamparse.util"]
)
def test_imports_without_a_counterpart_are_questions(tmp_path, line):
    made = project(tmp_path, wiring="    lines = Lines.spec()\n")
    (made / "src" / "more.py").write_text(line)
    report = migrate(made).stdout
    assert "src/more.py:1: QUESTION: streamparse." in report and "1 question to answer" in report


# --- what stands beside -----------------------------------------------------------------------------------------------


def test_requirements_become_dependencies(tmp_path):
    made = project(tmp_path, wiring="    lines = Lines.spec()\n")
    typed(made, {"virtualenvs/a.txt": "streamparse>=3\nredis==2.10.1 # pinned\n\nboto3[crt] >= 1.2, < 2\n-r b.txt\n"})
    typed(made, {"virtualenvs/b.txt": "redis==3.0\ngit+https://user:s3cret@example.com/x.git\n"})
    report = migrate(made).stdout
    assert "virtualenvs/a.txt:2: redis==2.10.1: kept" in report
    assert "virtualenvs/a.txt:5: QUESTION: this is no package with a version" in report
    assert "s3cret" not in report
    assert "virtualenvs/b.txt:1: QUESTION: 'redis==3.0', but 'redis==2.10.1' in virtualenvs/a.txt:2" in report
    found = tomllib.loads((tmp_path / "p-spark" / "pyproject.toml").read_text())
    assert found["tool"]["setuptools"]["py-modules"] == ["parts"]
    assert found["project"]["dependencies"] == ["redis==2.10.1", "boto3[crt] >= 1.2, < 2"]


def test_secrets_are_not_printed(tmp_path):
    made = project(tmp_path, wiring="    lines = Lines.spec()\n")
    config = {"envs": {"prod": {"nimbus": "n", "ssh_password": "hunter2", "options": {"my.password": "hunter2"}}}}
    typed(made, {"config.json": json.dumps(config)})
    report = migrate(made).stdout
    assert "hunter2" not in report and "my.password: a secret, left out of conf/prod.yaml" in report
    assert not any(b"hunter2" in content for content in snapshot(tmp_path / "p-spark").values())


def test_a_config_made_by_code_is_not_printed(tmp_path):
    wiring = "    config = dict(password='hunter2')\n    lines = Lines.spec()\n"
    report = migrate(project(tmp_path, wiring=wiring)).stdout
    assert "QUESTION  config is made by code" in report and "hunter2" not in report


# --- what cannot be read ----------------------------------------------------------------------------------------------

DAMAGED = {
    "src/old.py": (b"print 'python 2'\n", "src/old.py:1: Missing parentheses in call to 'print'. Did you mean print"),
    "src/bytes.py": (b"x = '\xff'\n", "src/bytes.py:1: "),
    "src/nul.py": (b"x = 1\0\n", "src/nul.py:1: "),
    "src/deep.py": (b"x = " + b"(" * 5000, "src/deep.py:1: "),
    "config.json": (b'{"envs": \n oops}', "config.json:2: is no JSON"),
    "topologies/empty.py": (b"", "1 topolog"),
    "virtualenvs/a.txt": (b"\xff", "virtualenvs/a.txt:1: cannot be read"),
    "src/data.bin": (bytes(range(256)), ""),
}


@pytest.mark.parametrize("path", DAMAGED)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path, path):
    content, words = DAMAGED[path]
    made = project(tmp_path, wiring="    lines = Lines.spec()\n")
    (made / path).parent.mkdir(exist_ok=True)
    (made / path).write_bytes(content)
    result = migrate(made)
    assert result.exit_code == 0, result.output
    assert words in result.stdout or path == "topologies/empty.py"
    if path.startswith("src/"):
        assert (tmp_path / "p-spark" / path).read_bytes() == content


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent"], "this is no folder. Given: "),
        (["."], "which has src/, config.json and topologies/ with the topologies; the last is missing"),
        (["p", "--output", "p/inside"], "--output lies in the project itself"),
        (["p", "--output", "file/x"], "a file cannot be written (Not a directory)"),
    ],
)
def test_wrong_folders_are_refused(tmp_path, monkeypatch, arguments, words):
    project(tmp_path, wiring="    lines = Lines.spec()\n")
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    result = migrate(*arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and words in line and "Given: " in line
