"""The files that a user of NATS signs in by."""

import re
from pathlib import Path

from pystorm_source.errors import OptionError
from pystorm_source.errors.packages import package
from pystorm_source.spouts.nats_options import NatsOptions

_SEED = re.compile(rb"BEGIN USER NKEY SEED-+\s+(\S+)")
_JWT = re.compile(rb"BEGIN NATS USER JWT-+\s+\S+")


def check_files(options: NatsOptions) -> None:
    """Raises OptionError if one of ``nats.creds`` and ``nats.nkey`` is not there, or has no seed: nats-py itself takes
    both for an outage."""
    for key, path in (("nats.creds", options.creds), ("nats.nkey", options.nkey)):
        if path is None:
            continue
        nkeys = package("nkeys", "NatsSpout", "nats")
        try:
            text = Path(path).read_bytes()
            if key == "nats.creds":
                seed = _SEED.search(text)
                if seed is None or _JWT.search(text) is None:
                    raise ValueError("it has no JWT and seed")
                text = seed[1]
            nkeys.from_seed(bytearray(text.strip()))
        except (OSError, ValueError, nkeys.NkeysError) as error:
            what = str(error) or type(error).__name__
            raise OptionError(
                f"the file of {key} cannot be used: {what}. Put it there on driver and executors. Given: {path!r}",
                code="PYSTORM_INVALID_OPTION",
            ) from None
