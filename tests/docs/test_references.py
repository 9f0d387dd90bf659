"""What the pages name is there: options, commands, rooms; lines are short. (`tests/house` follows the links.)"""

import re

import pytest

from pystorm_source.cli.main import COMMANDS
from pystorm_source.options import TABLES, fields_of
from pystorm_source.options.storm_keys import STORM_KEYS
from pystorm_source.sink.request import DEAD_LETTER_PATH
from pystorm_source.spouts.files.dead_letters import DeadLetterOptions
from pystorm_source.spouts.kafka.options import KafkaOptions
from pystorm_source.spouts.rate import RateOptions
from tests.docs.pages import ROOT, inline_code, pages, prose

each_page = pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())

KNOWN = {key for table in (*TABLES, DeadLetterOptions, KafkaOptions, RateOptions) for key in fields_of(table)}
KNOWN |= {DEAD_LETTER_PATH}
# Spark's own words that look like options of ours.
FOREIGN = {"endingOffsetsByTimestamp", "endingTimestamp", "maxFailures", "maxRecordsPerPartition"}
FOREIGN |= {"minBy", "maxBy", "maxReceiveCount"}  # Trident's, of a queue of SQS
KEY = re.compile(
    r"\b(?:topology|delivery|batch|output|files)\.[a-z]+(?:\.[a-z]+\d*)*\b(?!\()"
    r"|\b(?:max|min|starting|ending|failOn|include)[A-Z]\w+"
)


@each_page
def test_option_keys_are_in_the_table(page):
    for code in inline_code(page):
        for key in KEY.findall(code):
            known = KNOWN | FOREIGN | (STORM_KEYS if page.name in ("MIGRATING.md", "OPTIONS.md") else set())
            assert key in known, f"{page.name} names {key!r}, which is no option"


@each_page
def test_commands_are_there(page):
    for command in re.findall(r"pystorm-source ([a-z]+)\b(?=[`\s]*(?:$|[`,;#]| {2}))", page.read_text(), re.MULTILINE):
        assert command in COMMANDS, f"{page.name}: pystorm-source {command}"


@each_page
def test_lines_are_short(page):
    fenced = set(page.read_text().splitlines()) - set(prose(page).splitlines())
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("|") or line in fenced:
            continue
        assert len(line) <= 120, f"{page.name}:{number} has {len(line)} characters"
