"""Look-up caches of bolts: they keep the answers of services for a while.

::

    Bolt.cache("customers") ─▶ SharedCache ─▶ MemoryEntries: by key, the least recently used leaves first
      get(key, fetch)            │   │      └▶ RedisEntries: the same for all processes
                                 │   └▶ Flight: the one call for a key that others wait for
                                 └▶ Lookups: counts of one task

``WorkerCaches`` has the caches of one process of a Spark task, by name. An entry is ``fresh`` until its ttl is over,
then ``stale``, if the cache says so, and then gone.

The room knows neither Spark nor the engine.
"""

__all__: list[str] = []
