"""The load that an endpoint must handle, and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.declared_fields import shows_options
from constructs_triton_tools.planning.quantities import Bounds, Number, exact

_SECONDS_PER_MINUTE = 60
_SAFETY_FACTOR = Bounds("0.000001", "1", "write 50 percent as 0.5")
_HEADROOM = Bounds("0", "1", "write 20 percent as 0.2, or raise the load")
_LOADS = ("requests_per_second", "concurrent_streams")
_LIMITS = ("latency_ms", "first_token_ms", "between_tokens_ms")


@shows_options
@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The load that an endpoint must handle. Give ``requests_per_second`` or
    ``concurrent_streams``.

    Raises:
        InvalidValueError: a value is out of its range, or there is not exactly one load.
    """

    requests_per_second: Annotated[
        Number | None, Value("peak load of the whole endpoint in requests per second", metavar="N")
    ] = None
    concurrent_streams: Annotated[
        Number | None,
        Value(
            "most streams that the whole endpoint has open at a time; needs measurements by "
            "`load-test --stream --concurrency`",
            metavar="N",
        ),
    ] = None
    latency_ms: Annotated[
        Number | None,
        Value("maximum latency in milliseconds, inclusive", default_text="no limit", metavar="MS"),
    ] = None
    first_token_ms: Annotated[
        Number | None,
        Value(
            "maximum time to the first token of a stream in milliseconds, inclusive",
            default_text="no limit",
            metavar="MS",
        ),
    ] = None
    between_tokens_ms: Annotated[
        Number | None,
        Value(
            "maximum mean time between the tokens of a stream in milliseconds, inclusive",
            default_text="no limit",
            metavar="MS",
        ),
    ] = None
    headroom: Annotated[
        Number,
        Value(
            "extra capacity as a fraction of the load, from 0 to 1: "
            "0.2 plans for 1.2 times the load",
            metavar="FRACTION",
        ),
    ] = 0
    safety_factor: Annotated[
        Number,
        Value(
            "fraction of its measured throughput at which scaling keeps an instance, above 0 and "
            "up to 1; the SageMaker documentation recommends to start with 0.5",
            metavar="FRACTION",
        ),
    ] = 0.5
    min_capacity: Annotated[
        int,
        Value(
            "minimum number of instances; SageMaker spreads two or more over Availability Zones",
            metavar="N",
        ),
    ] = 1

    def __post_init__(self) -> None:
        given = [name for name in _LOADS if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidValueError(
                "requests_per_second: must be given, or concurrent_streams, "
                f"got {' and '.join(given) or 'none'}; give one of them"
            )
        for name in (*given, *self.limits):
            exact(name, getattr(self, name))
        exact("headroom", self.headroom, _HEADROOM)
        exact("safety_factor", self.safety_factor, _SAFETY_FACTOR)
        if not isinstance(self.min_capacity, int) or self.min_capacity < 1:
            raise InvalidValueError(
                f"min_capacity: must be a whole number of at least 1, got {self.min_capacity}; "
                "use 1, or 2 for two Availability Zones"
            )

    @property
    def limits(self) -> dict[str, Number]:
        """The limits in milliseconds, by the name of the measured figure."""
        values = {name: getattr(self, name) for name in _LIMITS}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def compared(self) -> str:
        """The name of the figure by which plans are compared, beside their cost:
        that of the first limit.
        """
        return next(iter(self.limits), _LIMITS[0])

    @property
    def load(self) -> Fraction:
        """The load to plan for, including ``headroom``: invocations per minute,
        or concurrent streams.
        """
        if self.requests_per_second is not None:
            load = (
                Fraction(exact("requests_per_second", self.requests_per_second))
                * _SECONDS_PER_MINUTE
            )
        else:
            assert self.concurrent_streams is not None
            load = Fraction(exact("concurrent_streams", self.concurrent_streams))
        return load * (1 + Fraction(exact("headroom", self.headroom, _HEADROOM)))

    @property
    def target_fraction(self) -> Fraction:
        """``safety_factor``, exactly."""
        return Fraction(exact("safety_factor", self.safety_factor, _SAFETY_FACTOR))
