"""streamparse's components that run outside of Python: importable names, refused when they are used."""

from typing import Any, NoReturn

from pystorm_source.api.component import Component
from pystorm_source.errors import NotSupportedError

_REMEDY = (
    "write it as a Bolt or Spout in Python, which can start other programs; Java code belongs after this "
    "source, in Spark"
)


class _Foreign(Component):
    _runs = ""

    def __init__(self, *args: Any, **kwargs: Any):
        self._refuse(type(self).__name__)

    @classmethod
    def spec(cls, name: Any = None, *args: Any, **kwargs: Any) -> NoReturn:
        """streamparse's way into a Topology.

        Args:
            name (str): name of the component. Defaults to None.

        Raises:
            NotSupportedError: always; it names the component.
        """
        given = name or kwargs.get("full_class_name") or kwargs.get("command")
        cls._refuse(cls.__name__ if given is None else f"{cls.__name__}, {given!r}")

    @classmethod
    def _refuse(cls, given: str) -> NoReturn:
        raise NotSupportedError(
            f"a component that runs {cls._runs} cannot run here: {_REMEDY}. Given: {given}",
            code="PYSTORM_NOT_SUPPORTED",
        )


class JavaBolt(_Foreign):
    """streamparse's bolt in Java: a name to import. Write a ``Bolt`` in Python instead.

    Raises:
        NotSupportedError: by ``spec`` and by the constructor.

    Example:
        >>> JavaBolt.spec(full_class_name="jobs.Count")
        Traceback (most recent call last):
        pystorm_source.errors.NotSupportedError: [PYSTORM_NOT_SUPPORTED] a component that runs ...
    """

    _runs = "in Java"


class JavaSpout(_Foreign):
    """streamparse's spout in Java: a name to import. Write a ``Spout`` in Python instead.

    Raises:
        NotSupportedError: by ``spec`` and by the constructor.

    Example:
        >>> JavaSpout.spec(full_class_name="jobs.Lines")
        Traceback (most recent call last):
        pystorm_source.errors.NotSupportedError: [PYSTORM_NOT_SUPPORTED] a component that runs ...
    """

    _runs = "in Java"


class ShellBolt(_Foreign):
    """streamparse's bolt started by a shell command: a name to import. Write a ``Bolt`` in Python instead.

    Raises:
        NotSupportedError: by ``spec`` and by the constructor.

    Example:
        >>> ShellBolt.spec(command="ruby")
        Traceback (most recent call last):
        pystorm_source.errors.NotSupportedError: [PYSTORM_NOT_SUPPORTED] a component that runs ...
    """

    _runs = "as a command of the shell"


class ShellSpout(_Foreign):
    """streamparse's spout started by a shell command: a name to import. Write a ``Spout`` in Python instead.

    Raises:
        NotSupportedError: by ``spec`` and by the constructor.

    Example:
        >>> ShellSpout.spec(command="ruby")
        Traceback (most recent call last):
        pystorm_source.errors.NotSupportedError: [PYSTORM_NOT_SUPPORTED] a component that runs ...
    """

    _runs = "as a command of the shell"
