"""Keys of Storm's own configuration are taken, mistyped ones are told."""

import re

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.options import EngineOptions, fields_of
from pystorm_source.options.storm_keys import STORM_KEYS, check_topology_keys


def test_whole_configurations_of_storm_pass():
    check_topology_keys(STORM_KEYS)
    check_topology_keys(key.upper() for key in STORM_KEYS)
    assert len(STORM_KEYS) > 120


def test_every_key_of_the_engine_passes():
    check_topology_keys(fields_of(EngineOptions))


def test_keys_of_the_user_pass():
    check_topology_keys(["path", "topology.city", "my.topology.debug", "topology", "topology.words.to.skip"])


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("topology.executor.recieve.buffer.size", "topology.executor.receive.buffer.size"),
        ("topology.tick.tuple.freq.sec", "topology.tick.tuple.freq.secs"),
        ("topology.max.spout.pendign", "topology.max.spout.pending"),
        ("Topology.Producer.Batchsize", "topology.producer.batch.size"),
    ],
)
def test_a_mistyped_key_is_told(key, meant):
    with pytest.raises(OptionError, match=re.escape(f"did you mean '{meant}'? Given: '{key}'")):
        check_topology_keys([key])
