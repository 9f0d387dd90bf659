"""What declared types can hold."""

from decimal import Decimal

import pytest

from pystorm_source.types.arrow import field_type
from pystorm_source.types.families import exact_decimal, family_of, integer_bounds


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
    type = field_type(ddl, "field 'price'")
    assert (exact_decimal(type.precision, type.scale)(Decimal(text)) is not None) is fits


@pytest.mark.parametrize(
    ("ddl", "family"),
    [
        ("integer", "integer"),
        ("BYTE not null", "integer"),
        ("varchar(10)", "string"),
        ("numeric(5,1) not null", "decimal"),
        ("real", "float"),
        ("timestamp_ltz", "timestamp"),
        ("timestamp_ntz", "timestamp_ntz"),
        ("array<int>", None),
        ("void", None),
    ],
)
def test_a_family_is_that_of_the_type_whatever_stands_around_its_name(ddl, family):
    assert family_of(field_type(ddl, "field 'f'")) == family


def test_integers_have_the_bounds_of_their_bits():
    assert integer_bounds(field_type("short not null", "field 'n'")) == (-32768, 32767)
