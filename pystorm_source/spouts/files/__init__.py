"""``FilesSpout``: follows a directory of text files that grow, are rotated, compressed and removed.

driver   spout ─► follower ─► round ─► retirement      which files there are, and how far each can be read
task     spout ─► range ─► line_reader ─► a format     the lines of one byte range
both     catalog  identity  text  copies               where a file is, what it is known by, what is in it
"""

from pystorm_source.spouts.files.spout import FilesSpout

__all__ = ["FilesSpout"]
