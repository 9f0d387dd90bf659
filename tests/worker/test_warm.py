"""Workers kept warm: the same one for an equal plan and output, few, never a broken one."""

import pickle

import pyarrow as pa
import pytest

from pystorm_source import Grouping
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, warm
from tests.worker.running import N, Numbers, Pass, pair, rows, topology

OUTPUT = OutputPlan(N, (ViewPlan("b", "default", (0,)),))


@pytest.fixture(autouse=True)
def _cold():
    yield
    while warm._idle:
        warm._idle.popitem()[1].stop()


def plan_of(spout=Numbers, **config):
    return compile_plan(pair(Pass, spout), config)


def test_an_equal_plan_takes_the_worker_that_was_given_back():
    plan = plan_of()
    worker = warm.take(plan, OUTPUT)
    rows(worker.run("s", "p", 0, 3))
    warm.give_back(worker)
    again = warm.take(
        pickle.loads(pickle.dumps(plan)), OutputPlan(pa.schema(list(N)), (ViewPlan("b", "default", (0,)),))
    )
    assert again is worker
    # It is out: a second taker gets another one.
    assert warm.take(plan, OUTPUT) is not worker


@pytest.mark.parametrize(
    ("plan", "output"),
    [
        (plan_of(extra=1), OUTPUT),
        (plan_of(type("Numbers", (Numbers,), {})), OUTPUT),
        (plan_of(), OutputPlan(N, OUTPUT.views, 5)),
        (plan_of(), OutputPlan(pa.schema([("n", pa.int32())]), OUTPUT.views)),
        (plan_of(), OutputPlan(pa.schema([pa.field("n", pa.int64(), nullable=False)]), OUTPUT.views)),
        (plan_of(), OutputPlan(N, (ViewPlan("s", "default", (0,)),))),
    ],
    ids=["config", "class of the same name", "batch size", "type", "nullability", "stream"],
)
def test_what_differs_starts_cold(plan, output):
    worker = warm.take(plan_of(), OUTPUT)
    warm.give_back(worker)
    assert warm.take(plan, output) is not worker
    assert warm.take(plan_of(), OUTPUT) is worker


def test_plans_that_differ_in_a_secret_alone_differ():
    one, two = (plan_of(**{"db.password": password}) for password in ("one", "two"))
    worker = warm.take(one, OUTPUT)
    warm.give_back(worker)
    assert warm.take(two, OUTPUT) is not worker
    assert warm.take(one, OUTPUT) is worker


class Unpicklable:
    """As what cloudpickle alone takes along."""

    def __deepcopy__(self, memo):
        return self

    def __reduce_ex__(self, protocol):
        raise pickle.PicklingError("not by this pickle")


class Chooses:
    def __init__(self, *args, helper=None):
        self.args, self.helper = args, helper

    def choose_tasks(self, task, values):
        return [2]


def plan_by(custom):
    s = Numbers.spec()
    return compile_plan(topology(s=s, b=Pass.spec(inputs={s: Grouping.custom(custom)})))


def test_equal_custom_groupings_keep_the_worker_warm():
    worker = warm.take(plan_by(Chooses(1, "x", [2.5], helper=Numbers)), OUTPUT)
    rows(worker.run("s", "p", 0, 3))
    warm.give_back(worker)
    equal = pickle.loads(pickle.dumps(plan_by(Chooses(1, "x", [2.5], helper=Numbers))))
    assert warm.take(equal, OUTPUT) is worker


@pytest.mark.parametrize(
    "other",
    [
        lambda: Chooses(2),
        lambda: Chooses(1, helper=Pass),
        lambda: Chooses(1, helper=lambda: 0),
        lambda: type("Chooses", (Chooses,), {})(1),
        lambda: Chooses(1, helper=Unpicklable()),
    ],
    ids=["state", "class inside", "function inside", "class of the same name", "not picklable"],
)
def test_a_different_custom_grouping_starts_cold(other):
    plain = plan_by(Chooses(1, helper=Numbers))
    worker = warm.take(plain, OUTPUT)
    warm.give_back(worker)
    assert warm._key(plan_by(other()), OUTPUT) != warm._key(plain, OUTPUT)
    assert warm._key(plan_of(), OUTPUT) != warm._key(plain, OUTPUT)
    assert warm.take(plan_by(Chooses(1, helper=Numbers)), OUTPUT) is worker


def stopped(worker):
    return worker.broken


def test_another_run_of_a_query_starts_cold():
    worker = warm.take(plan_of(), OUTPUT, "one")
    warm.give_back(worker)
    assert warm.take(plan_of(), OUTPUT, "two") is not worker
    assert warm.take(plan_of(), OUTPUT) is not worker
    assert warm.take(plan_of(), OUTPUT, "one") is worker


def test_a_broken_worker_is_stopped():
    worker = warm.take(plan_of(), OUTPUT)
    run = worker.run("s", "p", 0, 100_000)
    next(run)
    run.close()
    warm.give_back(worker)
    assert warm.take(plan_of(), OUTPUT) is not worker


def test_at_most_one_per_plan_and_few_plans():
    first, second = warm.take(plan_of(), OUTPUT), warm.take(plan_of(), OUTPUT)
    warm.give_back(first)
    warm.give_back(second)
    assert stopped(second)
    assert not stopped(first)
    others = [warm.take(plan_of(n=n), OUTPUT) for n in range(warm.MOST_IDLE + 1)]
    for worker in others:
        warm.give_back(worker)
    # The oldest went first.
    assert stopped(first)
    assert [stopped(worker) for worker in others] == [True] + [False] * warm.MOST_IDLE
    assert len(warm._idle) == warm.MOST_IDLE


def test_the_stopped_are_cleaned_up():
    cleaned = []

    class Cleans(Numbers):
        def cleanup(self):
            cleaned.append(self.storm_conf["n"])

    workers = [warm.take(plan_of(Cleans, n=n), OUTPUT) for n in range(warm.MOST_IDLE + 2)]
    for worker in workers:
        worker.start()
        warm.give_back(worker)
    assert cleaned == [0, 1]
