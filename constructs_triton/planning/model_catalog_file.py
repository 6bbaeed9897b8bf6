"""Reads the models of a multi-model endpoint with their sizes and load times from a CSV file."""

from __future__ import annotations

from os import PathLike

from constructs_triton.errors import InvalidValueError
from constructs_triton.planning.csv_table import Column, Row, parse_text, raise_for, read_rows
from constructs_triton.planning.model_cache import CachedModel
from constructs_triton.planning.quantities import read_positive

__all__ = ["read_models"]

_COLUMNS = (
    Column(("model",), parse_text),
    Column(("memory_mib",), read_positive),
    Column(("load_seconds",), read_positive),
    Column(("count",), read_positive, optional=True),
    Column(("requests_per_minute", "weight"), read_positive, optional=True),
    Column(("latency_ms",), read_positive, optional=True),
)
#: Far beyond what an endpoint is used for, and still simulated in seconds.
_MOST_MODELS = 20_000


def read_models(path: str | PathLike[str], *, zipf: float | None = None) -> list[CachedModel]:
    """Read the models of a file.

    Columns: ``model``, ``memory_mib``, ``load_seconds``, and optionally ``count`` (models like this one,
    default 1), ``requests_per_minute`` (of each, default 1) and ``latency_ms`` (if loaded, default 0).

    Args:
        path: Path of the CSV file.
        zipf: Exponent of Zipf's law: the model at place n gets 1/n**zipf of the requests of the first one.
            Default: the requests are those of the file.

    Raises:
        InvalidValueError: a value is not valid, or there are more than 20,000 models.
    """
    rows = read_rows(path, _COLUMNS)
    raise_for([text for row in rows for text in _errors(row)])
    models = [each for row in rows for each in _models(row)]
    if len(models) > _MOST_MODELS:
        raise InvalidValueError(
            f"{path}: must have at most {_MOST_MODELS:,} models, got {len(models):,}; split it"
        )
    if zipf is None:
        return models
    return [
        CachedModel(each.name, each.memory_mib, each.load_seconds, 1 / rank**zipf, each.latency_ms)
        for rank, each in enumerate(models, 1)
    ]


def _errors(row: Row) -> list[str]:
    count = row.cells.get("count")
    if count is not None and not (count == int(count) and count <= _MOST_MODELS):
        place = f'{row.place}, column "count"'
        return [f"{place}: must be a whole number up to {_MOST_MODELS:,}, got {count}; write how many models"]
    return []


def _models(row: Row) -> list[CachedModel]:
    cells = row.cells
    count = int(cells.get("count") or 1)
    names = [cells["model"]] if count == 1 else [f"{cells['model']}-{number + 1}" for number in range(count)]
    return [
        CachedModel(
            name,
            float(cells["memory_mib"]),
            float(cells["load_seconds"]),
            float(cells.get("requests_per_minute") or 1),
            float(cells.get("latency_ms") or 0),
        )
        for name in names
    ]
