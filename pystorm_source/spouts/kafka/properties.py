"""Properties of Kafka's client as users give them, and as librdkafka takes them.

Spark's users know the names of the Java client. Most are librdkafka's as well; this file has those that are not, those
that the spouts set themselves, and those without counterpart, with the remedies.
"""

import re
from collections.abc import Mapping
from typing import Any

from pystorm_source.errors import OptionError, UsageError
from pystorm_source.errors.packages import installing
from pystorm_source.options import shown
from pystorm_source.spouts.kafka import oauth

# Spark's source refuses these, too; with the reason.
REFUSED = {
    "auto.offset.reset": "a query begins at option startingOffsets, later at its checkpoint",
    "enable.auto.commit": "the checkpoint holds the offsets; kafka.group.id has them committed for dashboards",
    "interceptor.classes": "interceptors could change what is replayed",
    "key.deserializer": "keys come as bytes; declare the field as `key string`, or decode it in a bolt",
    "value.deserializer": "values come as bytes; declare the field as `value string`, or decode it in a bolt",
    "key.serializer": "nothing is written",
    "value.serializer": "nothing is written",
    "enable.partition.eof": "the spout sets it: it finds the end of a range by it",
    "enable.auto.offset.store": "the spout sets it: nothing is stored",
    "group.protocol": "the spout assigns partitions itself, no group does",
}

RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
}

# Only the Java client has these, and they mean nothing to a consumer with assigned partitions.
WITHOUT_EFFECT = {
    "auto.include.jmx.reporter",
    "default.api.timeout.ms",
    "enable.metrics.push",
    "exclude.internal.topics",
    "group.remote.assignor",
    "max.poll.records",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partition.assignment.strategy",
}

_PEM_REMEDY = (
    "give the certificates as PEM files: kafka.ssl.ca.location, kafka.ssl.certificate.location and "
    "kafka.ssl.key.location (keytool -exportcert -rfc, or openssl pkcs12 -in store.p12 -nodes, writes them)"
)
_SASL_REMEDY = (
    "give kafka.sasl.username and kafka.sasl.password; for Kerberos kafka.sasl.kerberos.keytab and "
    "kafka.sasl.kerberos.principal; for OAuth, and for IAM of MSK, kafka.sasl.mechanism=OAUTHBEARER with "
    "kafka.oauth_cb=package.module:function, which gives tokens, or with kafka.sasl.oauthbearer.method=oidc, "
    "kafka.sasl.oauthbearer.client.id, kafka.sasl.oauthbearer.client.secret and "
    "kafka.sasl.oauthbearer.token.endpoint.url"
)
# Properties that only the Java client has, but that must not be ignored, with the remedies.
OF_JAVA = {
    re.compile(
        r"security\.providers|ssl\.(engine\.factory\.class|(key|trust)manager\.algorithm|provider)"
    ): _PEM_REMEDY,
    re.compile(r"ssl\.(enabled\.protocols|protocol|secure\.random\.implementation)"): (
        "leave it out, OpenSSL takes the newest version of TLS that the broker has; kafka.ssl.cipher.suites narrows it"
    ),
    re.compile(r"sasl\.(login|client)(\.callback\.handler)?\.class|sasl\.oauthbearer\.jwt\..*"): (
        f"its classes cannot be loaded here: {_SASL_REMEDY}"
    ),
    re.compile(
        r"sasl\.login\..*|sasl\.kerberos\.ticket\..*|sasl\.oauthbearer\.(jwks|expected)\..*|sasl\.oauthbearer\."
        r"(clock\.skew\.seconds|header\.urlencode|scope\.claim\.name|assertion\.template\.file)"
    ): "leave it out, librdkafka renews logins and tokens by itself",
}

_JAAS = re.compile(r"\s*(?:\w+\.)*(\w+LoginModule)\s+\w+\s*(.*?);?\s*", re.DOTALL)
_JAAS_ENTRY = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""")


def client_properties(given: Mapping[str, Any]) -> dict[str, str]:
    """The properties of librdkafka for those ``given`` (without ``kafka.``). Raises OptionError."""
    properties = {key: _text(value) for key, value in given.items() if key not in WITHOUT_EFFECT}
    for key, why in REFUSED.items():
        if key in properties:
            raise OptionError(
                f"option 'kafka.{key}' is not supported: {why}. Leave it out. Given: {properties[key]!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
    for names, remedy in OF_JAVA.items():
        for key in filter(names.fullmatch, properties):
            raise OptionError(
                f"option 'kafka.{key}' is of the Java client, and librdkafka reads Kafka here: {remedy}. Given: "
                f"{shown(key, properties[key])}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
    if not properties.get("bootstrap.servers", "").strip():
        raise OptionError(
            "option 'kafka.bootstrap.servers' is needed: host:port of one or more brokers, with commas between them. "
            f"Given: {sorted(given)!r}",
            code="PYSTORM_MISSING_OPTION",
        )
    for theirs, ours in RENAMED.items():
        if theirs in properties:
            properties.setdefault(ours, properties.pop(theirs))
    if properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "")).upper() == "AWS_MSK_IAM":
        raise OptionError(
            "option 'kafka.sasl.mechanism': AWS_MSK_IAM is a class of Java's, and MSK takes OAUTHBEARER for IAM, too: "
            f"{_SASL_REMEDY}. Given: 'AWS_MSK_IAM'",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    _translate_jaas(properties)
    _translate_stores(properties)
    if properties.get("ssl.endpoint.identification.algorithm") == "":
        properties["ssl.endpoint.identification.algorithm"] = "none"
    return properties


def made_client(kind: str, properties: Mapping[str, Any], **arguments: Any) -> Any:
    """A ``Consumer`` or ``AdminClient`` of confluent-kafka.

    Raises UsageError if the package is missing, OptionError for properties that librdkafka refuses, WorldError if
    it needs a token and gets none.
    """
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise UsageError(
            "the Kafka spouts need the package confluent-kafka on the driver and on every executor: "
            f"{installing('kafka')}. Given: {error}",
            code="PYSTORM_PACKAGE_MISSING",
        ) from None
    make = confluent_kafka.Consumer if kind == "Consumer" else confluent_kafka.admin.AdminClient
    tokens = arguments.get(oauth.KEY)
    if tokens is not None:
        tokens.fetch_first(properties.get("sasl.oauthbearer.config", ""))
    try:
        return make(dict(properties), **arguments)
    except SystemError as error:
        if tokens is None:
            raise
        raise tokens.not_taken(error) from error
    except confluent_kafka.KafkaException as error:
        if tokens is not None and error.args[0].name() == "SASL_AUTHENTICATION_FAILED":
            raise tokens.not_taken(error) from error
        # librdkafka quotes values: secrets must not be repeated.
        said = error.args[0].str()
        key = next(
            (key for key in sorted(properties, key=len, reverse=True) if re.search(f'["`]{key}["`]', said)), None
        )
        names = "; the Java client's name may be another: see librdkafka's CONFIGURATION.md"
        what = f"option 'kafka.{key}'" if key else "the kafka.* options"
        why = said if shown(key or "secret", "") == "''" else error.args[0].name()
        raise OptionError(
            f"{what} cannot be taken by librdkafka: {why}{names if 'No such' in said else ''}. Given: "
            f"{shown(key, properties[key]) if key else sorted(properties)}",
            code="PYSTORM_INVALID_OPTION",
        ) from None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _translate_jaas(properties: dict[str, str]) -> None:
    jaas = properties.pop("sasl.jaas.config", None)
    if jaas is None:
        return
    found = _JAAS.fullmatch(jaas)
    module = found[1] if found else "no login module"
    if found is None or module not in ("PlainLoginModule", "ScramLoginModule"):
        raise OptionError(
            "option 'kafka.sasl.jaas.config' is of the Java client; PlainLoginModule and ScramLoginModule are "
            f"translated. Instead of others {_SASL_REMEDY}. Given: {module}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    entries = {key: double or single or bare for key, double, single, bare in _JAAS_ENTRY.findall(found[2])}
    if not {"username", "password"} <= entries.keys():
        raise OptionError(
            "option 'kafka.sasl.jaas.config' needs username and password, or give kafka.sasl.username "
            f"and kafka.sasl.password instead. Given: {module} with {sorted(entries)!r}",
            code="PYSTORM_MISSING_OPTION",
        )
    properties.setdefault("sasl.username", re.sub(r"\\(.)", r"\1", entries["username"]))
    properties.setdefault("sasl.password", re.sub(r"\\(.)", r"\1", entries["password"]))
    if "sasl.mechanism" not in properties and "sasl.mechanisms" not in properties:
        properties["sasl.mechanism"] = "PLAIN" if module == "PlainLoginModule" else "SCRAM-SHA-512"


def _translate_stores(properties: dict[str, str]) -> None:
    """PEM stores have other names in librdkafka, PKCS#12 keystores the same, JKS cannot be read by it."""
    trust = properties.pop("ssl.truststore.type", "JKS").upper()
    location = properties.pop("ssl.truststore.location", None)
    properties.pop("ssl.truststore.password", None)
    if location is not None and trust != "PEM":
        raise OptionError(
            f"option 'kafka.ssl.truststore.location': librdkafka reads no truststore of Java's: {_PEM_REMEDY}. "
            f"Given: {location!r}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    _move(properties, location, "ssl.ca.location")
    _move(properties, properties.pop("ssl.truststore.certificates", None), "ssl.ca.pem")
    key = properties.pop("ssl.keystore.type", "").upper()
    location = properties.get("ssl.keystore.location")
    _move(properties, properties.pop("ssl.keystore.certificate.chain", None), "ssl.certificate.pem")
    _move(properties, properties.pop("ssl.keystore.key", None), "ssl.key.pem")
    if location is None:
        return
    if key == "PEM":
        del properties["ssl.keystore.location"]
        _move(properties, location, "ssl.certificate.location")
        _move(properties, location, "ssl.key.location")
    elif key != "PKCS12" and not location.endswith((".p12", ".pfx")):
        raise OptionError(
            f"option 'kafka.ssl.keystore.location': librdkafka reads PKCS#12 (kafka.ssl.keystore.type=PKCS12) and PEM, "
            f"no JKS: {_PEM_REMEDY}. Given: {location!r}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )


def _move(properties: dict[str, str], value: str | None, key: str) -> None:
    if value is not None:
        properties.setdefault(key, value)
