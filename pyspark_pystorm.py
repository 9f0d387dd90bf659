"""Lets Spark find the source by itself: ``spark.readStream.format("pystorm")`` works without registering anything.

Spark's ``lookup_data_sources`` worker imports every top-level module named ``pyspark_*``, takes its ``DefaultSource``
and has no ``try`` around any of this: one module that raises breaks the look-up of all Python data sources. So this
module imports nothing of weight, resolves ``DefaultSource`` only when it is asked for, and never raises. Where the
real source cannot be imported, a stand-in of the same name takes its place and raises the true reason as soon as a
user loads ``format("pystorm")``, and only then.
"""


def __getattr__(name: str) -> type:
    if name != "DefaultSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = source = _default_source()  # one class per process: it is pickled by reference
    return source


def _default_source() -> type:
    try:
        from pystorm_source.source.data_source import PystormDataSource
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _stand_in(error)
    return PystormDataSource


def _stand_in(error: BaseException) -> type:
    try:
        from pyspark.sql.datasource import DataSource
    except ImportError as missing:  # a Spark without Python data sources does not look any up
        raise AttributeError("DefaultSource") from missing

    class DefaultSource(DataSource):
        """Takes the place of the pystorm source, which cannot be imported here; loading it says why."""

        reason = f"{type(error).__name__}: {error}"

        @classmethod
        def name(cls) -> str:
            return "pystorm"

        def __init__(self, options: dict[str, str]) -> None:
            raise ImportError(f"the pystorm source cannot be used here: {self.reason}") from error

    DefaultSource.__module__, DefaultSource.__qualname__ = __name__, "DefaultSource"
    return DefaultSource
