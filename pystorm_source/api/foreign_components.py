"""streamparse's components that run outside of Python: importable names, refused when they are used."""

from typing import Any, NoReturn

from pystorm_source.api.component import Component

_REMEDY = (
    "write it as a Bolt or Spout in Python, which may start a program of its own; Java code belongs after this "
    "source, in Spark"
)


class _Foreign(Component):
    _runs = ""

    def __init__(self, *args: Any, **kwargs: Any):
        self._refuse(type(self).__name__)

    @classmethod
    def spec(cls, name: Any = None, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises NotImplementedError, which names the component."""
        given = name or kwargs.get("full_class_name") or kwargs.get("command")
        cls._refuse(cls.__name__ if given is None else f"{cls.__name__}, {given!r}")

    @classmethod
    def _refuse(cls, given: str) -> NoReturn:
        raise NotImplementedError(f"a component that runs {cls._runs} cannot run here: {_REMEDY}. Given: {given}")


class JavaBolt(_Foreign):
    """streamparse's bolt in Java. ``spec`` raises NotImplementedError."""

    _runs = "in Java"


class JavaSpout(_Foreign):
    """streamparse's spout in Java. ``spec`` raises NotImplementedError."""

    _runs = "in Java"


class ShellBolt(_Foreign):
    """streamparse's bolt started by a shell command. ``spec`` raises NotImplementedError."""

    _runs = "as a command of the shell"


class ShellSpout(_Foreign):
    """streamparse's spout started by a shell command. ``spec`` raises NotImplementedError."""

    _runs = "as a command of the shell"
