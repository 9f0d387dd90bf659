"""With SPARK_TRACEBACK_WITH_LOCALS=1 Spark's processes print local variables: none of a frame of this package."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import io, sys
from importlib.machinery import ModuleSpec
from pyspark.util import handle_worker_exception
from pystorm_source.errors import InternalError, TupleFailed
from pystorm_source.spark.border import spark_border

sys.modules["__main__"].__spec__ = ModuleSpec("pyspark.worker", None)  # as Spark starts it

def raises(kind):
    options = {"sasl.password": "hunter2-local"}
    raise kind("no price")

for kind in (InternalError, ValueError, TupleFailed):
    try:
        with spark_border():
            raises(kind)
    except Exception as error:
        out = io.BytesIO()
        handle_worker_exception(error, out)
        text = out.getvalue().decode(errors="replace")  # a length stands before it
        print(kind.__name__, "no price" in text, "hunter2-local" in text)
    sys.stdout.flush()
"""


@pytest.mark.spark40
def test_no_secret_of_a_frame_is_printed():
    environment = {**os.environ, "SPARK_TRACEBACK_WITH_LOCALS": "1"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "InternalError True False\nValueError True False\nTupleFailed True False\n", done.stderr
