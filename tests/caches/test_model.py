"""Any order of look-ups, answers, exceptions, cancellations and time, against a model that says what must happen.

No value is served that is older than its time, no key has two calls at a time, and no call is made that the model does
not make."""

import asyncio
from collections import OrderedDict

from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.api.cache import AsyncCache
from pystorm_source.caches.lookups import CacheCounts, Lookups
from pystorm_source.caches.settings import CacheSettings
from pystorm_source.caches.shared_cache import SharedCache
from pystorm_source.clock import ManualClock
from tests.sizes import sized

KEYS = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), KEYS),
        st.tuples(st.just("look_up"), KEYS),
        st.tuples(st.just("look_up"), KEYS),
        st.tuples(st.just("pass"), st.sampled_from([1.0, 2.0, 5.0])),
        st.tuples(st.just("return"), KEYS),
        st.tuples(st.just("nothing"), KEYS),
        st.tuples(st.just("raise"), KEYS),
        st.tuples(st.just("cancel"), KEYS),
        st.tuples(st.just("cancel_waiter"), KEYS),
    ),
    min_size=5,
    max_size=40,
)
SETTINGS = st.builds(
    CacheSettings,
    st.just("values"),
    st.sampled_from([1.0, 5.0, 6.0]),
    st.sampled_from([1, 2, 10]),
    st.sampled_from([0.0, 1.0, 5.0]),
    st.just(()),
    st.sampled_from([0.0, 3.0]),
    st.just(""),
)


class Model:
    """What a cache must do; ``kept``: key → value and when it came, the one used last at the end."""

    def __init__(self, settings):
        self.settings = settings
        self.kept = OrderedDict()
        self.counts = CacheCounts()

    def count(self, what):
        self.counts = self.counts._replace(**{what: getattr(self.counts, what) + 1})

    def age_of(self, key, now):
        """(value, whether it is fresh), or None."""
        if key not in self.kept:
            return None
        value, at = self.kept[key]
        ttl, stale = (self.settings.missing_ttl, 0.0) if value is None else (self.settings.ttl, self.settings.stale)
        return None if now >= at + ttl + stale else (value, now < at + ttl)

    def came(self, key, value, now):
        if value is None and not self.settings.missing_ttl:
            return
        self.kept[key] = (value, now)
        self.kept.move_to_end(key)
        if len(self.kept) > self.settings.size:
            self.kept.popitem(last=False)


class World:
    """A cache, its model, and a service whose calls end when a step says so."""

    def __init__(self, settings):
        self.clock = ManualClock()
        self.cache = SharedCache(settings, self.clock)
        self.lookups = Lookups(self.cache.entries)
        self.asked = AsyncCache(object(), self.cache, self.lookups)
        self.model = Model(settings)
        self.calls = {}  # of each key the one under way: its future and its task
        self.stale = {}  # what is served meanwhile
        self.waiting = {}
        self.number = 0

    async def fetch(self, key):
        assert key not in self.calls, "two calls at a time"
        self.calls[key] = asyncio.get_running_loop().create_future(), asyncio.current_task()
        try:
            return await self.calls[key][0]
        finally:
            del self.calls[key]

    async def settle(self):
        for _ in range(12):
            await asyncio.sleep(0)

    async def ask(self, key):
        now, model = self.clock.now, self.model
        known = model.age_of(key, now)
        served = self.stale.get(key)
        task = asyncio.ensure_future(self.asked.get(key, self.fetch))
        before = self.calls.get(key)
        await self.settle()
        if known is not None and known[1]:
            assert await task == known[0]
            model.kept.move_to_end(key)
            model.count("hits")
        elif before is not None and served is not None and now < served[1]:
            assert await task == served[0]
            model.count("hits")
        elif before is not None:
            assert not task.done() and self.calls[key] is before
            self.waiting.setdefault(key, []).append(task)
        else:
            self.began(key, task, known)

    def began(self, key, task, known):
        assert self.calls[key][1] is task
        if known is not None:
            _, at = self.model.kept[key]
            self.stale[key] = known[0], at + self.model.settings.ttl + self.model.settings.stale
            self.model.count("refreshes")
            return
        self.model.count("misses")
        self.model.kept.pop(key, None)

    async def end(self, how, key):
        if key not in self.calls:
            return
        future, task = self.calls[key]
        waiting = self.waiting.pop(key, [])
        self.stale.pop(key, None)
        self.number += 1
        if how == "cancel":
            task.cancel()
        elif how == "raise":
            future.set_exception(ConnectionError(self.number))
        else:
            future.set_result(value := self.number if how == "return" else None)
        await self.settle()
        if how == "cancel":
            assert task.cancelled()
            self.asks_again(key, waiting)
        elif how == "raise":
            for each in (task, *waiting):
                assert each.exception().args == (self.number,)
        else:
            assert [each.result() for each in (task, *waiting)] == [value] * (1 + len(waiting))
            for _ in waiting:
                self.model.count("hits")
            self.model.came(key, value, self.clock.now)

    def asks_again(self, key, waiting):
        """One of those that waited makes the call, and the others wait for it."""
        assert (key in self.calls) == bool(waiting)
        if waiting:
            caller = self.calls[key][1]
            waiting.remove(caller)
            self.waiting[key] = waiting
            self.began(key, caller, self.model.age_of(key, self.clock.now))
            assert not any(each.done() for each in waiting)

    async def cancel_waiter(self, key):
        if self.waiting.get(key):
            task = self.waiting[key].pop(0)
            task.cancel()
            await self.settle()
            assert task.cancelled() and key in self.calls

    async def run(self, steps):
        for what, argument in steps:
            if what in ("ask", "look_up"):
                await self.ask(argument)
                if what == "look_up":
                    await self.end("return", argument)
            elif what == "pass":
                self.clock.advance(argument)
            elif what == "cancel_waiter":
                await self.cancel_waiter(argument)
            else:
                await self.end(what, argument)
            assert self.lookups.look()._replace(entries=0) == self.model.counts
            assert self.cache.entries() <= self.model.settings.size
        for key in list(self.calls):
            await self.end("return", key)
        assert not self.calls


@settings(max_examples=sized(2_000), deadline=None)
@given(SETTINGS, STEPS)
def test_a_cache_does_what_the_model_says(chosen, steps):
    asyncio.run(World(chosen).run(steps))
