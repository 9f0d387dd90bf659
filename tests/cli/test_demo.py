"""``pystorm-source demo``: the acts as a user sees them, on a real Spark; what it claims, without one."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from pystorm_source.cli.demo import remedy
from pystorm_source.cli.show.acts import Kill, Slowdown, set_service
from pystorm_source.cli.show.display import Lines, micro_batches
from pystorm_source.cli.show.proof import Proof
from pystorm_source.cli.show.query import MicroBatch
from pystorm_source.cli.show.text import PROSE, GrowingFiles, gather
from pystorm_source.cli.word_count import WordCount
from pystorm_source.errors import WorldError
from pystorm_source.source.admission.rate_estimator import Reason
from pystorm_source.testing import run_topology

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "pystorm_source", "demo"]
SHORT = [*COMMAND, "--megabytes", "0.5", "--seconds", "6"]
SECONDS = 200
NOISE = re.compile(r"WARN|ERROR|Exception|Traceback|^\s+at |\.java|\.scala|log4j|incubator", re.MULTILINE)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """That of a user's process, whose temporary files are below ``folder``."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder), "TERM": "dumb", **more}


def demo(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command as a user starts it."""
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=SECONDS, env=environment(folder, **more)
    )


def micro_batch(number: int, budget: int | None, seconds: float = 1.0, rows: int = 3) -> MicroBatch:
    return MicroBatch(number, 0.0, seconds, rows, budget or 7, 100, 1.5, budget, 0, 10, "rate")


def proof(**changed: object) -> Proof:
    """One of which everything is proven, but for the changes."""
    fitting = (micro_batch(2, 10_000), micro_batch(3, 11_000, 1.4))
    whole = Proof(
        {"the": 4, "of": 2},
        Counter({"the": 4, "of": 2}),
        [micro_batch(1, 90_000), micro_batch(2, 10_000)],
        2.0,
        Slowdown((90_000, 11_000), 1, fitting),
        Kill(77, 3, 1),
    )
    return whole._replace(**changed)


def lazy_python(folder: Path, condition: str) -> dict[str, str]:
    """The environment of a Spark whose source runner ends before it answers if that shell command succeeds."""
    python = folder / "python"
    python.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *python_streaming_source_runner*) {condition} && exit 3;; esac\n'
        f'exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    return {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_run_draws_starts_again_watches_slows_down_kills_and_proves(tmp_path):
    """The first runner of the query ends before it answers: Spark's ten seconds pass, and the query fails."""
    once = lazy_python(tmp_path, f'mkdir "{tmp_path}/failed" 2>/dev/null')
    done = demo(tmp_path / "tmp", **once)
    assert (tmp_path / "failed").is_dir()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert NOISE.search(done.stdout) is None, done.stdout
    lines = done.stdout.splitlines()
    assert lines[0] == "topology WordCount, 4 components, 5 tasks"
    phases = ["-> counts by fields(word)", "Spark starts", "its UI: http", "the query starts"]
    phases += ["(Python worker failed to connect back): once more", "the query starts"]
    phases += ["micro-batch    took  target   budget", "-> a writer appends"]
    phases += ["-> the bolt `known` becomes ten times slower", "is killed (SIGKILL)"]
    phases += ["-> the bolt is as quick as it was", "the ", "proven   overload", "proven   loss", "proven   exactness"]
    phases += ["next:", "pystorm-source quickstart"]
    at = 0
    for phase in phases:
        at = next((i for i in range(at, len(lines)) if phase in lines[i]), len(lines))
        assert at < len(lines), f"{phase!r} is missing, or comes too early:\n{done.stdout}"
        at += 1
    (before, after) = re.search(r"budget\s+went\s+from\s+([\d,]+)\s+KB\s+to\s+([\d,]+)\s+KB", done.stdout).groups()
    assert int(after.replace(",", "")) * 2 < int(before.replace(",", ""))
    assert re.search(r"Spark ran \d+ tasks? again", done.stdout)
    assert list((tmp_path / "tmp").glob("pystorm-demo*")) == []


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.timeout(200)
def test_a_python_that_never_answers_is_one_line_with_a_remedy(tmp_path):
    never = lazy_python(tmp_path, "true")
    done = demo(tmp_path / "tmp", **never)
    assert done.returncode == 1
    assert "the start failed after" in done.stdout and "once more" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: Python worker failed to connect back: Spark gives a Python process 10 s to start.")
    assert "pystorm-source check" in line and f"Given: PYSPARK_PYTHON={str(tmp_path / 'python')!r}." in line
    log = Path(line.rpartition(" ")[2])
    assert "failed to connect back" in log.read_text()
    assert NOISE.search(done.stdout + done.stderr) is None


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.timeout(200)
def test_a_query_that_fails_is_one_line_and_the_log_is_kept(tmp_path):
    """Another beginning of a file that was read: the spout refuses to go on."""
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        SHORT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(tmp_path / "tmp")
    )
    try:
        for line in process.stdout:
            if line.startswith("-> a writer appends"):
                (text,) = (tmp_path / "tmp").glob("pystorm-demo-*/text/text-0.log")
                with text.open("r+b") as file:
                    file.write(b"zyzzyva")
        (line,) = process.stderr.read().splitlines()
        assert process.wait() == 1
    finally:
        process.kill()
    assert line.startswith("error: ") and "text-0.log" in line and "Traceback" not in line
    log = Path(line.rpartition(" ")[2])
    assert "Traceback" in log.read_text()


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.parametrize(("when", "number"), [("-> a writer appends", signal.SIGINT), ("Spark starts", signal.SIGTERM)])
def test_ctrl_c_ends_it_in_order(tmp_path, when, number):
    """The whole group of processes gets it, as from a terminal."""
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        SHORT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(tmp_path / "tmp"),
        start_new_session=True,
    )
    try:
        seen = ""
        for line in process.stdout:
            seen += line
            if line.startswith(when):
                (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        assert process.wait() == 128 + number, seen
    finally:
        process.kill()
    assert seen.splitlines()[-1] == "stopped before the end: nothing was proven"
    assert NOISE.search(seen) is None, seen
    assert list((tmp_path / "tmp").glob("pystorm-demo*")) == []


def test_all_three_claims_are_needed():
    assert proof().proven and [claim.proven for claim in proof().claims()] == [True] * 3
    late = Slowdown((90_000, 11_000), 1, (micro_batch(2, 10_000, 9.0), micro_batch(3, 11_000, 9.0)))
    for changed in (
        {"expected": Counter({"the": 4, "of": 3})},  # a row was lost
        {"expected": Counter({"the": 4, "of": 1, "a": 1})},  # the same number of rows, another word
        {"ran": [micro_batch(1, 90_000, rows=7)]},  # the sums are right, but Spark saw another number of rows
        {"slowdown": Slowdown((90_000, 80_000), 5, ())},  # the budget did not follow
        {"slowdown": late},  # it did, but the query was late
        {"kill": None},
        {"kill": Kill(77, 3, 0)},  # the worker was idle: nothing was lost
    ):
        wrong = proof(**changed)
        assert not wrong.proven, changed
        assert [claim.proven for claim in wrong.claims()].count(False) == 1, changed
        assert sum(line.startswith("MISSING") for line in wrong.lines()) == 1, changed
        assert wrong.facts()["proven"] is False


def test_a_wrong_count_is_shown_with_a_word():
    (claim,) = [claim for claim in proof(expected=Counter({"the": 4, "of": 3})).claims() if not claim.proven]
    assert "which has 7; 1 words differ, such as 'of': 2 and 3" in claim.text


def test_the_end_fits_a_terminal_and_says_what_to_do_next():
    lines = "\n".join(proof().lines()).splitlines()
    assert max(map(len, lines)) <= 120 and len(lines) < 20
    assert any("pystorm-source quickstart my-job" in line for line in lines)


def test_the_text_is_prose_and_the_same_in_every_run():
    lines = gather(300_000)
    assert lines == gather(300_000) and 290_000 < sum(map(len, lines)) < 310_000
    assert PROSE.stat().st_size < 100_000
    words = Counter(re.findall("[a-z]+", b"".join(lines).decode().lower()))
    assert [word for word, _ in words.most_common(4)] == ["the", "of", "to", "and"]


def test_files_grow_until_they_are_finished_and_end_with_a_whole_line(tmp_path):
    lines = gather(50_000)
    files = GrowingFiles(tmp_path, lines, seconds=0.5)
    assert 0.3 * files.size < files.written < 0.5 * files.size
    files.start()
    while files.written < 2.5 * files.size:
        time.sleep(0.01)
    files.finish()
    while files.writing:
        time.sleep(0.01)
    texts = [path.read_bytes() for path in files.paths]
    assert sum(map(len, texts)) == files.written and all(text.endswith(b"\n") for text in texts)
    for i, text in enumerate(texts):
        assert text.splitlines(True) == (lines[i::2] * 9)[: text.count(b"\n")]
    assert files.count_words().total() == len(re.findall("[a-z]+", b"".join(texts).decode().lower()))


def test_a_writer_that_is_finished_early_writes_all_lines(tmp_path):
    lines = gather(50_000)
    files = GrowingFiles(tmp_path, lines, seconds=0)
    files.finish()
    files.start()
    while files.writing:
        time.sleep(0.01)
    assert files.written >= files.size
    assert set(b"".join(path.read_bytes() for path in files.paths).splitlines(True)) == set(lines)


def test_a_writer_that_is_stopped_ends_at_once(tmp_path):
    files = GrowingFiles(tmp_path, gather(50_000), seconds=3600)
    files.start()
    files.stop()
    assert not files.writing and files.written < files.size


def test_the_bolt_is_as_slow_as_the_file_says(tmp_path):
    """Really slower: the same lines take ten times the time."""
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.log").write_text("We the People\n" * 40)
    service = tmp_path / "service" / "seconds"
    service.parent.mkdir()
    took = {}
    for seconds in (0.002, 0.02):
        set_service(service, seconds)
        began = time.monotonic()
        result = run_topology(WordCount, config={"path": str(tmp_path / "text"), "demo.service": str(service)})
        took[seconds] = time.monotonic() - began
        assert Counter(result.rows("counts")) == dict.fromkeys([("we", 1), ("the", 1), ("people", 1)], 40)
    assert took[0.02] >= 40 * 0.02 > took[0.002] - 0.5
    assert [path.name for path in service.parent.glob("worker-*")] == [f"worker-{os.getpid()}"]


def test_on_a_terminal_lines_stay_above_one_that_lives():
    """The reader sees what a terminal gets: the live line is wiped out, the others are not."""
    code = (
        "from pystorm_source.cli.show.display import Terminal\n"
        "from pystorm_source.cli.show.query import MicroBatch\n"
        "with Terminal() as shown:\n"
        "    shown.line('[red]first[/]')\n"
        "    shown.status('this goes on')\n"
        "    shown.micro_batch(MicroBatch(3, 0.0, 1.25, 10, 5_000, 9_000, 1.5, 7_000, 90_000, 210, 'rate'))\n"
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0, seen
    text = seen.decode()
    assert "[red]first[/]\r\n" in text and "this goes on" in text
    assert re.search(r"micro-batch +took .*\r\n", text) and re.search(r"3 +1\.2 s .* 2\.1 x +rate: .*\r\n", text)


def test_a_spark_that_says_little_of_a_source_is_shown_with_dashes(capsys):
    Lines().micro_batch(MicroBatch(3, 0.0, 1.25, 10, 5_000, 9_000, None, None, None, None, ""))
    legend, head, line = capsys.readouterr().out.splitlines()
    assert all(f"{word}: " in legend for word in ("pressure", "reason")) and "docs/ADMISSION.md" in legend
    assert head.split() == ["micro-batch", "took", "target", "budget", "backlog", "pressure", "reason"]
    assert line.split() == ["3", "1.2", "s", "-", "-", "-", "-"]
    assert micro_batch(1, None).allowed == 7


@pytest.mark.parametrize(
    ("percent", "shown"),
    [(None, "-"), (0, "0.0 x"), (21, "0.2 x"), (210, "2.1 x"), (41_322, "413 x"), (10**6, "10,000 x")],
)
def test_pressure_is_the_number_of_micro_batches_that_the_work_fills(percent, shown):
    assert micro_batches(percent) == shown


def test_each_reason_is_shown_with_its_meaning(capsys):
    shown = Lines()
    for number, reason in enumerate(Reason):
        shown.micro_batch(MicroBatch(number, 0.0, 12.5, 10, 5_000, 9_000, 10.5, 70_000, 90_000, 10**6, reason.text))
    _, head, *lines = capsys.readouterr().out.splitlines()
    for reason, line in zip(Reason, lines, strict=True):
        word, _, meaning = line[head.index("reason") :].partition(": ")
        assert word == reason.text and len(meaning) > 8 and len(line) <= 100


def test_an_error_is_one_line_with_a_remedy(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    monkeypatch.setenv("JAVA_HOME", "/opt/java")
    java = "[STREAM_FAILED] it ended: Python worker failed to connect back. SQLSTATE: XXKST\n\tat org.apache.spark"
    said = remedy(RuntimeError(java))
    assert said.startswith("Python worker failed to connect back: ") and said.endswith(
        "Given: PYSPARK_PYTHON='/opt/python'."
    )
    assert "check" in remedy(RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited"))
    assert remedy(RuntimeError("first\n\tat org.apache")) == "first."
    lost = "[STREAM_FAILED] planPartitions: Traceback (most recent call last):\n  File x\n"
    lost += "pystorm_source.errors.DataLossError: gone. Given: 'x'\n\tat org.apache"
    assert remedy(RuntimeError(lost)) == "DataLossError: gone. Given: 'x'."
    own = f"[PYSTORM_DATA_LOSS] the file {'/long' * 100}/text-0.log begins with other bytes. Given: 'x'"
    lost = f"[PYTHON] Failed to perform latestOffset: pystorm_source.errors.DataLossError: {own} SQLSTATE: 38000"
    assert remedy(RuntimeError(lost)) == f"{own}."
    missing = "[PYTHON_DATA_SOURCE_ERROR] Failed: Traceback (most recent call last):\n  File x\nImportError: no core\n"
    assert remedy(RuntimeError(missing + "org.apache.spark.SparkException: x\n")) == "ImportError: no core."
    assert remedy(WorldError("no Java. Install one")).endswith("no Java. Install one")
