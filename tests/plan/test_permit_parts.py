"""A fixed share of a limit is divided among the processes of a task that may take its permits, and no others."""

import pytest

from pystorm_source import AsyncBolt, Bolt, Topology
from pystorm_source.plan import compile_plan
from pystorm_source.plan.permit_parts import permit_parts
from pystorm_source.spouts import MemorySpout

API = {"topology.rate.limit": {"api": "100/s", "mail": "10/s"}}


class Plain(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([tup.values.n])


class Asks(Plain):
    def process(self, tup):
        with self.limit("api"):
            self.emit([tup.values.n])


class AsksAsync(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        async with self.limit("mail"):
            self.emit([tup.values.n])


Sourceless = type("Sourceless", (Plain,), {"__module__": "nowhere"})


def plan(**specs):
    """A plan of bolts in a row; each a class and arguments of its spec."""
    body = {"numbers": MemorySpout.spec(fields=["n long"], rows=[[1]])}
    for name, (cls, more) in specs.items():
        body[name] = cls.spec(inputs=[list(body.values())[-1]], **more)
    return compile_plan(type("Parts", (Topology,), body), API)


ALL = {"api": 1, "mail": 1}


@pytest.mark.parametrize(
    ("specs", "own", "of_children"),
    [
        ({"a": (Asks, {})}, ALL, {}),
        ({"a": (Plain, {})}, ALL, {}),
        ({"a": (Asks, {"processes": 3})}, {}, {"a": {"api": 3, "mail": 3}}),
        ({"a": (Asks, {"processes": 3, "par": 6})}, {}, {"a": {"api": 3, "mail": 3}}),
        # Plain might leave it to a function elsewhere; of the two only the task's own process has that.
        ({"a": (Plain, {"processes": 2})}, ALL, {"a": {}}),
        ({"a": (Plain, {"processes": 2}), "b": (Asks, {})}, ALL, {"a": {}}),
        ({"a": (Asks, {"processes": 2}), "b": (AsksAsync, {})}, {"api": 3, "mail": 3}, {"a": {"api": 3, "mail": 3}}),
        (
            {"a": (Plain, {"processes": 2, "limits": ["mail"]}), "b": (Asks, {"processes": 1})},
            {},
            {"a": {"mail": 3}, "b": {"api": 1, "mail": 3}},
        ),
        ({"a": (Plain, {"processes": 2, "limits": ["mail"]})}, {"api": 1}, {"a": {"mail": 2}}),
        ({"a": (Sourceless, {"processes": 2})}, {}, {"a": {"api": 2, "mail": 2}}),
    ],
)
def test_who_has_a_part(specs, own, of_children):
    made = plan(**specs)
    assert permit_parts(made) == own
    for component, parts in of_children.items():
        assert permit_parts(made, component) == parts


def test_the_parts_make_no_more_than_the_share():
    made = plan(a=(Asks, {"processes": 3}), b=(Plain, {"processes": 2, "limits": ["mail"]}), c=(AsksAsync, {}))
    for name in ("api", "mail"):
        taken = [1 / permit_parts(made)[name]]
        for component in made.components:
            parts = permit_parts(made, component.name)
            taken += [1 / parts[name]] * len(component.groups) if name in parts else []
        assert sum(taken) == pytest.approx(1.0)


def test_without_limits_there_are_no_parts():
    class None_(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        asks = Asks.spec(inputs=[numbers], processes=2)

    found = compile_plan(None_)
    assert permit_parts(found) == permit_parts(found, "asks") == {}
    assert not found.component("asks").takes_permits
