"""Kafka → groupBy().count() → Parquet, a folder for each micro-batch, so exactly once: a replay replaces it."""


def run(servers, topic, step, out, work):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=step).load()
    frame = frame.selectExpr("CAST(value AS STRING) AS visitor").groupBy("visitor").count()

    def write(batch, number):
        batch.withColumnRenamed("count", "visits").write.mode("overwrite").parquet(f"{out}/batch={number}")

    writer = frame.writeStream.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True)
    writer.outputMode("update").foreachBatch(write).start().awaitTermination()
