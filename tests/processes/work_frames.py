"""What a frame of kind WORK says, row by row."""


def emits_of(emits):
    """(Stream, numbers of its anchors, values) of each emit."""
    streams, numbers, values = emits
    streams = [streams] * len(numbers) if isinstance(streams, str) else streams
    anchors = [(number,) if isinstance(number, int) else number for number in numbers]
    return list(zip(streams or (), anchors, values, strict=True))


def numbers_of(ranges):
    """The numbers in ranges: first, last, first, last."""
    pairs = zip(ranges[::2], ranges[1::2], strict=True)
    return [number for first, last in pairs for number in range(first, last + 1)]
