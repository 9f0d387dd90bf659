"""Telegraf: its tail of a file, its parser of regular expressions (grok), its file of CSV, by a configuration."""

import re
from pathlib import Path

from benchmarks.job_programs.agents import until_idle
from benchmarks.job_programs.lines import FIELDS, PATTERN

NUMBERS = {"number", "status", "millis"}
IDLE_SECONDS = 2.0
"""It writes every second: after so long without a row it has read all lines."""

CONFIGURATION = """
[agent]
  interval = "1s"
  flush_interval = "1s"
  metric_batch_size = 10000
  metric_buffer_limit = 100000
  omit_hostname = true
[[inputs.tail]]
  files = ["{logs}/app.log"]
  initial_read_offset = "beginning"
  max_undelivered_lines = 50000
  path_tag = ""
  data_format = "grok"
  grok_patterns = ['''{pattern}''']
  grok_custom_patterns = '''{parts}'''
[[outputs.file]]
  files = ["{out}/rows.csv"]
  use_batch_format = true
  data_format = "csv"
  csv_columns = {columns}
"""


def run(logs, done, telegraf, out, work):
    rows = Path(out, "rows.csv")
    Path(out).mkdir()
    rows.write_text(",".join(FIELDS) + "\n")
    groups, names = [], iter(FIELDS)

    def named(group):
        name = next(names)
        groups.append(f"{name.upper()} {group[1]}")
        return f"%{{{name.upper()}:{name}{':int' if name in NUMBERS else ''}}}"

    pattern = re.sub(r"(?<!\\)\((.*?)(?<!\\)\)", named, PATTERN)
    columns = [f"field.{name}" for name in FIELDS]
    settings = {"logs": logs, "out": out, "pattern": pattern, "parts": "\n".join(groups), "columns": columns}
    Path(work, "telegraf.conf").write_text(CONFIGURATION.format(**settings))
    until_idle([telegraf, "--config", f"{work}/telegraf.conf"], rows, done, IDLE_SECONDS)
