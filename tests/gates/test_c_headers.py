"""The C headers of the core under sanitizers, without Python: every `tests/c/*.c` is a program that must end well.

AddressSanitizer and UndefinedBehaviorSanitizer for all; ThreadSanitizer for `*_threads.c`. A threads program that
mentions PYSTORM_NEGATIVE_CONTROL is compiled once more with that macro, which must break it: a sanitizer that no
longer finds anything would otherwise look like success. Headers that include Python.h are left to test_core_asan.py.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sysconfig
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gate, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
HEADERS = sorted(ROOT.glob("cython_core/**/*.h"))
PROGRAMS = sorted((ROOT / "tests" / "c").glob("*.c"))
THREADS = [path for path in PROGRAMS if path.stem.endswith("_threads")]
CONTROL = "PYSTORM_NEGATIVE_CONTROL"
LOST_RINGS = "PYSTORM_LOST_RINGS"

FLAGS = ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-omit-frame-pointer", "-UNDEBUG", "-pthread"]
ADDRESS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
THREAD = ["-fsanitize=thread"]


def compile_and_run(source: Path, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Compiles (which must succeed) and runs; what the program said and how it ended."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    program = folder / source.stem
    command = [
        compiler,
        *FLAGS,
        *flags,
        f"-I{ROOT}",
        f"-I{ROOT / 'tests' / 'c'}",
        str(source),
        "-o",
        str(program),
        "-lm",
    ]
    compiled = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert compiled.returncode == 0, f"{shlex.join(command)}\n{compiled.stderr}"
    # ThreadSanitizer cannot place its shadow where the kernel scatters addresses widely.
    still = ["setarch", os.uname().machine, "-R"] if shutil.which("setarch") else []
    return subprocess.run([*still, str(program)], capture_output=True, text=True, timeout=800)


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_address_and_undefined(source, tmp_path):
    ended = compile_and_run(source, tmp_path, *ADDRESS)
    assert ended.returncode == 0, ended.stderr


def test_threads(tmp_path):
    for source in THREADS:
        ended = compile_and_run(source, tmp_path, *THREAD)
        assert ended.returncode == 0, ended.stderr


def test_broken_orders_are_caught(tmp_path):
    for source in THREADS:
        if CONTROL in source.read_text():
            ended = compile_and_run(source, tmp_path, *THREAD, f"-D{CONTROL}")
            assert ended.returncode != 0, f"{source.name} does not notice that its orders are broken"
            assert "data race" in ended.stderr


def test_lost_rings_are_caught(tmp_path):
    tried = [source for source in PROGRAMS if LOST_RINGS in source.read_text()]
    assert tried
    for source in tried:
        ended = compile_and_run(source, tmp_path, f"-D{LOST_RINGS}", "-DDEADLINE=5")
        assert ended.returncode == -signal.SIGALRM, f"{source.name} does not notice that rings are lost"


def needs_python(header: Path) -> bool:
    """Whether the header includes Python.h, itself or through another one of ours."""
    text = header.read_text()
    if re.search(r"#\s*include\s*<Python\.h>", text):
        return True
    inner = re.findall(r'#\s*include\s*"([^"]+)"', text)
    return any(needs_python(ROOT / name) for name in inner if (ROOT / name).exists())


def test_every_header_has_a_program():
    included = {name for path in PROGRAMS for name in re.findall(r'#\s*include\s*"([^"]+)"', path.read_text())}
    alone = {path.relative_to(ROOT).as_posix() for path in HEADERS if not needs_python(path)}
    assert alone <= included, f"no program in tests/c includes {sorted(alone - included)}"


@pytest.mark.parametrize(
    ("name", "flags", "body", "words"),
    [
        ("address", ADDRESS, 'char *p = malloc(4); memset(p, 1, n + 4); printf("%s", p);', "heap-buffer-overflow"),
        ("undefined", ADDRESS, 'int big = 2147483647; printf("%d", big + n);', "signed integer overflow"),
        (
            "race",
            THREAD,
            "pthread_t t; pthread_create(&t, 0, add, &n); n++; pthread_join(t, 0);",
            "data race",
        ),
    ],
)
def test_the_sanitizers_find_something(tmp_path, name, flags, body, words):
    source = tmp_path / f"{name}.c"
    source.write_text(
        "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        "void *add(void *n) { (*(int *)n)++; return 0; }\n"
        f"int main(int argc, char **argv) {{ int n = argc; (void)argv; {body} return 0; }}\n"
    )
    ended = compile_and_run(source, tmp_path, *flags)
    assert ended.returncode != 0
    assert words in ended.stderr
