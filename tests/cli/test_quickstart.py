"""``pystorm-source quickstart``: the project that it makes tests itself, runs, and passes strict checks."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from pystorm_source.cli.main import app
from pystorm_source.cli.quickstart import make_project
from tests.cli.strict_types import strict

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A new project called word-tally."""
    return make_project("word-tally", tmp_path_factory.mktemp("projects"))


@pytest.fixture(scope="module", params=["words", "spout", "rest", "queue"])
def each_project(request, tmp_path_factory) -> Path:
    """A new project of each kind, called word-tally."""
    return make_project("word-tally", tmp_path_factory.mktemp("projects"), request.param)


def python(project, *arguments, path=str(ROOT)):
    """Runs this Python in the project's folder, as its user does."""
    environment = {**os.environ, "PYTHONPATH": path, "MYPYPATH": ""}
    return subprocess.run(
        [sys.executable, *arguments], cwd=project, capture_output=True, text=True, env=environment, timeout=200
    )


def items_of(project, topology):
    """What `check` finds of that topology, each as status and item; the machine is not looked at, which costs more."""
    code = f"""if True:
        from pystorm_source.cli.check import topology_findings
        print(*((each.status, each.item) for each in topology_findings({topology!r})), sep="\\n")"""
    done = python(project, "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_command_says_what_to_do_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["quickstart", "Word-Tally2"])
    assert result.exit_code == 0
    first = "made Word-Tally2/\n\n    cd Word-Tally2\n    pip install -e '.[test]'\n    python -m pytest\n"
    assert result.stdout.startswith(first)
    assert "pystorm-source run word_tally2.topology:WordCount" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["Word-Tally2"]


def test_the_command_says_what_to_do_next_with_a_spout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["quickstart", "shop", "--spout"])
    assert result.exit_code == 0
    assert "    python feed.py 1000\n    pystorm-source run shop.topology:Orders --once --rows 3\n" in result.stdout
    again = CliRunner().invoke(app, ["quickstart", "shop", "--spout"])
    assert again.exit_code == 0 and again.stdout.startswith("nothing is new: the project shop/ is there already")


def test_a_project_has_one_kind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["quickstart", "desk", "--spout", "--rest"])
    assert result.exit_code == 2
    assert "leave out --spout or --rest" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_the_template_is_left(each_project):
    found = [path for path in each_project.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    files = {path.relative_to(each_project).as_posix(): path.read_text() for path in found}
    assert {"pyproject.toml", ".gitignore", "job.py", "AGENTS.md", "word_tally/topology.py"} <= set(files)
    for name, text in files.items():
        assert "PACKAGE" not in name and not name.endswith(".in")
        assert "$" not in text, name
    assert 'name = "word-tally"' in files["pyproject.toml"]
    assert "dependencies = []" in files["pyproject.toml"], "pip would ask an index for pystorm-source"


def test_its_tests_pass(each_project, request):
    passed = 4 if request.node.callspec.params["each_project"] == "rest" else 3
    done = python(each_project, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{passed} passed" in done.stdout


def test_the_code_of_its_agents_md_runs(each_project):
    """The snippets, in order, as one file of tests."""
    project = each_project
    text = (project / "AGENTS.md").read_text()
    assert len(text.splitlines()) < 100
    snippets = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    path = project / "tests" / "test_of_agents_md.py"
    path.write_text("\n".join(snippets))
    try:
        done = python(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path))
    finally:
        path.unlink()
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout
    for command in re.findall(r"`(pystorm-source \w+ [^`]*)`", text):
        assert command.split()[1] in ("run", "check", "draw")
        assert re.search(r" word_tally.topology:(WordCount|Orders|Tickets|Crates)\b", command)


def test_the_skill_that_it_lays_down_has_a_spout_that_can_be_replayed(project, tmp_path):
    """Its two blocks, saved as it says, and run."""
    text = (project / ".agents/skills/write-a-streaming-source/SKILL.md").read_text()
    head, _, body = text.removeprefix("---\n").partition("---\n")
    front = yaml.safe_load(head)
    assert set(front) == {"name", "description"} and front["name"] == "write-a-streaming-source"
    assert 100 < len(front["description"]) <= 1024, "agents choose a skill by its description, and cut a longer one"
    assert len(text.splitlines()) <= 120
    spout, test = re.findall(r"^```python\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)
    assert len(spout.splitlines()) <= 45
    (tmp_path / "events.py").write_text(spout)
    (tmp_path / "test_events.py").write_text(test)
    done = python(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", path=f"{ROOT}{os.pathsep}{tmp_path}")
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout
    assert items_of(tmp_path, "events:Events") == ["('ok', 'topology')"]


def test_the_skill_gives_the_reader_options_that_there_are(project):
    """A key of the spout's own is none: it goes into ``config``."""
    text = (project / ".agents/skills/write-a-streaming-source/SKILL.md").read_text()
    (block,) = re.findall(r"^```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    calls = [each for each in ast.walk(ast.parse(block)) if isinstance(each, ast.Call)]
    (call,) = [each for each in calls if ast.unparse(each.func) == "read_stream"]
    there_are = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/OPTIONS.md").read_text(), re.MULTILINE))
    assert {keyword.arg for keyword in call.keywords} == {"config", "maxOffsetsPerTrigger"}
    assert "maxOffsetsPerTrigger" in there_are and "url" not in there_are
    config = next(each for each in ast.walk(ast.parse(block)) if isinstance(each, ast.Dict))
    assert set(ast.literal_eval(config)) == {"url"}


@pytest.mark.spark
def test_the_skill_reads_its_service_on_spark(spark, project, tmp_path):
    """Its three blocks, as typed into a session: the spout, the server of the test, the query."""
    text = (project / ".agents/skills/write-a-streaming-source/SKILL.md").read_text()
    spout, test = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (query,) = re.findall(r"^```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names = {"__name__": "__main__", "spark": spark, "path": str(tmp_path / "checkpoint")}
    exec(spout, names)
    exec(test.replace("from events import EventSpout\n", ""), names)
    before = {each.runId for each in spark.streams.active}
    with ThreadingHTTPServer(("127.0.0.1", 0), names["Api"]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            exec(query.replace("https://api.example.com", f"http://127.0.0.1:{server.server_port}"), names)
            (started,) = [each for each in spark.streams.active if each.runId not in before]
            started.processAllAvailable()
            started.stop()
            rows = {tuple(row) for row in spark.table("events").collect()}
        finally:
            spark.sql("DROP TABLE IF EXISTS events")
            server.shutdown()
    assert rows == {(n, kind, n / 2) for kind in "ab" for n in range(20)}


def test_it_runs(project):
    arguments = ["run", "word_tally.topology:WordCount", "--once", "--json", "--rows", "3", "-o", "sentences.total=10"]
    done = python(project, "-m", "pystorm_source", *arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["components"]["words"]["executed"] == 10
    assert found["components"]["counts"]["emitted"] == 64
    assert len(found["rows"]["counts.default"]) == 3


def test_it_runs_with_a_spout(tmp_path):
    project = make_project("shop", tmp_path, "spout")
    assert python(project, "feed.py", "9").returncode == 0
    assert python(project, "feed.py", "1", "tea").returncode == 0
    done = python(project, "-m", "pystorm_source", "run", "shop.topology:Orders", "--once", "--json", "--rows", "10")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]["priced.default"]
    assert len(rows) == 10 and rows[-1] == [10, "tea", 9.0]


def served(project):
    """The project, and the address of its server while the block lasts."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "server.py", "0"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True, env=environment) as server:
        url = re.search(r"http://[\w.:]+", server.stdout.readline())[0]
        try:
            yield project, url
        finally:
            server.terminate()
            server.stdout.read()


@pytest.fixture
def desk(tmp_path):
    """A project that reads a REST API, and the address of its service."""
    yield from served(make_project("desk", tmp_path, "rest"))


@pytest.fixture
def depot(tmp_path):
    """A project that reads a queue, and the address of its queue."""
    yield from served(make_project("depot", tmp_path, "queue"))


def runs(served, topology, bolt):
    """A run without Spark has the rows of the bolt."""
    project, url = served
    arguments = ["run", topology, "--once", "--json", "--rows", "3", "-o", f"path={url}"]
    done = python(project, "-m", "pystorm_source", *arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["components"][bolt]["executed"] >= 1000
    assert len(found["rows"][f"{bolt}.default"]) == 3


def goes_on_on_spark(served):
    """The job reads what there is, and when it starts again, what has come since."""
    project, url = served
    for least in (1000, 1001):
        done = python(project, "job.py", url)
        assert done.returncode == 0, done.stderr[-3000:]
        rows, different = map(int, re.search(r"(\d+) rows, (\d+) different", done.stdout).groups())
        assert rows == different >= least


def test_it_runs_with_a_queue(depot):
    runs(depot, "depot.topology:Crates", "weighed")


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.timeout(240)
def test_its_job_reads_a_queue_on_spark_and_goes_on(depot):
    goes_on_on_spark(depot)


def test_it_runs_with_a_rest_api(desk):
    runs(desk, "desk.topology:Tickets", "named")


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.timeout(240)
def test_its_job_reads_a_rest_api_on_spark_and_goes_on(desk):
    goes_on_on_spark(desk)


def test_a_check_of_it_finds_nothing(each_project):
    (topology,) = re.findall(r"source check (\S+)`", (each_project / "README.md").read_text())
    assert items_of(each_project, topology) == ["('ok', 'topology')"]


@pytest.mark.campaign
def test_the_other_commands_of_its_readme_work(project):
    drawn = python(project, "-m", "pystorm_source", "draw", "word_tally.topology:WordCount")
    assert "bolt counts (CountBolt, 2 tasks)" in drawn.stdout
    checked = python(project, "-m", "pystorm_source", "check", "word_tally.topology:WordCount")
    assert "ok    topology               WordCount: 3 components, 5 tasks" in checked.stdout
    assert checked.stdout.splitlines()[-1].startswith("ok    topology"), "its topology is without findings"
    readme = (project / "README.md").read_text()
    for command in ("python -m pytest", "pystorm-source run", "pystorm-source draw", "spark-submit job.py"):
        assert command in readme


@pytest.mark.campaign
def test_it_is_typed_and_formatted(each_project):
    pytest.importorskip("mypy", reason="requirements/dev.txt has mypy and ruff")
    done = strict(python, each_project, "word_tally", "tests")
    assert done.returncode == 0, done.stdout
    config = ["--config", str(ROOT / "pyproject.toml")]
    for check in (["check", "--ignore", "I"], ["format", "--check"]):
        done = python(each_project, "-m", "ruff", *check, "--no-cache", *config, ".")
        assert done.returncode == 0, done.stdout


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.timeout(240)
def test_its_job_runs_on_spark_and_is_quiet(project, tmp_path):
    """By spark-submit, laid out as in cluster mode: job.py and what --files ships in one folder, without conf/."""
    container = tmp_path / "container"
    container.mkdir()
    for file in ("job.py", "conf/spark.yaml"):
        shutil.copy(project / file, container)
    submit = Path(sys.executable).with_name("spark-submit")
    path = os.pathsep.join([str(ROOT), str(project)])
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    command = [str(submit), "job.py", str(tmp_path / "checkpoint")]
    done = subprocess.run(command, cwd=container, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    # 1000 sentences of five kinds: `the` twice in the first, once in the second and the fourth, is the most frequent.
    assert "|the|800|" in done.stdout.replace(" ", "")
    # Three lines of Spark's before it reads the level, warnings, and ours on the rate; a thousand without the level.
    assert len(done.stderr.splitlines()) <= 20, done.stderr
    # A second run finds nothing new, and says what to do.
    again = subprocess.run(command, cwd=container, capture_output=True, text=True, env=environment, timeout=200)
    assert again.returncode == 0, again.stderr[-3000:]
    assert again.stdout == (
        "nothing new: 0 new sentences since the run before. Raise sentences.total in spark.yaml, or delete "
        f"{tmp_path / 'checkpoint'} to count from the first one again.\n"
    )


def test_its_job_says_what_it_misses(project, tmp_path):
    shutil.copy(project / "job.py", tmp_path)
    done = python(tmp_path, "job.py")
    assert done.returncode == 1
    assert done.stderr == "job.py: there is no conf/spark.yaml here: add --files conf/spark.yaml to spark-submit\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "NAME is letters"),
        ("2words", "NAME is letters"),
        ("word count", "NAME is letters"),
        ("../up", "NAME is letters"),
        ("/absolute", "NAME is letters"),
        ("mot-clé", "NAME is letters"),
        ("lambda", "no keyword of Python"),
        ("json", "a package 'json' is there already"),
        ("pystorm-source", "a package 'pystorm_source' is there already"),
        ("tests", "a package 'tests' is there already"),
        ("pyarrow", "a package 'pyarrow' is there already"),
    ],
)
def test_bad_names_are_refused(tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["quickstart", name])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and words in result.stderr and f"Given: {name!r}" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_says_that_nothing_is_new(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, ["quickstart", "words2"])
    (tmp_path / "words2" / "job.py").write_text("mine")
    result = CliRunner().invoke(app, ["quickstart", "words2"])
    assert result.exit_code == 0
    assert result.stdout == (
        "nothing is new: the project words2/ is there already, and stays as it is. To begin anew, remove that folder "
        "(rm -r words2) and run this again, or choose another NAME.\n"
    )
    assert (tmp_path / "words2" / "job.py").read_text() == "mine"


def test_an_existing_folder_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words2").mkdir()
    (tmp_path / "words2" / "mine.txt").touch()
    result = CliRunner().invoke(app, ["quickstart", "words2"])
    assert result.exit_code == 2
    assert "the folder is there already" in result.stderr
    assert [path.name for path in (tmp_path / "words2").iterdir()] == ["mine.txt"]


def test_a_folder_that_takes_no_files_is_told(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr(Path, "cwd", lambda: tmp_path / "gone")
    result = CliRunner().invoke(app, ["quickstart", "words2"])
    assert result.exit_code == 2
    assert "the folder cannot be made (No such file or directory)" in result.stderr
