"""syslog-ng: a file source, its parser of regular expressions, a file destination → CSV, by its configuration."""

import re
from pathlib import Path

from benchmarks.job_programs.agents import until_idle
from benchmarks.job_programs.lines import FIELDS, PATTERN

IDLE_SECONDS = 1.0
"""It polls five times a second: after so long without a row it has read all lines."""

CONFIGURATION = """@version: 3.35
options {{ time-reopen(1); stats-freq(0); }};
source lines {{ file("{logs}/app.log" flags(no-parse) follow-freq(0.2) log-fetch-limit(1000) log-iw-size(10000)); }};
parser parts {{ regexp-parser(patterns('{pattern}')); }};
destination rows {{ file("{out}/rows.csv" template("{row}\\n") flush-lines(1000) log-fifo-size(20000)); }};
log {{ source(lines); parser(parts); destination(rows); flags(flow-control); }};
"""


def run(logs, done, out, work):
    rows = Path(out, "rows.csv")
    Path(out).mkdir()
    rows.write_text(",".join(FIELDS) + "\n")
    names = iter(FIELDS)
    pattern = re.sub(r"(?<!\\)\(", lambda _: f"(?<{next(names)}>", PATTERN)
    row = ",".join(f"${{{name}}}" for name in FIELDS)
    Path(work, "syslog-ng.conf").write_text(CONFIGURATION.format(logs=logs, out=out, pattern=pattern, row=row))
    files = {"cfgfile": "syslog-ng.conf", "persist-file": "persist", "control": "control", "pidfile": "pid"}
    command = ["syslog-ng", "--foreground", "--no-caps", *(f"--{key}={work}/{name}" for key, name in files.items())]
    until_idle(command, rows, done, IDLE_SECONDS)
