"""Jars that Maven fetches: several processes may want the same ones at the same time."""

import os
from concurrent.futures import ThreadPoolExecutor

from testbed import maven

MVN = """#!/bin/sh
mkdir running || exit 1
sleep 0.3
rmdir running && mkdir jars
"""


def test_jars_that_are_wanted_twice_at_once_are_fetched_once(tmp_path, monkeypatch):
    program = tmp_path / "mvn"
    program.write_text(MVN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(maven, "FOLDER", tmp_path / "peers")
    jar = maven.Jar("org.example", "example", "1")
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(maven.java_jars, [jar] * 4))
    assert len(folders) == 1
    assert folders.pop().is_dir()
