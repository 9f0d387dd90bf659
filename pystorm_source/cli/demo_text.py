"""Real text for the demo, and a writer that appends it to files as a busy log would."""

import random
import sysconfig
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pystorm_source.cli.word_count import WORD

SUFFIXES = {".py", ".txt", ".md", ".rst", ".pyi", ""}


def text_files() -> Iterator[Path]:
    """Licence texts, documents and sources of the installed packages and of Python's own library, in a fixed order."""
    for name in ("purelib", "stdlib"):
        root = Path(sysconfig.get_paths()[name])
        for path in sorted(root.rglob("*")):
            if path.suffix in SUFFIXES and path.is_file() and not path.is_symlink():
                yield path


def gather(size: int) -> list[bytes]:
    """About ``size`` bytes of text as lines that end in a newline; fewer if the machine has no more."""
    lines: list[bytes] = []
    total = 0
    for path in text_files():
        data = path.read_bytes()
        if b"\0" in data:
            continue
        for line in data.splitlines():
            lines.append(line + b"\n")
            total += len(line) + 1
        if total >= size:
            break
    return lines


class GrowingFiles:
    """Writes ``lines`` into ``files`` files of ``folder``: a first part at once, the rest bit by bit from a thread.

    Bits end anywhere, in the middle of lines and of characters.
    """

    def __init__(self, folder: Path, lines: list[bytes], files: int = 3, first: float = 0.4, seconds: float = 15.0):
        self.folder = folder
        self.seconds = seconds
        self._texts = [b"".join(lines[i::files]) for i in range(files)]
        self._written = [int(len(text) * first) for text in self._texts]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._append, name="demo-writer", daemon=True)
        for path, text, written in zip(self.paths, self._texts, self._written, strict=True):
            path.write_bytes(text[:written])

    @property
    def paths(self) -> list[Path]:
        return [self.folder / f"text-{i}.log" for i in range(len(self._texts))]

    @property
    def size(self) -> int:
        return sum(len(text) for text in self._texts)

    @property
    def begun(self) -> bool:
        return self._thread.ident is not None

    @property
    def writing(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Begins to append."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the writer if it has not ended by itself."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _append(self) -> None:
        chance = random.Random(7)
        steps = 60
        left = [len(text) - written for text, written in zip(self._texts, self._written, strict=True)]
        with_handles = [path.open("ab", buffering=0) for path in self.paths]
        try:
            while any(w < len(t) for w, t in zip(self._written, self._texts, strict=True)) and not self._stop.is_set():
                for i, handle in enumerate(with_handles):
                    bit = self._texts[i][self._written[i] :][: chance.randint(1, max(1, 2 * left[i] // steps))]
                    handle.write(bit)
                    self._written[i] += len(bit)
                self._stop.wait(self.seconds / steps)
        finally:
            for handle in with_handles:
                handle.close()

    def count_words(self) -> Counter[str]:
        """The independent count: whole files at once, no topology, no Spark."""
        counts: Counter[str] = Counter()
        for path in self.paths:
            counts.update(WORD.findall(path.read_bytes().decode("utf-8", "replace").lower()))
        return counts
