"""What all of Spark's doors share: the source, the sink, operators, stages and map states.

::

    driver   plan_options, input_columns      a topology under the options of a door; the columns of its rows
             rows, crossing_rows, ddl         its columns in Spark's types
             hold                             a job's queries plan no further micro-batch
    between  interned, cached_functions       what each task gets, pickled and unpickled once
    task     input_feed, read_ahead           what an Input reads
             key_columns, dead_letter_file    what a row is known by, and what is left of one that failed
             query_batch                      Spark's names of the micro-batch
    both     border, versions                 errors as Spark shows them; differences between Spark 4.0 and 4.3
    before   java, worker_python, session     what Spark is started with; ``probe`` asks an interpreter
"""

__all__: list[str] = []
