"""Wait strategies by Storm's keys: its own two, a user's class, and what is said if a name leads nowhere."""

import re
import sys
import types

import pytest

from cython_core.schedulers.schedulers import ParkWait, ProgressiveWait, UserWait
from pystorm_source.errors import OptionError
from pystorm_source.options import EngineOptions, parse
from pystorm_source.options.wait_strategy import WaitSituation, check_wait_strategies, wait_strategy

MILLI = 1_000_000
STORMS = "org.apache.storm.policy."


class Patient:
    """A strategy of a user's."""

    def prepare(self, conf, situation):
        self.prepared = (conf, situation)

    def idle(self, idle_counter):
        return idle_counter + 5


class Mute:
    def prepare(self, conf, situation):
        pass


class Unprepared:
    def idle(self, idle_counter):
        return 0


class Broken(Patient):
    def prepare(self, conf, situation):
        raise LookupError("no such pool")


class NeedsMore(Patient):
    def __init__(self, seconds):
        pass


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """These classes in a module that can be imported by name, whatever this file is called."""
    module = types.ModuleType("jobs_waits")
    module.nested = types.SimpleNamespace(Patient=Patient)
    for cls in (Patient, Mute, Unprepared, Broken, NeedsMore):
        setattr(module, cls.__name__, cls)
    monkeypatch.setitem(sys.modules, "jobs_waits", module)


def strategy_of(situation, conf):
    return wait_strategy(situation, parse(EngineOptions, conf), conf)


def check(conf):
    check_wait_strategies(parse(EngineOptions, conf))


def test_the_defaults_are_storms():
    spout, bolt, back = (strategy_of(situation, {}) for situation in WaitSituation)
    assert all(type(strategy) is ProgressiveWait for strategy in (spout, bolt, back))
    assert [spout.nanos_at(at) for at in (0, 1, 100)] == [MILLI] * 3
    for woken in (bolt, back):  # by a tuple, by room: they need not look
        assert [woken.nanos_at(at) for at in (0, 1, 2)] == [0, MILLI, MILLI]


def test_who_is_idle_for_long_waits_for_long():
    assert {situation.name: strategy_of(situation, {}).nanos_at(1 << 40) // MILLI for situation in WaitSituation} == {
        "SPOUT_WAIT": 10,
        "BOLT_WAIT": 100,
        "BACK_PRESSURE_WAIT": 100,
    }


@pytest.mark.parametrize("situation", WaitSituation)
def test_each_situation_reads_its_own_keys(situation):
    conf = {}
    for at, each in enumerate(WaitSituation):
        conf[f"topology.{each.value}.wait.strategy"] = STORMS + "WaitStrategyPark"
        conf[f"topology.{each.value}.wait.park.microsec"] = 10 + at
    at = list(WaitSituation).index(situation)
    assert strategy_of(situation, conf).nanos_at(0) == (10 + at) * 1000
    for at, each in enumerate(WaitSituation):
        conf[f"topology.{each.value}.wait.strategy"] = STORMS + "WaitStrategyProgressive"
        conf[f"topology.{each.value}.wait.progressive.level1.count"] = at
        conf[f"topology.{each.value}.wait.progressive.level2.count"] = str(at + 1)
        conf[f"topology.{each.value}.wait.progressive.level3.sleep.millis"] = at + 2
    at = list(WaitSituation).index(situation)
    made = strategy_of(situation, conf)
    level2 = [1] * (at + 1) if situation is WaitSituation.SPOUT_WAIT else []
    expected = [0] * at + level2 + [(at + 2) * MILLI]
    assert [made.nanos_at(n) for n in range(len(expected))] == expected


@pytest.mark.parametrize("package", ["", STORMS])
@pytest.mark.parametrize(
    ("name", "cls"), [("WaitStrategyPark", ParkWait), ("WaitStrategyProgressive", ProgressiveWait)]
)
def test_storms_strategies_go_by_storms_names(package, name, cls):
    for situation in WaitSituation:
        conf = {situation.key: package + name}
        check(conf)
        assert type(strategy_of(situation, conf)) is cls


@pytest.mark.parametrize("name", ["jobs_waits:Patient", "jobs_waits.Patient", "jobs_waits:nested.Patient"])
@pytest.mark.parametrize("situation", WaitSituation)
def test_a_class_of_the_users_is_found_by_name_and_prepared(situation, name):
    conf = {situation.key: name, "mine": [1]}
    check(conf)
    made = strategy_of(situation, conf)
    assert type(made) is UserWait
    assert made.strategy.prepared == (conf, situation)
    assert made.idle(3) == 8
    assert strategy_of(situation, conf).strategy is not made.strategy


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "is WaitStrategyProgressive, WaitStrategyPark or a class as module:Class"),
        ("Patient", "or a class as module:Class"),
        (":Patient", "or a class as module:Class"),
        ("jobs_waits:", "or a class as module:Class"),
        (".waits:Patient", "or a class as module:Class"),
        ("no_such_module:Patient", "module 'no_such_module' cannot be imported"),
        ("org.apache.storm.spout.SleepSpoutWaitStrategy", "module 'org.apache.storm.spout' cannot be imported"),
        ("jobs_waits:Impatient", "'jobs_waits' has no class 'Impatient'"),
        ("jobs_waits:nested", "'jobs_waits' has no class 'nested'"),
        ("jobs_waits:Mute", "a wait strategy defines idle(idle_counter)"),
        ("jobs_waits:Unprepared", "a wait strategy defines prepare(conf, situation)"),
    ],
)
@pytest.mark.parametrize("situation", WaitSituation)
def test_a_name_that_leads_nowhere_is_refused_before_anything_runs(situation, name, said):
    for ask in (check, lambda conf: strategy_of(situation, conf)):
        with pytest.raises(OptionError) as caught:
            ask({situation.key: name})
        assert caught.value.message.startswith(f"option {situation.key!r}")
        assert said in str(caught.value)
        assert str(caught.value).endswith(f"Given: {name!r}")


@pytest.mark.parametrize(
    ("name", "said"),
    [("Broken", "raised LookupError: no such pool"), ("NeedsMore", "raised TypeError: .*seconds")],
)
def test_a_class_that_cannot_be_prepared_is_refused(name, said):
    with pytest.raises(OptionError, match=f"topology.bolt.wait.strategy.*{said}.*Given: 'jobs_waits:{name}'"):
        strategy_of(WaitSituation.BOLT_WAIT, {"topology.bolt.wait.strategy": f"jobs_waits:{name}"})


def test_a_wrong_number_is_refused_by_key():
    key = "topology.spout.wait.park.microsec"
    with pytest.raises(OptionError, match=re.escape(f"option '{key}'") + ".*Given: -1"):
        check({key: -1})
