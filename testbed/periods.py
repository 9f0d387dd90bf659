"""How many calls a service got in a period."""


def most_in_a_period(times: list[float], seconds: float = 1.0) -> int:
    """Returns the largest number of these ascending times in any [t, t + seconds)."""
    most = first = 0
    for i, time in enumerate(times):
        while times[first] <= time - seconds:
            first += 1
        most = max(most, i - first + 1)
    return most
