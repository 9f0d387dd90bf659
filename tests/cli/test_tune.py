"""``pystorm-source tune``, in this process and with real trials."""

import textwrap

import pytest
import yaml
from typer.testing import CliRunner

from pystorm_source.cli.main import app
from tests.records import samples

MODULE = """
    import time
    from pystorm_source import *
    from pystorm_source.spouts import MemorySpout

    class Wait(Bolt):
        outputs = ["n long"]
        def process(self, tup):
            time.sleep(0.005)
            self.emit(tup.values)

    class Picky(Bolt):
        def process(self, tup):
            raise ValueError("no such number")

    class Waits(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(5000)])
        waits = Wait.spec(inputs=[numbers])

    class Fails(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        picky = Picky.spec(inputs=[numbers])
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "query.jsonl").write_text("".join(f"{samples.progress(n).to_json()}\n" for n in range(5)))
    return tmp_path


def tune(*arguments):
    return CliRunner().invoke(app, ["tune", *arguments])


@pytest.mark.campaign
def test_a_bolt_that_waits_gets_tasks_in_threads(project):
    done = tune("slow.py:Waits", "--seconds", "10", "--explain", "--output", "tuned.yaml", "--cores", "2")
    assert done.exit_code == 0, done.output
    assert "1. slow bolt 'waits'" in done.stdout
    assert "change: waits.par = " in done.stdout and "measured gain: " in done.stdout
    assert "under way" in done.stdout  # the arithmetic
    text = (project / "tuned.yaml").read_text()
    assert yaml.safe_load(text)["topology.scheduler"] == "threads"
    assert "Expected gain: " in text and "par=" in text
    assert "left: as it is: " in done.stderr  # progress


@pytest.mark.campaign
def test_the_file_that_is_written_is_one_that_option_config_takes(project):
    assert tune("slow.py:Waits", "--seconds", "10", "--output", "tuned.yaml").exit_code == 0
    keys = yaml.safe_load((project / "tuned.yaml").read_text())
    options = [f"{key}={value}" for key, value in keys.items()]
    done = CliRunner().invoke(
        app, ["run", "slow.py:Waits", "--json", "--for", "1s", *(f"-o{each}" for each in options)]
    )
    assert done.exit_code == 0, done.output


def test_a_file_without_a_key_is_one_that_option_config_takes_too(project):
    assert tune("--records", "query.jsonl", "--output", "tuned.yaml").exit_code == 0
    assert yaml.safe_load((project / "tuned.yaml").read_text()) == {}


def test_options_of_the_reader_are_comments(project):
    given = ("path=/data", "topology.debug=true", "kafka.sasl.password=open-sesame")
    done = tune("--records", "query.jsonl", *(f"-o{each}" for each in given))
    assert done.exit_code == 0, done.output
    assert "open-sesame" not in done.output
    assert '# On the reader: .option("path", "/data")' in done.stdout
    assert "\ntopology.debug: true" in done.stdout


def test_records_alone_are_read(project):
    done = tune("--records", "query.jsonl", "--cores", "4", "--explain")
    assert done.exit_code == 0, done.output
    assert "slow bolt 'bolt1'" in done.stdout
    assert "# Made by: pystorm-source tune --records query.jsonl\n" in done.stdout
    assert done.stdout.rstrip().endswith("# No key of a configuration is to change.")


def test_a_component_that_fails_ends_it(project):
    done = tune("slow.py:Fails", "--seconds", "10")
    assert done.exit_code == 1
    assert "no such number" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "a TOPOLOGY to measure, or --records FILE"),
        (("--records", "none.jsonl"), "Given: 'none.jsonl'"),
        (("--records", "query.jsonl", "--plot", "x.svg"), "--plot draws trials"),
        (("--records", "query.jsonl", "--output", "tuned.txt"), "ends in .yaml"),
        (("--records", "query.jsonl", "--output", "no/folder.yaml"), "--output cannot be written"),
        (("slow.py:Waits", "-o", "topology.scheduler=none"), "topology.scheduler"),
    ],
)
def test_a_wrong_line_is_refused(project, arguments, message):
    done = tune(*arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.campaign
def test_the_picture_is_drawn(project):
    pytest.importorskip("matplotlib")
    done = tune("slow.py:Waits", "--seconds", "10", "--plot", "frontier.svg")
    assert done.exit_code == 0, done.output
    assert "<svg" in (project / "frontier.svg").read_text()
