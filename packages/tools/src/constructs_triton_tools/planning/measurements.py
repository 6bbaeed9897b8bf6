"""Results of a load test: the throughput of one instance, and the latency at that throughput."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_tools.planning.csv_table import (
    LOCAL,
    Column,
    parse_flag,
    parse_measured_type,
    parse_text,
    read_rows,
)
from constructs_triton_tools.planning.quantities import Number, exact, read_positive

_COLUMNS = (
    Column(("configuration", "config"), parse_text),
    Column(("instance_type",), parse_measured_type),
    Column(
        (
            "invocations_per_minute",
            "invocations_per_minute_per_instance",
            "invocations_per_min_per_instance",
        ),
        read_positive,
    ),
    Column(("latency_ms", "model_latency_ms"), read_positive),
    Column(("price_per_hour",), read_positive, optional=True),
    Column(("instance_type_source",), parse_text, optional=True),
    Column(("is_lower_bound",), parse_flag, optional=True),
    Column(("concurrency",), read_positive, optional=True),
    Column(("first_token_ms",), read_positive, optional=True),
    Column(("between_tokens_ms",), read_positive, optional=True),
    Column(("tokens_per_second",), read_positive, optional=True),
    Column(("token_unit",), parse_text, optional=True),
)

_OPTIONAL_NUMBERS = (
    "price_per_hour",
    "concurrency",
    "first_token_ms",
    "between_tokens_ms",
    "tokens_per_second",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One run of a load test.

    ``configuration``
        Any name for what was measured, for example the model configuration.
    ``instance_type``
        SageMaker's name of the instance type, such as ``"ml.g4dn.xlarge"``, or ``"local"`` for a
        machine that is not in AWS.
    ``invocations_per_minute``
        The maximum throughput of **one** instance, in invocations per minute.
    ``latency_ms``
        The latency at that throughput, in milliseconds. Use the statistic that your limit is about:
        average, median or p99.
    ``price_per_hour``
        The price of one instance, in any currency. Used where no price table has the instance type.
    ``instance_type_source``
        Where the instance type comes from. ``"given"`` means that a person named it for a load
        test, so the figures may be those of another machine. Default: empty.
    ``is_lower_bound``
        Whether the load test ended before it found the highest throughput, so an instance may serve
        more.
        Default: ``False``.
    ``concurrency``
        For streams: how many of them **one** instance had open at a time. Default: not measured.
    ``first_token_ms``
        For streams: the time to the first token, in milliseconds. Default: not measured.
    ``between_tokens_ms``
        For streams: the mean time between the tokens of a stream, in milliseconds. Default: not
        measured.
    ``tokens_per_second``
        For streams: the tokens per second of **one** instance. Default: not measured.
    ``token_unit``
        What was counted as tokens: ``"tokens"``, or ``"events"`` where responses do not have their
        number of tokens. Default: empty.

    A configuration that was measured at several loads gives several measurements.

    Raises:
        InvalidValueError: a number is not positive, or ``instance_type`` is not the name of an
            instance type.
    """

    configuration: str
    instance_type: str
    invocations_per_minute: Number
    latency_ms: Number
    price_per_hour: Number | None = None
    instance_type_source: str = ""
    is_lower_bound: bool = False
    concurrency: Number | None = None
    first_token_ms: Number | None = None
    between_tokens_ms: Number | None = None
    tokens_per_second: Number | None = None
    token_unit: str = ""

    def __post_init__(self) -> None:
        if not self.configuration.strip():
            raise InvalidValueError(
                f'configuration: must not be empty, got "{self.configuration}"; '
                "name the configuration"
            )
        if self.instance_type != LOCAL:
            InstanceType.of(self.instance_type)
        exact("invocations_per_minute", self.invocations_per_minute)
        exact("latency_ms", self.latency_ms)
        for name in _OPTIONAL_NUMBERS:
            if (value := getattr(self, name)) is not None:
                exact(name, value)

    def __str__(self) -> str:
        return f"{self.configuration} on {self.instance_type}"


def read_measurements(path: str | PathLike[str]) -> list[Measurement]:
    """Read the measurements in a CSV file.

    Columns: ``configuration`` (or ``config``), ``instance_type``, ``invocations_per_minute`` (or
    ``invocations_per_minute_per_instance``, ``invocations_per_min_per_instance``), ``latency_ms``
    (or ``model_latency_ms``) and optionally ``price_per_hour``, ``instance_type_source``,
    ``is_lower_bound`` (``true`` or ``false``) and the figures of streams. Other columns are
    ignored. Numbers become ``Decimal``.

    Args:
        path: Path of the CSV file.

    Raises:
        InvalidValueError: a column is missing or a value is not valid. The message lists every bad
            cell.
    """
    return [Measurement(**row.cells) for row in read_rows(path, _COLUMNS)]
