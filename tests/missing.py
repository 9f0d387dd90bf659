"""Programs that a test needs and this machine may lack."""

import os
import re
from collections.abc import Iterable
from typing import NoReturn

import pytest

REMEDY = re.compile(r"apt-get install ([\w.+-]+)")


def missing(program: str, package: str) -> NoReturn:
    """Fails the test with CI=true, else skips it; names the Debian package to install."""
    remedy = f"there is no {program}: apt-get install {package} (.ci/run does it)"
    if os.environ.get("CI") == "true":
        pytest.fail(remedy)
    pytest.skip(remedy)


def to_install(reasons: Iterable[str]) -> str | None:
    """One line for the tests that ``missing`` has skipped, given why each was skipped; None if it has skipped none."""
    packages = [match[1] for reason in reasons if (match := REMEDY.search(reason))]
    if not packages:
        return None
    names = " ".join(sorted(set(packages)))
    tests = "1 test needs a program" if len(packages) == 1 else f"{len(packages)} tests need programs"
    return f"Skipped: {tests} that this machine lacks. To run all: apt-get install {names}"
