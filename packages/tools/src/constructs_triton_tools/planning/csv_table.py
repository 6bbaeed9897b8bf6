"""Reads CSV files and reports every mistake in them, with row and column."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.untrusted.regular_files import read_regular

#: What a load test on this machine has instead of an instance type.
LOCAL = "local"
_SHOWN_ERRORS = 20
_MAX_BYTES = 16 << 20
_MOST_LINES = 20_000
_MOST_CELLS_OF_LINE = 100


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read.

    ``headings`` are the accepted headings; the first one is the column's name. ``parse`` takes the
    place of a cell, for messages, and its string; it raises ``InvalidValueError``. An optional
    column may be missing, and its cells may be empty.
    """

    headings: tuple[str, ...]
    parse: Callable[[str, str], Any]
    optional: bool = False

    @property
    def name(self) -> str:
        return self.headings[0]


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one row by column name; ``place`` is its file and row, for messages."""

    place: str
    cells: Mapping[str, Any]


def parse_text(place: str, text: str) -> str:
    """Return any string that fits on one line."""
    if not text.isprintable():
        # It is printed to terminals, where line breaks and escape sequences would have an effect.
        raise InvalidValueError(
            f"{place}: must be printable characters on one line, got {text!r}; rename it"
        )
    return text


def parse_flag(place: str, text: str) -> bool:
    """Return the value of ``true`` or ``false``, in any case."""
    if text.lower() not in ("true", "false"):
        raise InvalidValueError(f'{place}: must be true or false, got "{text}"; write one of them')
    return text.lower() == "true"


def parse_instance_type(place: str, text: str) -> str:
    """Return the name of a SageMaker instance type, known or not."""
    try:
        return InstanceType.of(text).name
    except InvalidValueError as error:
        raise InvalidValueError(f"{place}: {str(error).removeprefix('instance_type: ')}") from None


def parse_measured_type(place: str, text: str) -> str:
    """Return the name of an instance type, or ``local`` for a machine that is not in AWS."""
    return text if text == LOCAL else parse_instance_type(place, text)


def read_rows(
    path: str | PathLike[str], columns: Sequence[Column], *, most_lines: int = _MOST_LINES
) -> list[Row]:
    """Read the rows of a comma-separated file in UTF-8 whose first row contains the headings.

    Headings are compared without case, and with spaces as underscores. Other columns and empty
    lines are ignored.

    Raises:
        InvalidValueError: the file has more than 16 MiB, more than ``most_lines`` (default: 20,000)
            or more than 100 cells in a line on average, or it or a cell is not valid. The message
            has a line for every bad cell, with file, row (the headings are row 1, as in a
            spreadsheet), column and value.
    """
    records = _records(Path(path), most_lines)
    first = next(records, None)
    if first is None:
        raise InvalidValueError(f"{path}: is empty; start it with the headings {_wanted(columns)}")
    headings = [_normal(cell) for cell in first[1]]
    places = _find_columns(path, headings, columns)
    rows, errors = _parse_all(path, records, len(headings), places)
    raise_for(errors)
    if not rows:
        raise InvalidValueError(f"{path}: has no rows below its headings; add a row of values")
    return rows


def raise_for(errors: Sequence[str]) -> None:
    """Raise one ``InvalidValueError`` with all messages, if there are any."""
    if errors:
        more = [f"and {len(errors) - _SHOWN_ERRORS} more"] if len(errors) > _SHOWN_ERRORS else []
        raise InvalidValueError("\n".join([*errors[:_SHOWN_ERRORS], *more]))


def _records(path: Path, most_lines: int) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of the rows that are not empty."""
    text = _read(path)
    if text.count("\n") > most_lines or text.count(",") > most_lines * _MOST_CELLS_OF_LINE:
        raise InvalidValueError(
            f"{path}: must have at most {most_lines} lines of {_MOST_CELLS_OF_LINE} cells; split it"
        )
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    number = 0
    try:
        for number, cells in enumerate(reader, start=1):
            if any(cell.strip() for cell in cells):
                yield number, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise InvalidValueError(
            f"{path}: row {number + 1}: is not valid CSV ({error}); "
            "close its quotes, or export the file again"
        ) from None


def _read(path: Path) -> str:
    try:
        return read_regular(path, _MAX_BYTES).decode(
            "utf-8-sig"
        )  # spreadsheets write a byte order mark first
    except OSError as error:
        raise InvalidValueError(
            f"{path}: cannot be read ({error.strerror}); give the path of a readable CSV file"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidValueError(
            f"{path}: must be UTF-8, got byte 0x{error.object[error.start]:02x} at offset "
            f"{error.start}; export it as CSV in UTF-8"
        ) from None


def _normal(heading: str) -> str:
    return "_".join(heading.lower().split())


def _wanted(columns: Iterable[Column]) -> str:
    return ",".join(column.name for column in columns if not column.optional)


def _find_columns(
    path: str | PathLike[str], headings: list[str], columns: Sequence[Column]
) -> dict[int, Column]:
    """The position of each column in a row."""
    places = {}
    for column in columns:
        found = [index for index, heading in enumerate(headings) if heading in column.headings]
        if len(found) > 1:
            names = " and ".join(f'"{headings[index]}"' for index in found)
            raise InvalidValueError(
                f'{path}: row 1: must have one column "{column.name}", '
                f"got {names}; rename all but one"
            )
        if not found and not column.optional:
            raise _absent(path, headings, column)
        places.update(dict.fromkeys(found, column))
    return places


def _absent(path: str | PathLike[str], headings: list[str], column: Column) -> InvalidValueError:
    got = ", ".join(f'"{heading[:40]}"' for heading in headings[:20])
    if len(headings) == 1 and any(mark in got for mark in ";\t"):
        fix = "separate the columns with commas"
    else:
        accepted = " or ".join(f'"{heading}"' for heading in column.headings)
        fix = f"name the column {accepted}"
    return InvalidValueError(f'{path}: row 1: has no column "{column.name}", got {got}; {fix}')


def _parse_all(
    path: str | PathLike[str],
    records: Iterable[tuple[int, list[str]]],
    width: int,
    places: Mapping[int, Column],
) -> tuple[list[Row], list[str]]:
    rows = []
    errors = []
    for number, cells in records:
        place = f"{path}: row {number}"
        if len(cells) != width:
            # Cells are not assigned by guessing: a thousands separator without quotes shifts those
            # after it.
            errors.append(
                f"{place}: must have {width} cells like the headings, got {len(cells)}; "
                "correct its commas, and put quotes around a value that contains a comma"
            )
            continue
        values, found = _parse_cells(place, cells, places)
        rows.append(Row(place, values))
        errors += found
    return rows, errors


def _parse_cells(
    place: str, cells: Sequence[str], places: Mapping[int, Column]
) -> tuple[dict[str, Any], list[str]]:
    values = {}
    errors = []
    for index, column in places.items():
        text = cells[index]
        where = f'{place}, column "{column.name}"'
        if not text:
            if not column.optional:
                errors.append(f"{where}: must not be empty; fill it in, or remove the row")
            continue
        try:
            values[column.name] = column.parse(where, text)
        except InvalidValueError as error:
            errors.append(str(error))
    return values, errors
