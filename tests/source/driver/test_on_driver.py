"""Where the runner is while a spout does not answer on the driver."""

from pystorm_source import PartitionedSpout, Snapshot, Topology
from pystorm_source.channel.reports.questions import on_driver
from pystorm_source.source.data_source import PystormDataSource
from pystorm_source.source.driver.stream_reader import PystormStreamReader

SEEN = []


class AskedSpout(PartitionedSpout):
    outputs = ["n long"]

    def snapshot(self, known, state):
        SEEN.append(self.look())
        return Snapshot({"p": (0, 3)})

    def look(self):
        return on_driver()  # the line that is shown

    def open(self, partition, start, end): ...

    def next_tuple(self):
        return False


class Asks(Topology):
    numbers = AskedSpout.spec()


def test_the_spouts_frames_are_shown_and_none_while_spark_asks_nothing():
    source = PystormDataSource({"topology": f"{__name__}:Asks"})
    reader = PystormStreamReader(source.request, source.request.rows.output(source.schema()))
    reader.latestOffset(reader.initialOffset())
    (snapshot, look) = SEEN[-1]
    assert snapshot.startswith("test_on_driver.py:")
    assert snapshot.endswith("in snapshot: SEEN.append(self.look())")
    assert look.endswith("in look: return on_driver()  # the line that is shown")
    assert on_driver() == ()
