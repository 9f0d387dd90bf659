"""Admission as a loop over partitions, one offset of the level after another: what the columns must agree with."""


def reference(waiting, limits, budget):
    """Partition → end, without alignment."""
    room = {}
    for key, (start, head) in sorted(waiting.items()):
        bounds = [head - start, limits.per_partition, (budget or {}).get(key)]
        size = min(bound for bound in bounds if bound is not None and bound >= 0)
        if size:
            room[key] = size
    order = list(room)
    if order:
        first = sum(waiting[key][0] for key in order) % len(order)
        order = (order[first:] + order[:first])[: limits.partitions]
    shares = _filled({key: room[key] for key in order}, limits.total)
    return {key: start + shares.get(key, 0) for key, (start, _) in waiting.items()}


def _filled(room, total):
    if total is None or sum(room.values()) <= total:
        return room
    low, high = 0, total
    while low < high:  # the highest level that all can have
        level = (low + high + 1) // 2
        if sum(min(size, level) for size in room.values()) <= total:
            low = level
        else:
            high = level - 1
    shares = {key: min(size, low) for key, size in room.items()}
    rest = total - sum(shares.values())
    for key in room:
        if rest and room[key] > shares[key]:
            shares[key] += 1
            rest -= 1
    return shares
