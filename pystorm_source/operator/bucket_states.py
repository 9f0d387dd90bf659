"""The states and timers of a bucket's keys, in the variables of Spark's state store.

::

    key-buckets   ValueState: number of buckets; pages, keys and bytes of this one
    BOLT          MapState: page → many keys; with state_ttl_secs: key → values, which Spark removes when they expire
    key-timers    MapState: second, part → keys
"""

from threading import Lock
from typing import Any

from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, StructField, StructType

from pystorm_source.api.key_state import Key
from pystorm_source.errors import OptionError
from pystorm_source.operator.state_pages import PageForm, Size, StatePages

# A bolt's variable has no hyphen.
_BUCKETS = "key-buckets"
_TIMERS = "key-timers"
# The part that has the number of parts.
_HEAD = -1

PAGE, KEY, STATE = "page", "key", "state"
"""The fields of a stored page. Only the first has a value: the others say what a page has, so that Spark refuses a
checkpoint with other fields, and a reader of the checkpoint needs nothing else."""

MOST_KEYS = 10_000
"""Most keys of several times that one run of a stage gets. More: memory. Fewer: a run for each second that a query was
stopped."""


class _Entries:
    """A state for each key. ``states``: Spark's map; ``lock``: for its connection."""

    def __init__(self, states: Any, lock: Lock):
        self._states = states
        self._lock = lock

    def get(self, key: Key) -> tuple[Any, ...] | None:
        with self._lock:
            found: tuple[Any, ...] | None = self._states.getValue(key)
        return found

    def put(self, key: Key, values: tuple[Any, ...]) -> None:
        self._states.updateValue(key, values)

    def remove(self, key: Key) -> None:
        self._states.removeKey(key)

    def flush(self) -> tuple[int, ...]:
        return ()


class BucketStates:
    """Spark's variables, each time for the bucket that Spark processes. Their connection takes one question at a time,
    and tasks of a bolt may run in separate threads.

    ``states``, ``timers``, ``head``: the variables, no timers without ``process_timer``; ``form``: of the pages, None
    if the states expire.
    """

    def __init__(self, states: Any, timers: Any, head: Any, handle: Any, form: PageForm | None):
        self._map = states
        self._timers = timers
        self._head = head
        self._handle = handle
        self._form = form
        self._lock = Lock()
        self._found: tuple[int, ...] | None = None
        self._buckets = 0
        self._use(_Entries(states, self._lock) if form is None else StatePages(form, states, Size(), self._lock))

    @classmethod
    def declared(
        cls,
        handle: Any,
        variable: str,
        key: StructType,
        state: StructType,
        ttl_millis: int | None,
        form: PageForm | None,
        has_timers: bool,
    ) -> "BucketStates":
        """Declares the variables. ``variable``: the states' name in Spark; ``key``, ``state``: their schemas;
        ``ttl_millis``, ``form``: one of them is None."""
        head = StructType([StructField("n", IntegerType(), True)])
        if form is None:
            states = handle.getMapState(variable, key, state, ttl_millis)
        else:
            page = StructType([StructField(PAGE, BinaryType()), StructField(KEY, key), StructField(STATE, state)])
            states = handle.getMapState(variable, StructType([StructField("number", LongType(), True)]), page)
            for name in Size._fields:
                head.add(name, LongType(), True)
        timers = None
        if has_timers:
            part = StructType([StructField("at", LongType(), True), StructField("part", IntegerType(), True)])
            parts = StructField("parts", IntegerType(), True)
            timers = handle.getMapState(_TIMERS, part, StructType([parts, StructField("keys", ArrayType(key), True)]))
        return cls(states, timers, handle.getValueState(_BUCKETS, head), handle, form)

    def begin(self, buckets: int) -> None:
        """Begins a run over the bucket. Raises OptionError if the checkpoint has another number of buckets: a key would
        be looked for elsewhere."""
        self._buckets, self._found = buckets, self._head.get()
        if self._found is not None and self._found[0] != buckets:
            raise OptionError(
                f"the checkpoint has the states in {self._found[0]} buckets, and the number is fixed with its first "
                f"micro-batch: set topology.state.buckets={self._found[0]}, or begin with a new checkpoint. Given: "
                f"topology.state.buckets={buckets}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        if self._form is not None:
            self._use(StatePages(self._form, self._map, Size(*(self._found or ())[1:]), self._lock))

    def _use(self, states: _Entries | StatePages) -> None:
        # As ``StateStore``. ``get`` runs once for each key: a method in between would double its cost.
        self._states, self.get, self.put, self.remove = states, states.get, states.put, states.remove

    def flush(self) -> None:
        """Writes what the run has changed."""
        head = (self._buckets, *self._states.flush())
        if head != self._found:
            self._head.update(head)

    def ask_at(self, millis: int, keys: list[Key]) -> None:
        """As ``StateStore``: Spark calls the bucket at that time.

        The keys of each flush are a separate part: many micro-batches may ask for one time, such as midnight, and none
        rewrites what the others wrote.
        """
        with self._lock:
            head = self._timers.getValue((millis, _HEAD))
            parts = 0 if head is None else head[0]
            if parts == 0:
                self._handle.registerTimer(millis)
            self._timers.updateValue((millis, parts), (None, keys))
            self._timers.updateValue((millis, _HEAD), (parts + 1, None))

    def asked_until(self, millis: int, now: int) -> list[tuple[Any, int]]:
        """Removes and returns the keys to be asked for at that time, in Spark's form, with the time; then the next
        times' up to ``now``, as long as they are few: a query that starts after a long stop runs once for many."""
        with self._lock:
            found = self._taken(millis)
            if found:
                for at in sorted(self._handle.listTimers()):
                    if len(found) >= MOST_KEYS or at > now:
                        break
                    found += self._taken(at)
            return found

    def _taken(self, millis: int) -> list[tuple[Any, int]]:
        head = self._timers.getValue((millis, _HEAD))
        if head is None:
            return []
        found: list[tuple[Any, int]] = []
        for part in range(head[0]):
            found += [(key, millis) for key in self._timers.getValue((millis, part))[1]]
            self._timers.removeKey((millis, part))
        self._timers.removeKey((millis, _HEAD))
        return found
