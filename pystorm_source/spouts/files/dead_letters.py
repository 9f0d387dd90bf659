"""Dead letters, read back."""

import os
import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.spec_config import spec_config
from pystorm_source.errors import OptionError
from pystorm_source.formats.dead_letter_lines import ABOUT, DeadLetterLines
from pystorm_source.options import parse
from pystorm_source.spouts.files.options import FilesOptions
from pystorm_source.spouts.files.spout import FilesSpout


class DeadLetterOptions(FilesOptions, frozen=True, kw_only=True):
    """Which dead letters ``DeadLetterSpout`` reads, and what of them, besides where ``FilesSpout`` reads."""

    component: Annotated[str, Meta(description="Only dead letters that failed in this component. Empty: all.")] = (
        msgspec.field(name="dead.letters.component", default="")
    )
    reason: Annotated[
        str,
        Meta(
            description="Only dead letters whose reason matches this regular expression, such as TimeoutError|503. "
            "Empty: all."
        ),
    ] = msgspec.field(name="dead.letters.reason", default="")
    about: Annotated[
        tuple[str, ...],
        Meta(description="Fields to add: component, reason, attempts, partition, offset, time."),
    ] = msgspec.field(name="dead.letters.about", default=())

    def __post_init__(self) -> None:
        FilesOptions.__post_init__(self)
        if self.rescued:
            raise OptionError(
                "option 'rescuedDataColumn' is not for a DeadLetterSpout, whose dead letters have just the declared "
                f"values: leave it out. Given: {self.rescued!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        unknown = sorted(set(self.about) - set(ABOUT))
        if unknown:
            raise OptionError(
                f"option 'dead.letters.about' takes {', '.join(ABOUT)}. Given: {', '.join(unknown)}",
                code="PYSTORM_INVALID_OPTION",
            )
        try:
            re.compile(self.reason)
        except re.error as error:
            raise OptionError(
                f"option 'dead.letters.reason' is a regular expression: {error}. Given: {self.reason!r}",
                code="PYSTORM_INVALID_OPTION",
            ) from None


_TYPES = {"attempts": "long", "offset": "long"}


class DeadLetterSpout(FilesSpout):
    """Reads dead letters back, so that a repaired topology can process what failed before.

    It follows a folder of JSON lines, written to ``topology.dead.letter.path`` or by Spark's sink ``json`` from a
    stream ``__dead_letter``. Each dead letter becomes the tuple that failed; its values fill the declared fields in
    order. Like ``FilesSpout``, it reads each line once, through rotation and restarts. A tuple that fails again
    becomes a dead letter again.

    Raises:
        OptionError: wrong options, when the query is loaded.
        SchemaError: a line that is no dead letter or does not fit the fields, unless ``files.malformed`` says
            otherwise.
        WorldError: a file cannot be read.

    Example:
        >>> from pathlib import Path
        >>> from pystorm_source.spouts import DeadLetterSpout
        >>> from pystorm_source.testing import run_topology
        >>> _ = Path("dead.jsonl").write_text(
        ...     '{"component": "call", "reason": "503", "attempts": 4, "values": "[7, \\\\"hat\\\\"]"}' + chr(10)
        ... )
        >>> class Again(Topology):
        ...     orders = DeadLetterSpout.spec(path="dead.jsonl", fields=["id long", "item string"], reason="503")
        >>> run_topology(Again).rows("orders")
        [(7, 'hat')]
    """

    Options = DeadLetterOptions
    outputs = ["values string"]

    @classmethod
    def spec(  # type: ignore[override]
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        fields: list[str] | None = None,
        component: str | None = None,
        reason: str | None = None,
        about: list[str] | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``.
            config (dict): as in ``Spout.spec``.
            path (str | os.PathLike): the folder of dead letters, or a glob. Defaults to the reader's:
                ``.load("/data/dead")``.
            fields (list[str]): names and types of the values, in the order of the spout that first emitted them.
            component (str): only dead letters of this component, which failed the tuple. Defaults to all.
            reason (str): only dead letters with a match of this regular expression in their reason. Defaults to all.
            about (list[str]): further fields after the values: ``component``, ``reason``, ``attempts``,
                ``partition``, ``offset``, ``time``. Defaults to [].

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        given = {
            "dead.letters.component": component,
            "dead.letters.reason": reason,
            "dead.letters.about": None if about is None else list(about),
        }
        if fields is not None:
            fields = [*fields, *(f"{each} {_TYPES.get(each, 'string')}" for each in about or ())]
        return super().spec(name, par, spec_config(cls.config, config, given), path=path, fields=fields)

    def _made_format(self, outputs: Any) -> DeadLetterLines:
        if outputs is DeadLetterSpout.outputs:
            raise OptionError(
                "DeadLetterSpout needs the fields of the tuples that failed: DeadLetterSpout.spec(fields=['id long', "
                f"'item string'], ...). Given: {outputs!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        stream = self._stream_of(outputs)
        options = self._letters
        return DeadLetterLines(
            stream.fields, stream.types, options.about, options.component, re.compile(options.reason), self._faults
        )

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Reads the options.

        Raises:
            OptionError: no ``path``, no fields, or wrong ones.
        """
        self._letters = parse(DeadLetterOptions, conf)
        super().initialize(conf, context)
