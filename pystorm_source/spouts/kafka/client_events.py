"""Errors of one Kafka client, above all brokers that refuse it: a wrong password, an untrusted certificate.

librdkafka reports a refusal apart from the requests, which only time out, and retries endlessly, as if a broker were
down. The Java client gives up at once, and so do the spouts.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any

from pystorm_source.clock import SystemClock
from pystorm_source.errors import WorldError
from pystorm_source.options import shown
from pystorm_source.spouts.kafka import oauth

# By name; and brokers' errors about a client's certificate, which librdkafka takes for a lost connection.
_REFUSALS = ("_AUTHENTICATION", "_SSL")
_ALERT = "SSL alert"
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"
_NOTHING_NEW = "_ALL_BROKERS_DOWN"
_KEYS = re.compile(r"security\.protocol|sasl\.|ssl\.|oauth_cb|bootstrap\.servers")


class ClientEvents:
    """``ClientEvents(properties, logger)``: reports and requests of one client of librdkafka besides its answers.

    ``last_error``: name and text, empty for none. ``callbacks``: arguments for the client. Called by the thread
    that polls the client.
    """

    def __init__(self, properties: Mapping[str, str], logger: logging.Logger):
        self.last_error = ""
        self.callbacks: dict[str, Any] = {"error_cb": self.on_error}
        self._properties = properties
        self._refusal = ""
        self._tokens: oauth.Tokens | None = None
        if oauth.KEY in properties:
            # The machine's clock, not the topology's: brokers go by it.
            self._tokens = self.callbacks[oauth.KEY] = oauth.Tokens(properties, SystemClock(), logger)

    def on_error(self, error: Any) -> None:
        if self.last_error and error.name() == _NOTHING_NEW:
            return
        self.last_error = f"{error.name()}: {error.str()}"
        if _NO_TOKEN in error.str() and self._tokens is not None and self._tokens.holds:
            return  # librdkafka asks for the next one again, in ten seconds
        if error.name() in _REFUSALS or _ALERT in error.str():
            self._refusal = self.last_error

    def check(self) -> None:
        """Raises WorldError if brokers have refused the client since the last call, or it has no token."""
        if not self._refusal:
            return
        refusal, self._refusal = self._refusal, ""
        if self._tokens is not None and (error := self._tokens.error()):
            raise error
        given = ", ".join(
            f"kafka.{key}={shown(key, value)}" for key, value in sorted(self._properties.items()) if _KEYS.match(key)
        )
        raise WorldError(
            f"Kafka refuses the client, or the client the broker ({refusal}): look at kafka.security.protocol, the "
            f"options kafka.sasl.* or kafka.oauth_cb, and kafka.ssl.*.location. Given: {given}",
            code="PYSTORM_KAFKA_REFUSES",
        )
