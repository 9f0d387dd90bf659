"""Text files → explode(split) → groupBy().count() → Parquet."""


def run(text, out, work):
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    spark = SparkSession.builder.getOrCreate()
    words = spark.read.text(text).select(f.explode(f.split("value", " ")).alias("word"))
    words.groupBy("word").count().toDF("word", "n").write.parquet(out)
