"""The step between two stages of a topology: Spark's shuffle.

::

    stage ──► CrossingRows ──► crossing: key or place of each row, repartition ──► EntryFeeds ──► Inputs of the next one

``plan.stages`` says where a topology is cut; the source and operators run the stages.
"""

__all__: list[str] = []
