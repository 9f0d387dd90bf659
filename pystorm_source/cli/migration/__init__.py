"""``pystorm-source migrate``: reads a streamparse project, reports what changes, writes the new project.

None of the project's code runs: its Python is parsed, its Java is searched. Anything uncertain becomes a question.
"""

__all__: list[str] = []
