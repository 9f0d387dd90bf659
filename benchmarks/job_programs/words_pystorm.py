"""Text files → words of a batch → partial counts → Spark's groupBy → Parquet."""

import pyarrow as pa
import pyarrow.compute as pc

from pystorm_source import ArrowBolt, Topology, read
from pystorm_source.bolts import CombinerBolt
from pystorm_source.spouts import FilesSpout


class Split(ArrowBolt):
    outputs = ["word string"]

    def process_batch(self, batch):
        words = pc.list_flatten(pc.split_pattern(batch["line"], " "))
        self.emit_batch(pa.RecordBatch.from_arrays([words], names=["word"]))


class Words(Topology):
    lines = FilesSpout.spec()
    words = Split.spec(inputs=[lines])
    counts = CombinerBolt.spec(inputs=[words], by=["word"], aggregates={"n": "count"})


def run(text, out, work):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    read(spark, Words, path=text).groupBy("word").sum("n").toDF("word", "n").write.parquet(out)
