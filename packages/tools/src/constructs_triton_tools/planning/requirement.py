"""The load that an endpoint must handle, and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning.quantities import Bounds, Number, exact

_SECONDS_PER_MINUTE = 60
_SAFETY_FACTOR = Bounds("0.000001", "1", "write 50 percent as 0.5")
_HEADROOM = Bounds("0", "1", "write 20 percent as 0.2, or raise the load")
_LOADS = ("requests_per_second", "concurrent_streams")
_LIMITS = ("latency_ms", "first_token_ms", "between_tokens_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The load that an endpoint must handle.

    ``requests_per_second``
        The peak load of the whole endpoint. Give it or ``concurrent_streams``.
    ``concurrent_streams``
        The most streams that the whole endpoint has open at a time. It needs measurements with
        ``concurrency``, by ``constructs-triton load-test --stream``.
    ``latency_ms``
        The maximum latency in milliseconds, inclusive. Default: no limit.
    ``first_token_ms``
        The maximum time to the first token of a stream, in milliseconds, inclusive. Default: no limit.
    ``between_tokens_ms``
        The maximum mean time between the tokens of a stream, in milliseconds, inclusive. Default: no limit.
    ``headroom``
        Extra capacity as a fraction of the load, from 0 to 1. With 0.2 the plan is for 1.2
        times the load. Default: 0.
    ``safety_factor``
        The fraction of its measured throughput at which auto scaling keeps an instance, above 0 and up to 1.
        Default: 0.5, which the SageMaker documentation recommends to start with ("Load testing your auto
        scaling configuration").
    ``min_capacity``
        The minimum number of instances. SageMaker spreads two or more over Availability Zones. Default: 1.

    Raises:
        InvalidValueError: a value is out of its range, or there is not exactly one load.
    """

    requests_per_second: Number | None = None
    concurrent_streams: Number | None = None
    latency_ms: Number | None = None
    first_token_ms: Number | None = None
    between_tokens_ms: Number | None = None
    headroom: Number = 0
    safety_factor: Number = 0.5
    min_capacity: int = 1

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
        """The name of the figure by which plans are compared, beside their cost: that of the first limit."""
        return next(iter(self.limits), _LIMITS[0])

    @property
    def load(self) -> Fraction:
        """The load to plan for, including ``headroom``: invocations per minute, or concurrent streams."""
        if self.requests_per_second is not None:
            load = Fraction(exact("requests_per_second", self.requests_per_second)) * _SECONDS_PER_MINUTE
        else:
            assert self.concurrent_streams is not None
            load = Fraction(exact("concurrent_streams", self.concurrent_streams))
        return load * (1 + Fraction(exact("headroom", self.headroom, _HEADROOM)))

    @property
    def target_fraction(self) -> Fraction:
        """``safety_factor``, exactly."""
        return Fraction(exact("safety_factor", self.safety_factor, _SAFETY_FACTOR))
