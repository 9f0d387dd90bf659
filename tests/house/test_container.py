"""The Dockerfile and the dev container name what exists, and nothing in them runs as root."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_stages_end_as_a_user_without_rights():
    assert re.findall(r"^USER (\w+)$", DOCKERFILE, re.MULTILINE) == ["user"]
    last = DOCKERFILE.rpartition("FROM ")[2]
    assert last.startswith("tools\n") and "USER root" not in DOCKERFILE


def test_it_makes_targets_that_exist():
    said = [
        *re.findall(r"^RUN make ([\w-]+)$", DOCKERFILE, re.MULTILINE),
        *re.findall(r'"make", "([\w-]+)"', DOCKERFILE),
    ]
    assert said == ["use", "demo"] and set(said) <= TARGETS


def test_what_preflight_and_make_venv_look_for_is_installed():
    for package in ("gcc", "libc6-dev", "make", "python3", "python3-dev", "python3-venv", "openjdk-21-jre-headless"):
        assert re.search(rf"\s{package}\s", DOCKERFILE), package


def test_the_dev_container_is_the_first_stage_and_builds_the_checkout():
    config = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    build = config["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert f"AS {build['target']}\n" in DOCKERFILE and config["remoteUser"] == "user"
    assert config["postCreateCommand"].removeprefix("make ") in TARGETS


def test_what_was_built_here_does_not_go_into_the_image():
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".venv*", "build", "**/*.so"} <= set(ignored)
