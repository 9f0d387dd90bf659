"""From ``emit`` to the tasks that subscribe: collectors, groupings with their hashes, the stream router."""
