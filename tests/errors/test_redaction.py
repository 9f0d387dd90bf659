"""No repr, text or message shows a secret that stands among options."""

import dataclasses
import importlib
import inspect
import logging
import pkgutil
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, field

import pystorm_source
from pystorm_source import Bolt, PartitionedSpout, Topology
from pystorm_source.channel.reports.endpoint import ReportEndpoint
from pystorm_source.clock import ManualClock
from pystorm_source.counts.run_outline import begin_of
from pystorm_source.errors import OptionError
from pystorm_source.errors.redaction import redacted, without_credentials, without_inline
from pystorm_source.formats.options import DecodingOptions
from pystorm_source.journal.options import JournalOptions
from pystorm_source.operator.cluster import Cluster
from pystorm_source.operator.task import OperatorPlan
from pystorm_source.options import EngineOptions, Options, SourceOptions, fields_of, parse, shown
from pystorm_source.options.given_options import given_options
from pystorm_source.plan import compile_plan
from pystorm_source.plan.stages import cut
from pystorm_source.sink.request import SinkRequest
from pystorm_source.source.request import ReadRequest
from pystorm_source.spouts.events.options import EventStreamOptions
from pystorm_source.spouts.http.options import HttpOptions
from pystorm_source.spouts.kafka.options import KafkaOptions
from pystorm_source.spouts.mqtt_options import MqttOptions
from pystorm_source.spouts.nats_options import NatsOptions
from pystorm_source.spouts.objects.options import ObjectsOptions
from pystorm_source.spouts.postgres.options import PostgresOptions
from pystorm_source.spouts.redis_stream import RedisStreamOptions
from pystorm_source.tuning.sweep import Sweep
from pystorm_source.tuning.trial import TrialRunner
from pystorm_source.worker import OutputPlan

SECRET = "hunter2"
CONFIG = {
    "db.password": SECRET,
    "nested": {"deeper": [{"api_token": SECRET}]},
    "as.text": f'{{"client_secret": "{SECRET}"}}',
    "address": f"https://user:{SECRET}@host/x",
    "kafka.sasl.jaas.config": f'PlainLoginModule required username="u" password="{SECRET}";',
    "plain": "shown",
}
"""A secret in every way in which a configuration can hold one."""
CLIENT = {"sasl.password": SECRET, "ssl.key.pem": SECRET, "basic.auth.user.info": f"u:{SECRET}", "group.id": "shown"}


class Login(Options, frozen=True, kw_only=True):
    password: Annotated[str, Meta(min_length=8, description="The password.")] = field(name="db.password", default="")


class Numbers(PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["0"]

    def next_tuple(self):
        return False


class Kept(Topology):
    config = CONFIG
    numbers = Numbers.spec(config=CONFIG)


def plan():
    return compile_plan(Kept)


def request():
    return ReadRequest.of({"config": CONFIG["as.text"], "path": CONFIG["address"]}, plan=plan())


HOLDERS: dict[Any, Any] = {
    "Plan": plan,
    "Sweep": lambda: Sweep(plan(), TrialRunner(plan()), ManualClock()),
    "TrialRunner": lambda: TrialRunner(plan()),
    "ComponentPlan": lambda: plan().components[0],
    "ReadRequest": request,
    "OperatorPlan": lambda: OperatorPlan(plan(), OutputPlan.typed(plan()), "rows", (), "in a test"),
    "Begin": lambda: begin_of(plan(), OutputPlan.typed(plan()), "in a test", 1.0, given_options(plan().config)),
    "Stage": lambda: cut(plan(), ())[0],
    "Cluster": lambda: Cluster.of(plan(), {}),
    "SinkRequest": lambda: SinkRequest(plan(), OutputPlan.typed(plan()), "rows", "in a test"),
    "SourceOptions": lambda: parse(SourceOptions, {"config": CONFIG["as.text"], "path": CONFIG["address"]}),
    "KafkaOptions": lambda: KafkaOptions(
        client={"bootstrap.servers": "shown:9092", **CLIENT}, subscribe="t", registry_client=CLIENT
    ),
    "RedisStreamOptions": lambda: RedisStreamOptions(url=f"redis://:{SECRET}@shown:6379/0", streams="shown"),
    "MqttOptions": lambda: MqttOptions(host="shown", topics="shown", client_id="shown", password=SECRET),
    "NatsOptions": lambda: NatsOptions(servers="nats://shown", stream="shown", password=SECRET, token=SECRET),
    "PostgresOptions": lambda: PostgresOptions(
        dsn=f"postgresql://shown:{SECRET}@host/db", password=SECRET, slot="shop"
    ),
    "EventStreamOptions": lambda: EventStreamOptions(url="https://shown", token=SECRET, auth_headers={"x": SECRET}),
    "HttpOptions": lambda: HttpOptions(url="https://shown", token=SECRET, auth_headers={"x-shop": SECRET}),
    "ObjectsOptions": lambda: ObjectsOptions(
        path=f"abfss://shown:{SECRET}@account/a", config={"secret_access_key": SECRET, "sas_key": SECRET}
    ),
    "DecodingOptions": lambda: DecodingOptions(registry_client=CLIENT),
    "JournalOptions": lambda: JournalOptions(path=f"s3://key:{SECRET}@bucket/shown"),
    "Login": lambda: Login(password=SECRET * 2),
    "ReportEndpoint": lambda: ReportEndpoint("shown", 7, SECRET.encode()),
    "Runner": lambda: ReportEndpoint("shown", 7, SECRET.encode()).runner(None),
}
WITHOUT_SECRETS = {
    "DeadLetterOptions",
    "EngineOptions",
    "FilesOptions",
    "FormatOptions",
    "JournaledSpoutOptions",
    "ReplayOptions",
    "PlannedBatch",
    "RateOptions",
    "SocketOptions",
    "SqsOptions",
}
"""They have no field for one: names, numbers, paths of this machine, fingerprints."""
NOT_PRINTED = {"Job", "Settings", "TopologyClass"}
"""What `migrate` reads from a project; none of them has a `repr` of its own."""


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("text", [repr, str, lambda held: f"{held}", lambda held: repr([held])])
def test_whoever_holds_options_shows_no_secret(name, text):
    held = HOLDERS[name]()
    assert SECRET not in text(held)
    assert SECRET not in str(getattr(held, "__rich_repr__", list)())


@pytest.mark.parametrize(
    "config",
    [
        {"auth.header": f"Bearer {SECRET}bearer"},
        {"price.authorization": f"Bearer {SECRET}"},
        {"headers": {"Authorization": f"Basic {SECRET}=="}},
        {"headers": f'{{"Cookie": "session={SECRET}"}}'},
        {"x-signature": SECRET},
        {"x-api-key": SECRET},
        {"curl": f"-H 'Authorization: Bearer {SECRET}'"},
        {"curl": f"-H 'X-Api-Key: {SECRET}' url"},
        {"note": f"with Bearer {SECRET}bearer, as agreed"},
    ],
    ids=repr,
)
def test_what_a_header_of_http_authorizes_by_is_a_secret(config):
    assert SECRET not in repr(redacted("config", config))
    assert SECRET not in without_inline(f"401 for {config['curl']}" if "curl" in config else "")


@pytest.mark.parametrize(
    "config",
    [
        {"author": "Ada"},
        {"signature_count": "3"},
        {"note": "basic authentication, and bearer of bad news"},
        {"max.tokens.kept": None},
    ],
    ids=repr,
)
def test_what_only_sounds_like_one_is_shown(config):
    assert redacted("config", config) == config


def classes_of_the_package():
    for module in pkgutil.walk_packages(pystorm_source.__path__, "pystorm_source."):
        if module.name != "pystorm_source.__main__":
            importlib.import_module(module.name)
    found, above = set(), [object]
    while above:
        for cls in type.__subclasses__(above.pop()):
            if cls not in found:
                found.add(cls)
                above.append(cls)
    return [cls for cls in found if str(cls.__module__).startswith("pystorm_source.")]


def test_every_class_that_holds_options_is_tried_here():
    names = {"client", "conf", "config", "options", "plan", "properties", "registry_client", "request", "token"}
    found = {
        cls
        for cls in classes_of_the_package()
        if (dataclasses.is_dataclass(cls) or issubclass(cls, (tuple, msgspec.Struct)))
        and (names & set(inspect.get_annotations(cls)) or (issubclass(cls, Options) and cls is not Options))
    }
    assert {cls.__name__ for cls in found} == (HOLDERS.keys() | WITHOUT_SECRETS | NOT_PRINTED) - {"Login"}
    assert {cls.__name__ for cls in found if cls.__repr__ is object.__repr__} == NOT_PRINTED


def test_a_message_and_a_record_of_the_log_show_no_secret(caplog):
    with pytest.raises(OptionError) as raised:
        parse(Login, {"db.password": SECRET})
    assert "db.password" in str(raised.value)
    assert SECRET not in str(raised.value)
    logging.getLogger("x").warning("%s %r", request(), plan())
    assert caplog.messages
    assert SECRET not in caplog.text


@pytest.mark.parametrize("config", [{**CONFIG, "more": {1, 2}}, [CONFIG]], ids=["no JSON", "no dict"])
def test_a_configuration_that_is_refused_shows_no_secret(config):
    with pytest.raises(TypeError, match="`config` of a component must be") as raised:
        Numbers.spec(config=config)
    assert SECRET not in str(raised.value)
    with pytest.raises((TypeError, ValueError)) as raised:
        compile_plan(type("Refused", (Topology,), {"config": config, "numbers": Numbers.spec()}))
    assert SECRET not in str(raised.value)


KEYS_OF_SECRETS = [
    *("kafka.ssl.key.password", "authToken", "client_secret", "fs.s3a.access.key"),
    *("objects.config.master_key", "azure_storage_master_key", "objects.config.sse_customer_key_base64"),
]


@pytest.mark.parametrize("key", KEYS_OF_SECRETS)
def test_keys_that_name_secrets(key):
    assert shown(key, SECRET) == "'(redacted)'"
    assert shown(key, "") == "''"


def test_other_values_stay_as_they_are():
    for value in ("/data", "s3://bucket/x?region=y", "{a,b}/*.log", 5, None, True, [1, "a"], ("a", 1), {"k": [1]}):
        assert redacted("key", value) == value
    assert redacted("key", '{"a": [1, null]}') == '{"a": [1, null]}'


def test_a_text_that_cannot_be_read_and_names_a_secret_is_not_shown():
    assert redacted("config", '{"password": hunter2') == "(20 characters)"


def test_secrets_change_neither_what_travels_nor_what_is_equal():
    assert dict(plan().config)["db.password"] == SECRET
    assert plan() == plan()
    other = compile_plan(
        type("Kept", (Topology,), {"config": {**CONFIG, "db.password": "x"}, "numbers": Numbers.spec()})
    )
    assert other != plan()


def test_credentials_leave_a_uri():
    assert without_credentials("s3://key:secret@bucket/a?region=x") == "s3://bucket/a"


def test_options_show_their_fields_by_name():
    assert repr(Login()) == "Login(password='')"
    assert "scheduler='inline'" in repr(EngineOptions())
    assert [name for name, _ in EngineOptions().__rich_repr__()] == [
        each.name for each in fields_of(EngineOptions).values()
    ]


class End(Bolt):
    """A component of its own keeps its configuration to itself."""

    def process(self, tup):
        pass


def test_specs_show_no_configuration():
    assert SECRET not in repr(End.spec(config=CONFIG, inputs=[Numbers.spec()]))
