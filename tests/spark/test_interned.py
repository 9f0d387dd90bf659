"""Frozen data on its way into another Python process, which may lack a module of the user's."""

import functools
import pickle
import subprocess
import sys

import pytest

from pystorm_source import read
from pystorm_source.errors import UsageError
from pystorm_source.source.request import ReadRequest
from pystorm_source.spark.interned import interned, pickled

JOB = """
from {needs} import dumps

from pystorm_source import Topology
from pystorm_source.spouts import MemorySpout

class Numbers(Topology):
    numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])

class Rows(MemorySpout):
    pass

class Owned(Topology):
    numbers = Rows.spec(fields=["n long"], rows=[[1]])
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    (tmp_path / "job_of_a_driver.py").write_text(JOB.format(needs="json"))
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("job_of_a_driver", None)


def arrived(request, path=""):
    """What another process says that gets the request."""
    program = f"import pickle, sys; sys.path[:0] = {path!r}.split(); pickle.load(sys.stdin.buffer)"
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(request), capture_output=True)
    return done.returncode, done.stderr.decode()


def test_a_module_that_an_executor_does_not_have(job):
    request = ReadRequest.of({"topology": "job_of_a_driver:Owned"})
    assert arrived(request, str(job)) == (0, "")
    status, said = arrived(request)
    assert status != 0
    last = said.strip().splitlines()[-1]
    assert last.startswith(
        "pystorm_source.errors.UsageError: [PYSTORM_PACKAGE_MISSING] 'job_of_a_driver' can be imported "
    )
    for part in (
        sys.executable,
        "install it on every executor",
        "PYTHONPATH",
        "--py-files",
        "Given: 'job_of_a_driver'",
    ):
        assert part in last


def test_a_package_that_an_executor_does_not_have(job, tmp_path):
    request = ReadRequest.of({"topology": "job_of_a_driver:Owned"})
    elsewhere = tmp_path / "executor"
    elsewhere.mkdir()
    (elsewhere / "job_of_a_driver.py").write_text(JOB.format(needs="no_such_package"))
    status, said = arrived(request, str(elsewhere))
    last = said.strip().splitlines()[-1]
    assert status != 0 and "[PYSTORM_PACKAGE_MISSING] 'no_such_package' can be imported" in last
    assert f'imported in File "{elsewhere / "job_of_a_driver.py"}", line 2, in <module>: from no_such_package' in last


def test_other_code_than_the_drivers(job, tmp_path):
    request = ReadRequest.of({"topology": "job_of_a_driver:Owned"})
    elsewhere = tmp_path / "executor"
    elsewhere.mkdir()
    (elsewhere / "job_of_a_driver.py").write_text("")
    status, said = arrived(request, str(elsewhere))
    last = said.strip().splitlines()[-1]
    assert status != 0 and "UsageError: [PYSTORM_CODE_DIFFERS] this process" in last
    assert "give all the same modules, and restart the application" in last


def test_equal_bytes_give_the_same_object():
    made = pickled({"a": [1]})
    assert interned(made) == {"a": [1]} and interned(made) is interned(bytes(bytearray(made)))


def test_bytes_that_name_a_missing_module():
    with pytest.raises(UsageError, match=r"PYSTORM_PACKAGE_MISSING.*'no_such_module'"):
        interned(b"cno_such_module\nName\n.")


CACHED = """
import functools

@functools.lru_cache(maxsize=7)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

class Table:
    @functools.lru_cache
    def row(self, n):
        return fibonacci(n)

fibonacci(30)
"""


def test_a_cached_function_of_a_script_travels_with_an_empty_cache(tmp_path):
    """Also one that calls itself, and a method; elsewhere it is the same object again, by its module."""
    (tmp_path / "script.py").write_text(
        f"{CACHED}\nimport json, sys\nfrom pystorm_source.spark.interned import pickled\n"
        "sys.stdout.buffer.write(pickled([fibonacci, Table, json.codecs.lookup]))\n"
    )
    made = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, check=True).stdout
    program = (
        "import pickle, sys; f, table, _ = pickle.load(sys.stdin.buffer); print(f.cache_info().currsize, f(10), "
        "f.cache_info().maxsize, f.cache_info().misses, table().row(10), f.__wrapped__.__globals__['fibonacci'] is f)"
    )
    printed = subprocess.run([sys.executable, "-c", program], input=made, capture_output=True, check=True).stdout
    assert printed.decode().split() == ["0", "55", "7", "11", "55", "True"]


def test_plain_pickle_takes_cached_functions_as_before():
    assert pickle.loads(pickle.dumps(functools.cache)) is functools.cache
    assert pickle.loads(pickled(_cached_here)) is _cached_here


@functools.lru_cache
def _cached_here():
    return 1


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_a_cached_function_of_a_notebook_on_spark(spark, notebook):
    """Each Python process has a cache of its own, which begins empty, and lives for all tasks of the query."""
    text = notebook.text.replace(
        "FACTOR = 3",
        "import functools\nFACTOR = 3\n\n@functools.lru_cache\ndef times(n):\n    return n * FACTOR\ntimes(9)",
    )
    text = text.replace("tup.values.n * FACTOR", "times(tup.values.n % 2) + 100 * times.cache_info().misses")
    rows = [row.times for row in read(spark, notebook(text)).collect()]
    assert rows == [100, 203, 200, 203]
