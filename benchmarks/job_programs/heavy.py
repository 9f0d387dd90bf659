"""The function of the heavy bolt of the benchmark ``processes``."""


def work(loops: int) -> int:
    """Computes in pure Python, holding the interpreter's lock."""
    total = 0
    for i in range(loops):
        total += i * i & 7
    return total
