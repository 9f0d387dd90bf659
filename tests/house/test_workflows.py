"""The workflows of .github: every action is pinned, every job has few rights, and every command names what exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.house.test_packaging import PROJECT

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PINNED = re.compile(r"^\s*(?:- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$")
MAY_WRITE = {
    ("codeql.yml", "analyze"): {"security-events"},
    ("docs.yml", "publish"): {"pages", "id-token"},
    ("release.yml", "archives"): {"id-token", "attestations"},
    ("release.yml", "index"): {"id-token"},
    ("release.yml", "github"): {"contents"},
}
"""(workflow, job) → what it may write; every other job only reads."""


def loaded(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text())


def jobs() -> list[tuple[str, str, dict]]:
    return [(path.name, name, job) for path in WORKFLOWS for name, job in loaded(path)["jobs"].items()]


def steps(job: dict) -> list[dict]:
    return job.get("steps", [])


def each_job(test):
    return pytest.mark.parametrize(("workflow", "name", "job"), jobs(), ids=[f"{w}-{n}" for w, n, _ in jobs()])(test)


def test_there_are_workflows_for_changes_wheels_releases_and_weaknesses():
    names = {path.stem for path in WORKFLOWS}
    assert names == {"ci", "codeql", "dependency-review", "docs", "release", "wheels"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_hash_with_its_version_beside_it(path):
    for line in path.read_text().splitlines():
        if "uses:" in line and "uses: ./" not in line:
            assert PINNED.match(line), line


def test_an_action_has_one_hash_everywhere():
    found = {match for path in WORKFLOWS for match in re.findall(r"uses: ([\w./-]+)@(\w+)  # (v\S+)", path.read_text())}
    assert len(found) == len({name for name, _, _ in found})


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_reads_alone_and_never_runs_for_a_pull_request_with_rights(path):
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in workflow[True], "YAML reads the key `on` as true"


@each_job
def test_a_job_writes_what_it_must_and_no_more(workflow, name, job):
    rights = job.get("permissions", {})
    assert {right for right, how in rights.items() if how == "write"} == MAY_WRITE.get((workflow, name), set())


@each_job
def test_a_job_ends_in_time_and_keeps_no_password(workflow, name, job):
    assert "timeout-minutes" in job or "uses" in job
    for step in steps(job):
        if "actions/checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


@each_job
def test_a_command_names_what_exists_and_is_not_made_of_an_event(workflow, name, job):
    for command in (step["run"] for step in steps(job) if "run" in step):
        assert "${{" not in command, "a title or branch of a stranger would be run: pass it by env"
        assert set(re.findall(r"\bmake ([a-z][a-z-]*)", command)) <= TARGETS, command
        for file in re.findall(r"(?<![\w/-])(?:tests|requirements|\.ci)/[\w./-]+", command):
            assert (ROOT / file).exists(), f"{workflow} {name}: {file}"
        for script, option in re.findall(r"(\.ci/\w+\.py)[^\n]*?(--\w+)", command):
            assert f'"{option}"' in (ROOT / script).read_text(), f"{script} has no {option}"


@each_job
def test_a_job_waits_for_jobs_that_exist(workflow, name, job):
    needed = job.get("needs", [])
    known = loaded(ROOT / ".github/workflows" / workflow)["jobs"]
    assert set([needed] if isinstance(needed, str) else needed) <= set(known)
    if "uses" in job:
        assert "workflow_call" in loaded(ROOT / job["uses"])[True]


def test_pull_requests_are_tested_with_every_interpreter_of_the_project():
    classifiers = PROJECT["project"]["classifiers"]
    supported = {each.rsplit(" ", 1)[1] for each in classifiers if "Python :: 3." in each}
    assert supported <= set(loaded(ROOT / ".github/workflows/ci.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"])


def test_a_release_is_checked_built_and_attested_before_the_index_gets_it():
    release = loaded(ROOT / ".github/workflows/release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}}
    order = {name: job.get("needs") for name, job in release["jobs"].items()}
    assert order["archives"] == ["check", "wheels"] and order["index"] == "archives" and order["github"] == "index"
    assert release["jobs"]["index"]["environment"] == "pypi"
    text = (ROOT / ".github/workflows/release.yml").read_text()
    assert "password" not in text.replace("no password", "") and "secrets." not in text


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem
)
def test_a_form_asks_for_something(path):
    form = loaded(path)
    assert {"name", "description", "body"} <= set(form)
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert any(field.get("validations", {}).get("required") for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
