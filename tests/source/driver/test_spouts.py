"""Spouts on the driver: a component that ends the runner, or breaks it, is named."""

import sys
from asyncio import CancelledError

import pytest

from pystorm_source import PartitionedSpout, Snapshot
from pystorm_source.errors import TupleFailed, WorldError
from pystorm_source.plan import compile_plan
from pystorm_source.source.driver.spouts import DriverSpouts, Terminated
from tests.worker.running import topology


def asked(raised):
    class Raises(PartitionedSpout):
        outputs = ["n long"]

        def snapshot(self, known, state):
            raised()

        def next_tuple(self):
            return False

    return DriverSpouts(compile_plan(topology(s=Raises.spec()))).snapshot("s", {}, {})


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, CancelledError])
def test_an_exit_in_a_spout_is_an_error_that_names_it(kind):
    def raises():
        raise kind(3)

    with pytest.raises(TupleFailed, match=rf"component 's', on the driver: snapshot\(\) raised {kind.__name__}: 3"):
        asked(raises)


def test_the_end_that_spark_puts_to_the_process_goes_through():
    def terminated():
        raise Terminated(0)

    with pytest.raises(Terminated):
        asked(terminated)


def test_an_exception_is_an_error_that_names_the_spout():
    def raises():
        raise ValueError("no heads")

    with pytest.raises(TupleFailed, match=r"component 's', on the driver: snapshot\(\) raised ValueError: no heads"):
        asked(raises)


@pytest.mark.parametrize("kind", [WorldError, KeyboardInterrupt])
def test_errors_of_the_package_and_an_interrupt_go_through_with_a_note(kind):
    def raises():
        raise kind

    with pytest.raises(kind) as caught:
        asked(raises)
    assert caught.value.__notes__ == ["Raised by snapshot() of spout 's', on the driver."]


def test_an_exit_in_one_cleanup_spares_the_others(caplog):
    cleaned = []

    class Exits(PartitionedSpout):
        outputs = ["n long"]

        def snapshot(self, known, state):
            return Snapshot({"p": (0, 0)})

        def next_tuple(self):
            return False

        def cleanup(self):
            cleaned.append(self)
            sys.exit(1)

    spouts = DriverSpouts(compile_plan(topology(a=Exits.spec(), b=Exits.spec())))
    for name in ("a", "b"):
        spouts.snapshot(name, {}, {})
    spouts.cleanup()
    assert len(cleaned) == 2
    assert caplog.text.count("on the driver, raised") == 2
