"""Settings of a trial: engine keys and numbers of tasks that override the topology's."""

import types
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pystorm_source.api import Component
from pystorm_source.plan.plan import Plan

BATCHES = "tuples_between_batches"


@dataclass(frozen=True)
class Settings:
    """``keys``: engine key → value, None for its default. ``pars``: component → number of tasks. ``batches``:
    BatchingBolt → its ``tuples_between_batches``. ``processes``: bolt → its ``processes``.

    All are sorted items, so that equal settings are equal.
    """

    keys: tuple[tuple[str, Any], ...] = ()
    pars: tuple[tuple[str, int], ...] = field(default=())
    batches: tuple[tuple[str, int], ...] = field(default=())
    processes: tuple[tuple[str, int], ...] = field(default=())

    def with_keys(self, keys: Mapping[str, Any]) -> "Settings":
        """Returns these settings with other keys on top."""
        return replace(self, keys=tuple(sorted({**dict(self.keys), **keys}.items())))

    def with_pars(self, pars: Mapping[str, int]) -> "Settings":
        """Returns these settings with other numbers of tasks on top."""
        return replace(self, pars=tuple(sorted({**dict(self.pars), **pars}.items())))

    def with_batches(self, batches: Mapping[str, int]) -> "Settings":
        """Returns these settings with other batch sizes on top."""
        return replace(self, batches=tuple(sorted({**dict(self.batches), **batches}.items())))

    def with_processes(self, processes: Mapping[str, int]) -> "Settings":
        """Returns these settings with other numbers of processes on top."""
        return replace(self, processes=tuple(sorted({**dict(self.processes), **processes}.items())))

    def plus(self, other: "Settings") -> "Settings":
        """Returns these settings with the other ones on top."""
        united = self.with_keys(dict(other.keys)).with_pars(dict(other.pars)).with_batches(dict(other.batches))
        return united.with_processes(dict(other.processes))

    def applied(self, plan: Plan) -> Plan:
        """Returns the plan with these settings. Raises OptionError if a key is wrong or contradicts another."""
        config = {**dict(plan.config), **dict(self.keys)}
        plan = plan.configured(
            {key: value for key, value in config.items() if value is not None or key not in self.own}
        )
        pars, processes = dict(self.pars), dict(self.processes)
        first, tasks = 1, {}
        for component in sorted(plan.components, key=lambda component: component.tasks):
            count = max(pars.get(component.name, len(component.tasks)), processes.get(component.name, 0))
            tasks[component.name] = tuple(range(first, first + count))
            first += count
        batches = dict(self.batches)
        components = tuple(
            replace(
                component,
                tasks=tasks[component.name],
                cls=_batching(component.cls, batches.get(component.name)),
                processes=processes.get(component.name, component.processes),
            )
            for component in plan.components
        )
        return replace(plan, components=components)

    @property
    def own(self) -> set[str]:
        """The changed keys."""
        return {key for key, _ in self.keys}

    def __str__(self) -> str:
        parts = [f"{_short(key)}={'unset' if value is None else value}" for key, value in self.keys]
        parts += [f"{name}.par={tasks}" for name, tasks in self.pars]
        parts += [f"{name}.{BATCHES}={size}" for name, size in self.batches]
        parts += [f"{name}.processes={count}" for name, count in self.processes]
        return " ".join(parts) or "as it is"


def _batching(cls: type[Component], size: int | None) -> type[Component]:
    """Returns the class with batches of that size."""
    if size is None:
        return cls
    body = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, BATCHES: size}
    return types.new_class(cls.__name__, (cls,), exec_body=lambda made: made.update(body))


def _short(key: str) -> str:
    return key.removeprefix("topology.")
