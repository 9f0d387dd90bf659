"""What a job calls on the queries that it has started, in its own process: wait for them, have a failure explained."""

__all__: list[str] = []
