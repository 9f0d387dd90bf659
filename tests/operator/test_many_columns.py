"""Planning an operator or a sink over thousands of columns."""

import sys

from pyspark.sql.types import LongType, StructField, StructType

from pystorm_source import Bolt, Input, Topology
from pystorm_source.operator.apply import operator_of
from pystorm_source.plan import compile_plan
from pystorm_source.sink.request import SinkRequest
from pystorm_source.testing.watch import let_come


def planned(columns):
    """Plans an operator and a sink over twice as many columns. Returns the Python instructions that it took."""

    class Pass(Bolt):
        outputs = [f"c{number} long" for number in range(columns)]

        def process(self, tup):
            self.emit(list(tup.values))

    class End(Bolt):
        def process(self, tup):
            """Takes them all."""

    class Wide(Topology):
        rows = Input.spec(list(Pass.outputs))
        passed = Pass.spec(inputs=[rows])

    class WideSink(Topology):
        rows = Input.spec(list(Pass.outputs))
        end = End.spec(inputs=[rows])

    names = [f"{kind}{number}" for kind in "cK" for number in range(columns)]
    schema = StructType([StructField(name, LongType()) for name in names])
    count = 0

    def traced(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return traced

    plan = compile_plan(WideSink)
    before = sys.gettrace()
    let_come()  # CPython 3.11: traced code loops forever while an earlier test's interrupt is pending
    sys.settrace(traced)
    try:
        operator_of(schema, Wide, {}, keep=[f"k{number}" for number in range(columns)], key=["c0"])
        operator_of(schema, Wide, {}, keep="*")
        SinkRequest.of({}, plan=plan).columns(schema)
    finally:
        sys.settrace(before)
    return count


def test_four_times_the_columns_are_four_times_the_work():
    planned(2)  # what is done once for a process
    few, many = planned(50), planned(200)
    assert many < 4.4 * few
