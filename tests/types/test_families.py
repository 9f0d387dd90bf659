"""What declared types can hold."""

from decimal import Decimal

import pytest

from pystorm_source.types.families import decimal_fits


@pytest.mark.parametrize(
    ("ddl", "text", "fits"),
    [
        ("decimal(4,2)", "12.340", True),
        ("decimal(4,2)", "123.4", False),
        ("decimal(4,2)", "1.234", False),
        ("decimal(38,0)", "9" * 38, True),
        ("decimal(38,0)", "1" + "0" * 38, False),
        ("decimal(38,10)", "1234567890123456789012345678.12345678901", False),
        ("decimal(10,2)", "NaN", False),
        ("decimal(10,2)", "1e999999", False),
        ("decimal", "9999999999", True),
    ],
)
def test_a_decimal_fits_if_no_digit_of_it_is_lost(ddl, text, fits):
    assert decimal_fits(ddl, Decimal(text)) is fits
