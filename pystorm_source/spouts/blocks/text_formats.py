"""The formats of lines with several values, as options ask for them."""

from pystorm_source.formats.csv import Csv
from pystorm_source.formats.csv_rescue import CsvRescue
from pystorm_source.formats.lines import Faults, LineFormat, TextDecoder
from pystorm_source.formats.ndjson import NdJson
from pystorm_source.spouts.blocks.options import FormatOptions


def text_format(
    fields: tuple[str, ...],
    types: tuple[str | None, ...],
    format: str,
    options: FormatOptions,
    faults: Faults,
    rescues: bool,
) -> LineFormat:
    """NDJSON or CSV. ``rescues``: the last field gets what does not fit the others."""
    if format == "ndjson":
        return NdJson(fields, types, faults, rescues)
    decoder = TextDecoder(options.encoding, options.encoding_errors)

    def csv(fields: tuple[str, ...], types: tuple[str | None, ...], header: bool = False) -> Csv:
        return Csv(fields, types, header, options.delimiter, options.null, decoder, faults)

    if rescues:
        return CsvRescue(fields, types, options.header, csv, faults)
    return csv(fields, types, options.header)
