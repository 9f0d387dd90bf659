"""What of a component cannot be pickled is named: the attribute, global or variable, its type and what to do."""

import socket
import subprocess
import sys
import tempfile
import textwrap
import threading

import pytest
from pyspark import cloudpickle

from pystorm_source import Bolt, Topology
from pystorm_source.errors import TopologyError
from pystorm_source.plan import compile_plan
from pystorm_source.plan.unpicklable import check_picklable, culprit
from pystorm_source.spouts import MemorySpout

IN_INITIALIZE = "open it in initialize(), which runs in the task, and keep it in an attribute of the component"


def refused(bolt):
    class Line(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        counted = bolt.spec(inputs=[numbers])

    with pytest.raises(TopologyError) as caught:
        check_picklable(compile_plan(Line), cloudpickle.dumps)
    error = caught.value
    assert error.code == "PYSTORM_CANNOT_PICKLE"
    assert error.message.startswith(f"component 'counted' ({bolt.__name__}) cannot travel to Spark's tasks: ")
    assert ". Given: <" in error.message and "\n" not in error.message
    assert error.__cause__ is None and error.__suppress_context__  # no tracebacks of each try of a pickle above it
    return error.message


def test_an_attribute_of_the_class():
    class Count(Bolt):
        lock = threading.Lock()

        def process(self, tup):
            pass

    said = refused(Count)
    assert (
        "attribute 'lock' is a _thread.lock, which cannot be pickled (TypeError: cannot pickle '_thread.lock'" in said
    )
    assert f"): {IN_INITIALIZE}. Given: <unlocked _thread.lock object" in said


def test_a_variable_that_a_method_closes_over():
    connection = socket.socket()

    class Send(Bolt):
        def process(self, tup):
            connection.send(b"")

    said = refused(Send)
    assert "process() → variable 'connection' is a socket.socket, which cannot be pickled" in said
    connection.close()


def test_what_a_called_function_holds():
    with tempfile.TemporaryFile("w") as file:

        def write(text):
            file.write(text)

        class Write(Bolt):
            def process(self, tup):
                write("x")

        said = refused(Write)
    assert "process() → variable 'write' → variable 'file' is a _io.TextIOWrapper, which cannot be pickled" in said
    assert IN_INITIALIZE in said


def test_an_item_of_an_attribute_of_a_base():
    class Base(Bolt):
        tools = {"locks": [threading.RLock()]}

    class Derived(Base):
        def process(self, tup):
            pass

    said = refused(Derived)
    assert "base Base → attribute 'tools' → key 'locks' → item 0 is a _thread.RLock, which" in said


def test_an_object_of_the_users_own_is_looked_into_and_one_of_a_library_is_not():
    class Pool:
        def __init__(self):
            self.ready = threading.Condition()

    class Use(Bolt):
        pool = Pool()

        def process(self, tup):
            pass

    assert "attribute 'pool' → attribute 'ready' is a threading.Condition, which" in refused(Use)


def test_the_password_of_a_connection_is_not_repeated():
    class Connection:
        def __repr__(self):
            return "<connection to postgres://me:hunter2@db/shop>"

        def __reduce__(self):
            raise TypeError("a connection stays where it is")

    class Use(Bolt):
        connection = Connection()

        def process(self, tup):
            pass

    said = refused(Use)
    assert "hunter2" not in said and "Connection, which cannot be pickled (TypeError: a connection stays" in said


def test_what_pickles_has_no_culprit():
    class Plain(Bolt):
        table = {"a": [1]}

        def process(self, tup):
            pass

    assert culprit(Plain, cloudpickle.dumps) is None


def test_a_circle_ends():
    ring = [threading.Lock()]
    ring.insert(0, ring)
    assert culprit(ring, cloudpickle.dumps).place == "item 1"


def test_a_global_of_a_script():
    """As in a notebook: the class and its globals are those of ``__main__``."""
    script = """
        import threading
        from pyspark import cloudpickle
        from pystorm_source import Bolt
        from pystorm_source.plan.unpicklable import culprit, described

        lock = threading.Lock()

        class Count(Bolt):
            def process(self, tup):
                with lock:
                    pass

        print(described(culprit(Count, cloudpickle.dumps)))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("process() → global 'lock' is a _thread.lock, which cannot be pickled (TypeError: ")
