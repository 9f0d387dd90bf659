"""A bolt that keeps a state for each key, from micro-batch to micro-batch."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from pystorm_source.api.bolt import Bolt
from pystorm_source.api.key_state import KeyState
from pystorm_source.api.keyed_states import KeyedStates
from pystorm_source.errors import ArgumentError
from pystorm_source.errors.door import door


class StatefulBolt(Bolt):
    """A bolt that keeps a state for each key, exactly once: ``self.state`` in ``process``.

    It needs a fields grouping, whose fields are the key, and ``scope="cluster"``: Spark's state store keeps the states,
    together with its checkpoint (docs/STAGES.md). When a failed tuple is processed again, its first attempt has changed
    nothing. Bolts after it form another stage, so a tuple that fails there is not counted twice here.

    A bolt that defines ``process_timer(key)`` has a timer for each key.

    Attributes:
        state_fields (list[str]): what is kept for each key: names and types as Spark writes them.
        state_ttl_secs (float | None): seconds after which an unchanged key is forgotten. Costs: Spark then runs one
            micro-batch after another, with or without rows. None: never.

    Example:
        >>> from pystorm_source import Grouping
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Count(StatefulBolt):
        ...     outputs = ["word string", "count long"]
        ...     state_fields = ["count long"]
        ...     def process(self, tup):
        ...         self.state.count = (self.state.count or 0) + 1
        ...         self.emit([tup.values.word, self.state.count])
        >>> class Words(Topology):
        ...     words = MemorySpout.spec(fields=["word string"], rows=[["cow"], ["dog"], ["cow"]])
        ...     count = Count.spec(inputs={words: Grouping.fields("word")})
        >>> sorted(run_topology(Words, scope="cluster").rows("count"))
        [('cow', 1), ('cow', 2), ('dog', 1)]
    """

    state_fields: list[str] = []
    state_ttl_secs: float | None = None

    _pystorm_states: KeyedStates | None = None

    @door
    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        # Not only from the class's dictionary: a mixin may have it.
        own = next(base.__dict__["process"] for base in cls.__mro__ if "process" in base.__dict__)
        if own is not StatefulBolt.process and getattr(own, "_pystorm_with_state", None) is not own:
            cls.process = _with_state(own)  # type: ignore[assignment, method-assign]

    @property
    def state(self) -> KeyState:
        """In ``process`` and ``process_timer``: the state of the tuple's key.

        Returns:
            KeyState: an attribute for each of ``state_fields``.

        Raises:
            ArgumentError: no tuple is processed now.
        """
        states = self._pystorm_states
        return (self._of_run("self.state") if states is None else states).current

    def process_timer(self, key: Any) -> None:
        """Called when a key's timer is due, in a micro-batch that begins after that time, with or without rows.

        ``self.state`` is the key's, and the timer is no longer set. Emits are anchored to the timer: if it fails, or
        this raises, it comes again as a tuple does, and the state is as it was. ``self.state.clear()`` forgets the key.
        A bolt that defines this makes Spark run one micro-batch after another, with or without rows.

        Args:
            key (tuple): the values of the key, also by name: the names in ``Grouping.fields`` of the first input.

        Example:
            >>> from pystorm_source import Grouping
            >>> from pystorm_source.spouts import MemorySpout
            >>> from pystorm_source.testing import run_topology
            >>> class Sessions(StatefulBolt):
            ...     outputs = ["user string", "clicks long"]
            ...     state_fields = ["clicks long"]
            ...     def process(self, tup):
            ...         self.state.clicks = (self.state.clicks or 0) + 1
            ...         self.set_timer(60)
            ...     def process_timer(self, key):
            ...         self.emit([key.user, self.state.clicks])
            ...         self.state.clear()
            >>> class Clicks(Topology):
            ...     clicks = MemorySpout.spec(fields=["user string"], rows=[["ann"], ["bob"], ["ann"]])
            ...     sessions = Sessions.spec(inputs={clicks: Grouping.fields("user")})
            >>> sorted(run_topology(Clicks, scope="cluster", timers_after=90).rows("sessions"))
            [('ann', 2), ('bob', 1)]
        """
        raise NotImplementedError

    def set_timer(self, seconds: float) -> None:
        """In ``process`` and ``process_timer``: has ``process_timer`` called for this key later. A key has one timer:
        if you set it again, only the new time counts.

        Args:
            seconds (float): from the beginning of the micro-batch; timers are due at whole seconds, never early.

        Raises:
            ArgumentError: invalid seconds, a bolt without ``process_timer``, or no tuple is processed now.
        """
        self._of_run("set_timer()").set_timer(seconds)

    def cancel_timer(self) -> None:
        """In ``process`` and ``process_timer``: cancels this key's timer.

        Raises:
            ArgumentError: a bolt without ``process_timer``, or no tuple is processed now.
        """
        self._of_run("cancel_timer()").cancel_timer()

    def _of_run(self, what: str) -> KeyedStates:
        if self._pystorm_states is None:
            raise ArgumentError(
                f"a StatefulBolt has states in a run alone: use {what} in process(). Given: {what}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        return self._pystorm_states

    def fail(self, tup: Any, *, error: BaseException | None = None, retry: bool = True) -> None:
        """As ``Bolt.fail``: what the tuple has changed in its state is put back.

        Args:
            tup (Tuple | str): the tuple, or its id.
            error (BaseException): as in ``Bolt.fail``. Defaults to None.
            retry (bool): as in ``Bolt.fail``. Defaults to True.
        """
        if self._pystorm_states is not None:
            self._pystorm_states.fail(tup)
        super().fail(tup, error=error, retry=retry)


def _with_state(process: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The user's ``process``, with the state of the tuple's key, which it leaves as it was if it raises. A tuple that
    says that a timer may be due goes to ``process_timer``, or nowhere."""

    @wraps(process)
    def with_state(self: Any, tup: Any) -> Any:
        states = self._pystorm_states
        return process(self, tup) if states is None else states.run(process, self, tup)

    # Itself, not True: a decorator of the user's copies attributes.
    with_state._pystorm_with_state = with_state  # type: ignore[attr-defined]
    return with_state
