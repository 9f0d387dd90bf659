"""The formats of lines with several values, by name."""

from pystorm_source.formats.csv import Csv, CsvForm
from pystorm_source.formats.csv_rescue import CsvRescue
from pystorm_source.formats.lines import Faults, LineFormat
from pystorm_source.formats.ndjson import NdJson


def text_format(
    fields: tuple[str, ...],
    types: tuple[str | None, ...],
    csv: CsvForm | None,
    faults: Faults,
    rescues: bool,
) -> LineFormat:
    """CSV of this form; None: NDJSON. ``rescues``: the last field gets what does not fit the others."""
    if csv is None:
        return NdJson(fields, types, faults, rescues)
    return CsvRescue(fields, types, csv, faults) if rescues else Csv(fields, types, csv, faults)
