"""Options of models: ``--input NAME:DATATYPE:DIMS``,
``--shape NAME=DIMS`` and ``--called-models``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import NamedTuple

from constructs_triton_core.datatypes import DATATYPES, by_data_type, by_datatype
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import pair_argument

__all__ = ["add_called_models", "called_models", "read_shapes"]

_SIZES = re.compile(r"-?\d+(,-?\d+)*")


class TensorOption(NamedTuple):
    """A tensor: its name, its data type as in ``config.pbtxt``, and its dims."""

    name: str
    data_type: str
    dims: tuple[int, ...]


def read_tensor(option: str, text: str) -> TensorOption:
    """Read ``NAME:DATATYPE:DIMS``, such as ``INPUT__0:FP32:3,224,224``; the name may contain
    colons.

    Raises:
        InvalidValueError: the text has another form, or the datatype is unknown.
    """
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0] or not _SIZES.fullmatch(parts[2].replace(" ", "")):
        raise InvalidValueError(
            f"{option}: must have the form NAME:DATATYPE:DIMS, got {text!r}; write for example "
            f"{option} INPUT__0:FP32:3,224,224"
        )
    name, datatype, dims = parts
    known = by_datatype(datatype.upper()) or by_data_type(datatype.upper())
    known = known or by_data_type(f"TYPE_{datatype.upper()}")
    if known is None:
        names = ", ".join(row.datatype for row in DATATYPES)
        raise InvalidValueError(
            f"{option} {name}: the datatype is unknown, got {datatype!r}; use one of {names}"
        )
    return TensorOption(name, known.data_type, _sizes(dims))


def read_shapes(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Read several ``NAME=DIMS``, such as ``image=3,224,224``.

    Raises:
        InvalidValueError: a text has another form.
    """
    return dict(_read_shape(text) for text in texts)


def _read_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, dims = text.rpartition("=")
    if not name or not _SIZES.fullmatch(dims.replace(" ", "")):
        raise InvalidValueError(
            f"--shape: must have the form NAME=DIMS, got {text!r}; "
            "write for example --shape image=3,224,224"
        )
    return name, _sizes(dims)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(","))


def add_called_models(parser: argparse._ActionsContainer) -> None:
    """Declare the option for models that are called by names that the source does not contain."""
    parser.add_argument(
        "--called-models",
        action="append",
        type=pair_argument("CALLER=MODEL,...", "pipeline=scale,score"),
        metavar="CALLER=MODEL,...",
        help=(
            "models that a Python model calls and whose names its source does not contain as "
            "strings; as calls in triton-models.toml, which needs no option; may be repeated"
        ),
    )


def called_models(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Return the models of the option ``--called-models`` by their caller."""
    found: dict[str, list[str]] = {}
    for caller, models in arguments.called_models or ():
        found.setdefault(caller, []).extend(filter(None, map(str.strip, models.split(","))))
    return found
