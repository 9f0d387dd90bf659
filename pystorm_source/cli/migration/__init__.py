"""``pystorm-source migrate``: reads a project of streamparse's, reports what changes, writes the new project.

Nothing of the project is run: its Python is parsed, its Java is searched. What is not certain becomes a question.
"""

__all__: list[str] = []
