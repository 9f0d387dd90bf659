"""One program a job and side, as a user would write it: ``run(**options)`` does the job once. ``__main__`` runs them.

They are run by the Python that has the peer, so none imports anything of the benchmarks but these programs and the
function that a job calls for each record, which all sides share. Their lines of code are counted.
"""
