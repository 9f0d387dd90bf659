"""The contract of partitioned spouts, for the formats and kinds of files."""

import gzip
import json
import random

import pytest

from pystorm_source.spouts import FilesSpout
from tests.spouts.contract import PartitionedSpoutContract
from tests.spouts.drive import Driven


def some_lines(seed: int, count: int = 60) -> list[str]:
    rng = random.Random(seed)
    letters = "abc äöü€𝄞\t\"'{},:"
    return ["".join(rng.choices(letters, k=rng.choice((0, 1, 5, 40, 300)))) for _ in range(count)]


class TestLines(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, tmp_path):
        for n in range(3):
            ends = ("\n", "\r\n", "\n")[n]
            (tmp_path / f"{n}.log").write_bytes(
                "".join(line + ends for line in some_lines(n)).encode() + b"half a line"
            )
        return Driven(FilesSpout.spec(path=tmp_path))

    def test_the_lines_are_those_of_the_files(self, driven, ranges):
        whole = sorted(values for name, (start, end) in ranges.items() for _, values in driven.read(name, start, end))
        assert whole == sorted((line,) for n in range(3) for line in some_lines(n))


class TestLinesOfOneByte(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, tmp_path):
        (tmp_path / "a.log").write_bytes("".join(line + "\n" for line in some_lines(3)).encode("cp1252", "replace"))
        return Driven(FilesSpout.spec(path=tmp_path / "a.log"), {"files.encoding": "cp1252"})


class TestNdJson(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, tmp_path):
        text = "".join(json.dumps({"id": n, "word": line}) + "\n\n" for n, line in enumerate(some_lines(4)))
        (tmp_path / "a.json").write_text(text)
        return Driven(FilesSpout.spec(path=tmp_path / "*.json", format="ndjson", fields=["id long", "word string"]))


class TestCsv(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, tmp_path):
        rows = "".join(f'{n},"say ""{n}"", please",{n / 4}\r\n' for n in range(50))
        (tmp_path / "a.csv").write_text("n,text,x\r\n" + rows, newline="")
        spec = FilesSpout.spec(
            path=tmp_path, format="csv", fields=["x double", "n long"], config={"files.header": True}
        )
        return Driven(spec)


class TestGzip(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, tmp_path):
        with gzip.open(tmp_path / "a.log.gz", "wb") as file:
            file.write("".join(line + "\n" for line in some_lines(5)).encode())
        with gzip.open(tmp_path / "b.log.gz", "wb") as file:
            file.write(b"one line, no newline")
        return Driven(FilesSpout.spec(path=tmp_path))


class TestKnownByPath(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, tmp_path):
        (tmp_path / "sub").mkdir()
        for name in ("a.log", "sub/b.log", "sub/100%.log"):
            (tmp_path / name).write_text("".join(f"{name} {line}\n" for line in some_lines(6)))
        return Driven(FilesSpout.spec(path=tmp_path), {"files.identity": "path", "files.recursive": "true"})
