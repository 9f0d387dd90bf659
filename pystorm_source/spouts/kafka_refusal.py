"""Brokers that refuse a client: a wrong password, a certificate that nobody trusts.

librdkafka tells of it beside the requests, which only time out, and tries again for ever, as if a broker were down.
The Java client gives up at once, and so do the spouts.
"""

import re
from collections.abc import Mapping
from typing import Any

from pystorm_source.errors import WorldError
from pystorm_source.options import shown

# By name; and what brokers say of a client's certificate, which librdkafka takes for a lost connection.
_REFUSALS = ("_AUTHENTICATION", "_SSL")
_ALERT = "SSL alert"
_NOTHING_NEW = "_ALL_BROKERS_DOWN"
_KEYS = re.compile(r"security\.protocol|sasl\.|ssl\.|bootstrap\.servers")


class Hearsay:
    """``Hearsay(properties)``: what one client of librdkafka says beside its answers. ``hear`` is its ``error_cb``.

    ``said``: the last of it, empty for nothing. Called by the thread that polls the client.
    """

    def __init__(self, properties: Mapping[str, str]):
        self.said = ""
        self._properties = properties
        self._refusal = ""

    def hear(self, error: Any) -> None:
        if self.said and error.name() == _NOTHING_NEW:
            return
        self.said = f"{error.name()}: {error.str()}"
        if error.name() in _REFUSALS or _ALERT in error.str():
            self._refusal = self.said

    def check(self) -> None:
        """Raises WorldError where brokers have refused the client since the last call."""
        if not self._refusal:
            return
        refusal, self._refusal = self._refusal, ""
        given = ", ".join(
            f"kafka.{key}={shown(key, value)}" for key, value in sorted(self._properties.items()) if _KEYS.match(key)
        )
        raise WorldError(
            f"Kafka refuses the client, or the client the broker ({refusal}): look at kafka.security.protocol, at "
            "kafka.sasl.mechanism, kafka.sasl.username and kafka.sasl.password, or at kafka.ssl.ca.location, "
            f"kafka.ssl.certificate.location and kafka.ssl.key.location. Given: {given}"
        )
