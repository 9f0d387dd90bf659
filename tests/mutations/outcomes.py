"""What became of a mutant."""


def refused(error: Exception) -> str:
    """The outcome of an error of ours, which has to say what was given."""
    assert "Given: " in str(error), error
    return "refused"
