"""Spark finds the source by itself; a source that cannot be imported breaks no other look-up and says why."""

import io
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pyspark_pystorm

ROOT = Path(__file__).resolve().parents[2]

BROKEN = 'raise ImportError("the core in /somewhere is not compiled. Run `make build`.")\n'
NEIGHBOUR = """
from pyspark.sql.datasource import DataSource, DataSourceReader

class DefaultSource(DataSource):
    @classmethod
    def name(cls): return "neighbour"
    def schema(self): return "n long"
    def reader(self, schema): return Reader()

class Reader(DataSourceReader):
    def read(self, partition): yield (42,)
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH: our shim, a package that cannot be imported, and a neighbour's healthy data source."""
    (tmp_path / "pyspark_pystorm.py").write_text((ROOT / "pyspark_pystorm.py").read_text())
    (tmp_path / "pystorm_source").mkdir()
    (tmp_path / "pystorm_source" / "__init__.py").write_text(BROKEN)
    (tmp_path / "pyspark_neighbour.py").write_text(NEIGHBOUR)
    return tmp_path


def run(folder: Path, code: str, **environment: str) -> str:
    """Runs `code` with that folder before everything else on the path, for workers too; what it printed."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n" + textwrap.dedent(code)
    given = os.environ | {"PYTHONPATH": str(folder)} | environment
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=given, cwd=folder, timeout=200
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_importing_the_shim_imports_nothing_else():
    code = """
        before = set(sys.modules)
        import pyspark_pystorm
        print(sorted(set(sys.modules) - before))
    """
    assert run(ROOT, code) == "['pyspark_pystorm']\n"


def test_only_the_default_source_is_resolved_lazily():
    assert not hasattr(pyspark_pystorm, "AnythingElse")


@pytest.mark.spark40
def test_spark_look_up_finds_the_source():
    pytest.importorskip("pyspark")
    from pyspark.sql.worker import lookup_data_sources

    main = getattr(lookup_data_sources, "_main", lookup_data_sources.main)  # 4.0 has main alone, and it exits by itself
    if main is lookup_data_sources.main:
        from pyspark.sql.datasource import DataSource

        assert issubclass(pyspark_pystorm.DefaultSource, DataSource)
        assert pyspark_pystorm.DefaultSource.name() == "pystorm"
        return
    answer = io.BytesIO()
    main(io.BytesIO(), answer)
    assert b"\x00\x00\x00\x07pystorm" in answer.getvalue()


def test_stand_in_raises_the_true_reason_when_it_is_used(broken):
    code = """
        import pickle, pyspark_pystorm
        from pyspark.sql.datasource import DataSource
        source = pyspark_pystorm.DefaultSource
        assert issubclass(source, DataSource) and source.name() == "pystorm"
        assert pickle.loads(pickle.dumps(source)) is source
        try:
            source({})
        except ImportError as error:
            print(error)
    """
    said = run(broken, code)
    assert "cannot be used here: ImportError: the core in /somewhere is not compiled. Run `make build`." in said


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.spark40
@pytest.mark.timeout(240)
def test_broken_source_leaves_the_neighbours_alone(broken, tmp_path):
    code = """
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        print([tuple(row) for row in spark.read.format("neighbour").load().collect()])
        try:
            spark.readStream.format("pystorm").load()
        except Exception as error:
            print(type(error).__name__, error)
    """
    from pystorm_source.spark.java import find_java, start_home

    said = run(broken, code, JAVA_HOME=str(start_home(find_java())))
    assert said.startswith("[(42,)]\n")
    assert "AnalysisException" in said
    assert "the core in /somewhere is not compiled. Run `make build`." in said
