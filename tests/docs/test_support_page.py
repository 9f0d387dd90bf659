"""docs/SUPPORT.md is printed from data, and the data name gates, versions and workflows that exist."""

import re

from docs.support import HOW, PAGE, Row, interpreters, page, sections
from tests.docs.pages import ROOT

RUN = (ROOT / ".ci/run").read_text()


def gates() -> set[str]:
    """The names of the gates of .ci/run, those of its loops too."""
    names = set(re.findall(r"^\s*(?:gate|behind|absent) ([a-z][\w.-]*) ", RUN, re.MULTILINE))
    for versions, body in re.findall(r"^for version in ([\d. ]+); do(.*?)^done", RUN, re.MULTILINE | re.DOTALL):
        for kind, short in re.findall(r'(?:gate|behind) "([a-z]+)-\$(\{version%\.\*\}|version)"', body):
            names |= {f"{kind}-{each.rpartition('.')[0] if '%' in short else each}" for each in versions.split()}
    return names


def rows() -> list[Row]:
    return [row for _, _, found in sections() for row in found]


def test_the_page_is_printed_from_its_data():
    assert PAGE.read_text() == page(), "run: python docs/support.py --write"


def test_the_gates_of_loops_are_known():
    assert {"tests", "asan", "python-3.12", "spark-4.0", "spark-connect", "aarch64"} <= gates()


def test_what_was_run_or_compiled_names_a_gate_and_nothing_else_does():
    for row in rows():
        assert row.how in HOW
        assert bool(row.gates) is (row.how in {"run", "compiled"}), row.what
        for gate in row.gates:
            assert set(gate.split(" or ")) <= gates(), f"{row.what}: .ci/run has no gate {gate}"


def test_every_interpreter_and_spark_that_is_tested_has_a_row():
    named = {row.what for row in rows()}
    assert {f"CPython {version}" for version in interpreters()} <= named
    for version in re.findall(r"for version in (4[\d. ]+); do", RUN)[0].split():
        assert f"Spark {version}" in named
