"""``FilesSpout``: follows a directory of text files that grow, are rotated, compressed and removed.

| driver | spout ─► ``listing/``: follower ─► round ─► answer | which files there are, how far each can be read |
| task | spout ─► ``reading/``: range ─► line_reader ─► a format | the lines of one byte range |
| both | ``identity/``: catalog, identity, text, copies | where a file is, what it is known by, what is in it |

A round asks ``known`` and ``heirs`` where the files that were read are now, ``originals`` what is new, ``folders`` what
is missing, and ``retirement`` what is finished. ``dead_letters`` is a spout that reads files of dead letters.
"""

from pystorm_source.spouts.files.dead_letters import DeadLetterSpout
from pystorm_source.spouts.files.spout import FilesSpout

__all__ = ["DeadLetterSpout", "FilesSpout"]
