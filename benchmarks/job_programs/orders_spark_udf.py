"""Kafka → a Python UDF whose values travel as Arrow → Parquet, exactly once by Spark's file sink."""

from benchmarks.job_programs.orders import priced

SCHEMA = "number long, customer string, category string, region string, cents long"


def run(servers, topic, step, out, work):
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    spark = SparkSession.builder.getOrCreate()
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=step).load()
    # As udf(useArrow=True), which asks for pandas and does not use it.
    price = UserDefinedFunction(priced, StructType.fromDDL(SCHEMA), evalType=PythonEvalType.SQL_ARROW_BATCHED_UDF)
    frame = frame.select(price("value").alias("row")).where("row is not null").select("row.*")
    writer = frame.writeStream.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True)
    writer.format("parquet").start(out).awaitTermination()
