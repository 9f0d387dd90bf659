"""What calls of services have answered, kept for a while: look-up caches of bolts.

::

    Bolt.cache("customers") ─▶ SharedCache ─▶ MemoryEntries: by key, the least recently used leaves first
      get(key, fetch)            │   │      └▶ RedisEntries: the same for all processes
                                 │   └▶ Flight: the one call for a key, which all that ask for it wait for
                                 └▶ Lookups: what one task has asked

``WorkerCaches`` has the caches of one process of a Spark task, by name. An entry is ``fresh`` until its ttl is over,
then ``stale``, if the cache says so, and then gone.

The room knows neither Spark nor the engine.
"""

__all__: list[str] = []
