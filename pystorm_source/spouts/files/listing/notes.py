"""What FilesSpout notes inside of Spark's offset, beside the offsets themselves.

| note | value | means |
|---|---|---|
| `watermark` | ns since 1970 | everything up to here is done (``retirement``) |
| `waiting <inode>-<birth>` | 0 | seen, and not known yet: it will be new whatever its birth time |
| | n > 0 | it will be new, but its first n bytes of text were read out of another file |
| | -n | a copy: its first n bytes of text are read out of another file |
| `unread <partition>` | offset | its head, if Spark had planned less: the partition was seen up to there |
| `gone <partition>` | `offset seen since` | it vanished; should it return, it goes on where it was |
| `departed <since>` | entries | files that vanished before the latest 1,000 (``departed``) |
| `folder <directory>` | `inode-birth ctime` | of a directory with known files; ctime: of the one that changed last |
| `name <partition>` | its file's name | if that is not in the partition's name, and its birth time is not known |

All but the watermark last as long as their subject; `gone` lasts until a returning file is noticed without it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pystorm_source.spouts.files.identity.identity import FileIdentity
from pystorm_source.spouts.files.listing.departed import Departed

_WAITING, _UNREAD, _GONE, _FOLDER, _NAME = "waiting ", "unread ", "gone ", "folder ", "name "
# Too small: files that vanished with many others go on in other partitions if they return. Too large: every offset
# has a hundred bytes for each.
MOST_GONE = 1000


class Gone(NamedTuple):
    """A partition that vanished: read up to ``offset``, known up to ``seen``; ``since``: ns since 1970."""

    offset: int
    seen: int
    since: int

    def __str__(self) -> str:
        return f"{self.offset} {self.seen} {self.since}"


class Folder(NamedTuple):
    """A directory that had known files: what it is known by, and the ctime of the file that changed last, if noted.

    An empty directory in its place is a mount point without its mount.
    """

    identity: str
    changed_ns: int | None = None

    def __str__(self) -> str:
        return f"{self.identity} {self.changed_ns}"

    @classmethod
    def parse(cls, text: str) -> "Folder":
        identity, _, changed = text.partition(" ")
        return cls(identity, int(changed) if changed else None)


class Notes:
    """``Notes(state)``: the notes of the last offset that was stored."""

    def __init__(self, state: Mapping[str, int | str]):
        self.watermark = int(state.get("watermark", 0))
        self.waiting = _by_name(state, _WAITING)
        self.unread = {name: int(value) for name, value in _by_name(state, _UNREAD).items()}
        self.gone = {name: Gone(*map(int, str(value).split())) for name, value in _by_name(state, _GONE).items()}
        self.folders = {name: Folder.parse(str(value)) for name, value in _by_name(state, _FOLDER).items()}
        self.names = {name: str(value) for name, value in _by_name(state, _NAME).items()}
        self.departed = Departed(state, self.watermark)
        self.inodes = {int(name.partition("-")[0], 16) for name in self.waiting}
        """Inodes of the files that wait."""


class NewNotes:
    """``NewNotes(departed)``: the notes of the next offset. ``departed``: of the last offset; ``state`` adds to it.

    ``forgotten``: how many files the next offset does not remember any more.
    """

    def __init__(self, departed: Departed) -> None:
        self.departed = departed
        self.forgotten = 0
        self.watermark = 0
        self.waiting: dict[str, int | str] = {}
        self.unread: dict[str, int] = {}
        self.gone: dict[str, Gone] = {}
        self.folders: dict[str, Folder] = {}
        self.names: dict[str, str] = {}

    def state(self) -> dict[str, int | str]:
        """Returns all notes by name; the older ones of vanished files go into ``departed``. Call it once."""
        ordered = sorted(self.gone, key=lambda name: (self.gone[name].since, name))
        latest = ordered[-MOST_GONE:]
        for name in ordered[:-MOST_GONE]:
            identity, gone = FileIdentity.parse(name), self.gone[name]
            if identity.skip and not gone.offset:
                latest.append(name)  # an entry of ``departed`` has no place for what it skips
            else:
                self.departed.join(identity, gone.offset, gone.since)
        self.forgotten = self.departed.forget()
        notes: dict[str, int | str] = {"watermark": self.watermark} if self.watermark else {}
        notes |= {_WAITING + name: value for name, value in self.waiting.items()}
        notes |= {_UNREAD + name: value for name, value in self.unread.items()}
        notes |= {_GONE + name: str(self.gone[name]) for name in latest}
        notes |= self.departed.state()
        notes |= {_FOLDER + name: str(folder) for name, folder in self.folders.items()}
        notes |= {_NAME + name: value for name, value in self.names.items()}
        return dict(sorted(notes.items()))


def _by_name(state: Mapping[str, int | str], kind: str) -> dict[str, int | str]:
    return {key.removeprefix(kind): value for key, value in state.items() if key.startswith(kind)}
