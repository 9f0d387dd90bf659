"""Every option, read and checked at .load(): each thing wrong, one by one."""

import json
import pickle

import pytest

from pystorm_source import Topology, read_stream
from pystorm_source.errors import OptionError, TopologyError
from pystorm_source.plan import compile_plan
from pystorm_source.plan.lint import lint
from pystorm_source.source.offsets.offsets import Key
from pystorm_source.source.request import ReadRequest
from pystorm_source.spouts import FilesSpout
from tests.source import topologies

BATCH = "topology.producer.batch.size"
QUEUE = "topology.executor.receive.buffer.size"


def test_all_options(world):
    request = ReadRequest.of(
        world.options(
            "Doubled",
            MAXOFFSETSPERTRIGGER=10,
            minoffsetspertrigger="2",
            maxTriggerDelay="90s",
            maxOffsetsPerPartition=5,
            minPartitions=4,
            maxRecordsPerPartition=7,
            failondataloss="false",
            includeMetadata="true",
            startingOffsets='{"numbers": {"a": 3}}',
        )
    )
    options = request.options
    assert (options.max_offsets_per_trigger, options.min_offsets_per_trigger) == (10, 2)
    assert (options.max_offsets_per_partition, options.min_partitions) == (5, 4)
    assert options.max_records_per_partition == 7
    assert not options.fail_on_data_loss
    assert options.include_metadata
    assert request.max_trigger_delay == 90
    assert request.starting.named == {Key("numbers", "a"): 3}


def test_spouts_that_are_to_meet_are_refused_unless_the_reader_says_that_they_need_not(world):
    with pytest.raises(TopologyError, match=r"bolt 'joined' .*Given: numbers.default by fields, others"):
        ReadRequest.of(world.options("Joined"))
    request = ReadRequest.of(world.options("Joined", topology__spouts__independent="true"))
    assert [component.name for component in request.plan.spouts] == ["numbers", "others"]


def test_what_a_component_sets_must_go_with_the_options_of_the_reader(world):
    """Told at load, and not by the task that builds the component's queue."""
    bolt = topologies.DoubleBolt.spec(inputs=[(numbers := topologies.NumberSpout.spec())], config={BATCH: 50})
    plan = compile_plan(type("Made", (Topology,), {"numbers": numbers, "bolt": bolt}))
    assert ReadRequest.of({"path": str(world.folder), QUEUE: "100"}, plan=plan).plan.component("bolt")
    with pytest.raises(OptionError, match=f"config of component 'bolt': {BATCH} is at most half of {QUEUE}.*Given: 50"):
        ReadRequest.of({"path": str(world.folder), QUEUE: "64"}, plan=plan)


def test_a_config_file_holds_what_json_has(world):
    """In a registered topology as in one that is named."""
    file = world.folder / "config.yaml"
    file.write_text("my.day: 2024-01-31\n")
    for options, plan in (
        (world.options("Doubled", config=file), None),
        ({"config": str(file)}, compile_plan(topologies.Doubled)),
    ):
        with pytest.raises(OptionError, match=r"option 'config' holds JSON values only.*Given: \['my.day'\]"):
            ReadRequest.of(options, plan=plan)


@pytest.mark.parametrize("given", ["s3://bucket/logs", "dbfs:/mnt/logs"])
def test_a_path_of_another_file_system_is_refused_at_load(given):
    """Whether it comes from load() or stands in the topology."""
    made = type("Made", (Topology,), {"lines": FilesSpout.spec()})
    with pytest.raises(OptionError, match=f"'path' of a FilesSpout .*Given: '{given}'"):
        ReadRequest.of({"path": given}, plan=compile_plan(made))
    made = type("Made", (Topology,), {"lines": FilesSpout.spec(path=given)})
    with pytest.raises(OptionError, match=f"'path' of a FilesSpout .*Given: '{given}'"):
        ReadRequest.of({}, plan=compile_plan(made))


def test_is_picklable_and_equal(world):
    request = ReadRequest.of(world.options("Doubled"))
    assert pickle.loads(pickle.dumps(request)) == request


def test_what_components_get_to_see(world):
    request = ReadRequest.of(world.options("WithOptions", STEP="3", failOnDataLoss="false"))
    conf = request.plan.conf_of(request.plan.component("numbers"))
    assert conf["path"] == str(world.folder)
    assert conf["step"] == "3"
    assert conf["failOnDataLoss"] is False
    assert "topology" not in conf


def test_the_environment_is_an_option_of_the_reader(world):
    """Also of one that reads a registered topology, whose plan was made before an option could say it."""
    registered = compile_plan(topologies.ByEnvironment, any_environment=True)
    for given, tasks in (("prod", 3), ("beta", 2)):
        for plan in (None, registered):
            options = world.options("ByEnvironment", topology__environment=given)
            if plan is not None:
                del options["topology"]
            assert len(ReadRequest.of(options, plan=plan).plan.component("numbers").tasks) == tasks
    config = world.options("ByEnvironment", config='{"topology.environment": "beta"}')
    assert len(ReadRequest.of(config).plan.component("numbers").tasks) == 2
    with pytest.raises(OptionError, match="`par` of 'numbers'.*'prod', 'beta'.*topology.environment.*Given: none"):
        ReadRequest.of(world.options("ByEnvironment"))


def test_keys_of_storm_are_options_as_they_are_keys_of_config(world):
    """They reach the configuration, and the lint names those without an effect."""
    plan = ReadRequest.of(world.options("Doubled", TOPOLOGY__WORKERS="3")).plan
    assert plan.conf_of(plan.component("numbers"))["topology.workers"] == "3"
    (finding,) = [found for found in lint(plan) if found.code == "key-without-effect"]
    assert "topology.workers" in finding.meaning


@pytest.mark.parametrize("suffix", ["text", "json", "yaml", "yml"])
def test_config_is_json_or_a_file(world, tmp_path, suffix):
    config = {"topology.name": "named", "topology.debug": True, "mine": {"a": [1, 2]}}
    text = json.dumps(config)
    if suffix != "text":
        (tmp_path / f"c.{suffix}").write_text(text)
        text = str(tmp_path / f"c.{suffix}")
    plan = ReadRequest.of(world.options(config=text, topology__debug="false")).plan
    assert plan.name == "named"
    conf = plan.conf_of(plan.component("numbers"))
    assert conf["mine"] == {"a": [1, 2]}
    assert conf["topology.debug"] == "false"  # an option of its own wins


@pytest.mark.parametrize(("name", "batch_size"), [("latency", 1), (" Throughput", 512)])
def test_config_is_a_preset(world, tmp_path, monkeypatch, name, batch_size):
    """It comes with the package: from any working folder."""
    monkeypatch.chdir(tmp_path)
    plan = ReadRequest.of(world.options(config=name)).plan
    assert plan.conf_of(plan.component("numbers"))["topology.producer.batch.size"] == batch_size


def test_the_table_of_defaults_is_no_preset(world):
    with pytest.raises(OptionError, match=r"or a preset: latency or throughput\. Given: 'defaults'"):
        ReadRequest.of(world.options(config="defaults"))


def test_keys_that_spark_adds_to_tables_are_tolerated(world):
    added = {"provider": "pystorm", "owner": "me", "option.path": "x", "external": "false"}
    assert ReadRequest.of({**world.options(), **added}) == ReadRequest.of(world.options())


def test_a_spout_may_have_an_option_that_is_called_like_one_of_sparks(world):
    request = ReadRequest.of(world.options("WithOptions", location="here", owner="me"))
    assert dict(request.plan.config)["location"] == "here"
    assert "owner" not in dict(request.plan.config)


def test_errors_do_not_repeat_the_content_of_config(world):
    with pytest.raises(
        OptionError, match=r"no JSON: Expecting ',' delimiter in line 1, .*Given: 37 characters of JSON$"
    ):
        ReadRequest.of(world.options(config='{"sasl.password": "hush" "other": 1 }'))


def test_registered_plan(world):
    options = world.options()
    del options["topology"]
    request = ReadRequest.of(options, "pystorm_numbers", compile_plan(topologies.Numbers))
    assert request.plan == ReadRequest.of(world.options()).plan
    with pytest.raises(OptionError, match="'pystorm_numbers' was registered with its topology"):
        ReadRequest.of(world.options(), "pystorm_numbers", compile_plan(topologies.Numbers))


REFUSED = [
    ({"topology": ""}, r"option 'topology' is needed: .*pystorm_source\.register"),
    ({"topology": "", "topolgy": "x:Y"}, "did you mean it by 'topolgy'"),
    ({"topology": "nowhere"}, r"'topology' is package\.module:Class.* Given: 'nowhere'"),
    ({"topology": "no.such.module:X"}, "module 'no.such.module' cannot be imported"),
    ({"topology": "tests.source.topologies:Nmbers"}, "has no Topology 'Nmbers'; it has: .*Numbers"),
    ({"maxOffsetPerTrigger": "5"}, "unknown option 'maxOffsetPerTrigger': did you mean 'maxOffsetsPerTrigger'"),
    ({"step": "3"}, "unknown option 'step': a key of your own goes into option 'config' or into Topology.config"),
    ({"topology.workrs": "3"}, "unknown option 'topology.workrs': did you mean 'topology.workers'"),
    ({"maxOffsetsPerTrigger": "many"}, "'maxOffsetsPerTrigger'.*Given: 'many'"),
    ({"maxOffsetsPerTrigger": "0"}, "'maxOffsetsPerTrigger'.*at least 1.*Given: '0'"),
    ({"maxOffsetsPerTrigger": "1.5"}, "'maxOffsetsPerTrigger'.*Given: '1.5'"),
    ({"maxOffsetsPerPartition": "-1"}, "'maxOffsetsPerPartition'"),
    ({"minPartitions": "x"}, "'minPartitions'"),
    ({"maxRecordsPerPartition": "0"}, "'maxRecordsPerPartition'"),
    ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, r"at most maxOffsetsPerTrigger \(8\).* Given: 9"),
    ({"maxTriggerDelay": "soon"}, "'maxTriggerDelay' is a number with"),
    ({"failOnDataLoss": "maybe"}, "'failOnDataLoss'.*Given: 'maybe'"),
    ({"includeMetadata": "2"}, "'includeMetadata'"),
    ({"startingOffsets": "newest"}, "'startingOffsets' is earliest, latest or JSON"),
    ({"startingOffsets": '{"nmbers": {}}'}, r"the spouts with offsets are \['numbers'\]"),
    ({"endingOffsets": "earliest"}, "'endingOffsets' cannot be earliest"),
    ({"endingOffsets": '{"numbers": {"a": -2}}'}, "'endingOffsets' cannot be earliest"),
    ({"stream": "numbers.other"}, "option 'stream' is"),
    ({"streams": "both"}, "'streams'.*Given: 'both'"),
    ({"delivery.guarantee": "maybe"}, "'delivery.guarantee'"),
    ({"config": "{"}, "option 'config' is no JSON"),
    ({"config": "[]"}, "JSON object or the path"),
    ({"config": "conf.toml"}, r"JSON object or the path of a \.yaml or \.json file.* Given: 'conf.toml'"),
    ({"config": "/no/such/conf.yaml"}, r"cannot be read on the driver \(No such file or directory, working folder /"),
    ({"topology.producer.batch.size": "x"}, "'topology.producer.batch.size'"),
    ({"topology.producer.batch.size": "1000"}, "at most half of topology.executor.receive.buffer.size"),
    ({"config": '{"topology.debug": "perhaps"}'}, "'topology.debug'"),
    ({"topology": "tests.source.topologies:Parted"}, "several streams leave topology 'Parted'"),
    (
        {"topology": "tests.source.topologies:Closed"},
        "no stream leaves this topology.*outputs = .'written long'.*emits nothing gives no rows",
    ),
    ({"topology": "tests.source.topologies:WithOptions", "step": "three"}, "'step'.*Given: 'three'"),
    ({"topology": "tests.source.topologies:Ticks"}, "'ticks'.*PartitionedSpout.*delivery.guarantee=best-effort"),
]


@pytest.mark.parametrize(("options", "says"), REFUSED, ids=[json.dumps(options) for options, _ in REFUSED])
def test_refused(world, options, says):
    with pytest.raises((OptionError, TopologyError), match=f"(?s){says}") as refused:
        ReadRequest.of({**world.options(), **options})
    assert "Given: " in str(refused.value)


def test_table_without_options_names_the_way_out():
    with pytest.raises(OptionError, match=r"CREATE TEMPORARY VIEW .* USING pystorm"):
        ReadRequest.of({"provider": "pystorm", "owner": "me"})
    with pytest.raises(OptionError, match="CREATE TEMPORARY VIEW"):
        ReadRequest.of({})


def test_best_effort_is_accepted(world):
    request = ReadRequest.of(world.options("Ticks", delivery__guarantee="best-effort"))
    assert not request.plan.component("ticks").is_partitioned


@pytest.mark.parametrize("content", ["- 1\n- 2\n", "a: [", "5", "1: x", "[" * 20_000])
def test_config_file_that_holds_no_object(world, tmp_path, content):
    (tmp_path / "c.yaml").write_text(content)
    with pytest.raises(OptionError, match="option 'config'"):
        ReadRequest.of(world.options(config=tmp_path / "c.yaml"))


@pytest.mark.parametrize("key", ["config", "startingOffsets"])
def test_json_that_is_nested_too_deeply_is_refused(world, key):
    with pytest.raises(OptionError, match=f"option '{key}'"):
        ReadRequest.of(world.options(**{key: '{"a": ' + "[" * 100_000}))


def test_a_path_that_is_not_there_is_refused_when_the_query_is_loaded(tmp_path):
    class NoSpark:  # it is not asked
        _jsc = None

    made = type("Made", (Topology,), {"lines": FilesSpout.spec()})
    with pytest.raises(OptionError, match=r"no such file or directory.*Given: '.*absent'") as caught:
        read_stream(NoSpark(), made, path=str(tmp_path / "absent"))
    assert caught.value.code == "PYSTORM_INVALID_OPTION"
    for path in (tmp_path, tmp_path / "*.log"):
        ReadRequest.of({"path": str(path)}, "made", compile_plan(made, any_environment=True)).check_here()
