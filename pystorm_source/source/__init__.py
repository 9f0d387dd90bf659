"""Spark's door: the only room that imports pyspark.

Driver side: ``data_source`` (``request``, ``positions``, ``ddl``, ``rows``) is built at ``.load()``; ``stream_reader``
answers Spark's calls in the runner process out of ``driver_spouts`` (the world), ``micro_batch`` and ``admission``
(pure) and ``offsets`` (what Spark keeps). Task side: ``task_read``. Between them travel only
``partitions.RangePartition`` and the pickled reader.
"""
