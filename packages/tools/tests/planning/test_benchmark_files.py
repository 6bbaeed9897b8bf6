"""Benchmarks and prices from CSV files, and the errors for invalid ones."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import Measurement, read_measurements, read_prices
from constructs_triton_tools.planning.prices import given_prices
from constructs_triton_tools.planning.quantities import read_decimal

HEADINGS = "configuration,instance_type,invocations_per_minute,latency_ms,price_per_hour"
GOOD = "a,ml.g5.xlarge,600,50,1.41"


def error_of(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InvalidValueError) as error:
        read_measurements(path)
    return str(error.value).replace(str(path), "FILE")


def test_file_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    """A byte order mark, CRLF, spaces, empty lines, quotes,
    other columns and capitals are accepted.
    """
    path = tmp_path / "benchmark.csv"
    path.write_bytes(
        b"\xef\xbb\xbfModel Latency ms,Config,notes,Instance Type,Invocations per minute\r\n"
        b'\r\n 49.5 ,"a, tuned",,ml.g5.xlarge,600\r\n,,,,\r\n'
    )
    assert read_measurements(path) == [
        Measurement(
            configuration="a, tuned",
            instance_type="ml.g5.xlarge",
            invocations_per_minute=600,
            latency_ms=Decimal("49.5"),
        )
    ]


CELLS = [
    (
        "a,ml.g5.xlarge,600,fast,1",
        'FILE: row 3, column "latency_ms": must be a number, got "fast"; write digits',
    ),
    (
        'a,ml.g5.xlarge,"1,335",50,1',
        'column "invocations_per_minute": must be a number, got "1,335"',
    ),
    ("a,ml.g5.xlarge,1335,499,$0.94", 'column "price_per_hour": must be a number, got "$0.94"'),
    ("a,ml.g5.xlarge,1e3,499,1", 'column "invocations_per_minute": must be a number, got "1e3"'),
    ("a,ml.g5.xlarge,nan,499,1", 'column "invocations_per_minute": must be a number, got "nan"'),
    ("a,ml.g5.xlarge,-5,499,1", 'column "invocations_per_minute": must be from 0.000001 to'),
    ("a,ml.g5.xlarge,600,,1", 'column "latency_ms": must not be empty; fill it in'),
    (
        "a,g5.xlarge,600,50,1",
        'column "instance_type": must be the name of a SageMaker instance type',
    ),
    ("a,ml.g5.xlarge,600,50", "FILE: row 3: must have 5 cells like the headings, got 4"),
    (
        "a,ml.g5.xlarge,1,335,50,1",
        "FILE: row 3: must have 5 cells like the headings, got 6; correct its commas",
    ),
    (
        "\x1b[31ma,ml.g5.xlarge,600,50,1",
        'column "configuration": must be printable characters on one line',
    ),
    ('"a"b,ml.g5.xlarge,600,50,1', "FILE: row 3: is not valid CSV ("),
]
FILES = [
    ("", "FILE: is empty; start it with the headings configuration,instance_type,"),
    (HEADINGS, "FILE: has no rows below its headings"),
    (
        "configuration,latency_ms\na,1",
        'row 1: has no column "instance_type", got "configuration", "latency_ms"',
    ),
    (HEADINGS.replace(",", ";"), "separate the columns with commas"),
    ("configuration", 'got "configuration"; name the column "instance_type"'),
    ("configuration,a;b", 'got "configuration", "a;b"; name the column "instance_type"'),
    (f'{HEADINGS}\n{GOOD}\n\n"a', "FILE: row 4: is not valid CSV ("),
    ('"a', "FILE: row 1: is not valid CSV ("),
    (
        f"config,{HEADINGS}\n",
        'must have one column "configuration", got "config" and "configuration"',
    ),
    (b"\xff\xfea\x00", "FILE: must be UTF-8, got byte 0xff at offset 0"),
    (
        f"{HEADINGS}\n{'x' * 200_000},ml.g5.xlarge,600,50,1",
        "FILE: row 2: is not valid CSV (field larger than",
    ),
]


@pytest.mark.parametrize(
    ("content", "message"),
    [*((f"{HEADINGS}\n{GOOD}\n{row}\n{GOOD}\n", message) for row, message in CELLS), *FILES],
)
def test_invalid_file_is_reported(tmp_path: Path, content: str | bytes, message: str) -> None:
    """The message has file, row, column, value and fix,
    or what a file contains that is no table.
    """
    assert message in error_of(tmp_path / "b.csv", content)


def test_all_invalid_cells_are_reported_at_once(tmp_path: Path) -> None:
    """A line for each, in the order of the file; after twenty lines only their number."""
    lines = error_of(
        tmp_path / "b.csv", f"{HEADINGS}\na,x,y,50,1\n\n{GOOD}\na,ml.g5.xlarge,600,z,1\n"
    ).split("\n")
    assert [line.split(": must")[0] for line in lines] == [
        'FILE: row 2, column "instance_type"',
        'FILE: row 2, column "invocations_per_minute"',
        'FILE: row 5, column "latency_ms"',
    ]
    many = error_of(tmp_path / "b.csv", "\n".join([HEADINGS, *["a"] * 25]))
    assert many.endswith("\nand 5 more")
    assert many.count("\n") == 20
    twenty = error_of(tmp_path / "b.csv", "\n".join([HEADINGS, *["a"] * 20]))
    assert twenty.count("\n") == 19
    assert "more" not in twenty


def test_price_may_be_missing_from_a_row(tmp_path: Path) -> None:
    """An empty price is no price: neither zero nor an error. A file that is missing is an error."""
    path = tmp_path / "b.csv"
    path.write_text(f"{HEADINGS}\n{GOOD}\nb,ml.g5.xlarge,600,50,\n")
    assert [row.price_per_hour for row in read_measurements(path)] == [Decimal("1.41"), None]
    path.unlink()
    with pytest.raises(
        InvalidValueError, match=r"b\.csv: cannot be read \(No such file or directory\)"
    ):
        read_measurements(path)


def test_prices_are_read_exactly(tmp_path: Path) -> None:
    """A price is the decimal in the file, and nothing guesses which of two prices applies."""
    path = tmp_path / "prices.csv"
    path.write_text("instance_type,price\nml.g4dn.xlarge,0.7364\nml.g5.xlarge,1.41\n")
    assert read_prices(path) == {
        "ml.g4dn.xlarge": Decimal("0.7364"),
        "ml.g5.xlarge": Decimal("1.41"),
    }
    path.write_text("instance_type,price_per_hour\nml.g5.xlarge,1.41\nml.g5.xlarge,1.5\n")
    with pytest.raises(
        InvalidValueError, match=r'row 3, column "instance_type": must not repeat, got "ml\.g5'
    ):
        read_prices(path)


def test_prices_have_one_currency(tmp_path: Path) -> None:
    """The currency of a file follows its costs, costs of several currencies cannot be compared, and
    prices of ``--price`` are in the currency of the file.
    """
    path = tmp_path / "prices.csv"
    path.write_text("instance_type,price,currency\nml.g4dn.xlarge,1,EUR\nml.g5.xlarge,2,EUR\n")
    assert given_prices([("ml.g5.xlarge", Decimal(3))], str(path)).unit == " EUR"
    assert given_prices([("ml.g5.xlarge", Decimal(3))], None).unit == ""
    path.write_text("instance_type,price,currency\nml.g4dn.xlarge,1,EUR\nml.g5.xlarge,2,USD\n")
    with pytest.raises(
        InvalidValueError, match=r'column "currency": must be the same .* got "EUR" and "USD"'
    ):
        read_prices(path)


@pytest.mark.parametrize("text", ["1335", "0.94", "1.", ".5", "-5", "0" * 40])
def test_plain_numbers_are_read(text: str) -> None:
    """Digits with at most one decimal point, up to forty characters."""
    assert read_decimal("x", text) == Decimal(text)


@pytest.mark.parametrize("text", ["", ".", "1e3", "1,335", "+5", " 5", "5 ms", "\u0665", "0" * 41])
def test_other_numbers_are_errors(text: str) -> None:
    """Exponents, separators, units and digits of other scripts can be misread;
    a long one is cut off.
    """
    with pytest.raises(InvalidValueError, match="x: must be a number, got ") as error:
        read_decimal("x", text)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    "content",
    [
        "\n" * 20_001,
        f"{HEADINGS}\n" + ",".join(["x"] * 2_000_001),
        f"{HEADINGS}\n{'x' * (16 << 20)}",
    ],
    ids=["lines", "cells", "bytes"],
)
def test_large_file_is_refused(tmp_path: Path, content: str) -> None:
    """A file has at most 16 MiB, 20,000 lines, and 100 cells in a line on average."""
    message = error_of(tmp_path / "b.csv", content)
    assert "20000 lines of 100 cells; split it" in message or "larger than 16777216" in message
