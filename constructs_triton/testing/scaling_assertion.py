"""Asserts how a stack scales its endpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from constructs_triton.testing.argument_types import check_bounds, check_name, check_number
from constructs_triton.testing.differences import differing, listed
from constructs_triton.testing.synthesized_stack import Source, synthesized_source
from constructs_triton_core.cloud_assembly.scaling import DeclaredPolicy, scaling_policies
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean

_ADDED_UP = {"GPUUtilization": "GPUs", "GPUMemoryUtilization": "GPUs", "CPUUtilization": "vCPUs"}


def assert_scales(
    stack: Source,
    *,
    on: str = "",
    target: float | None = None,
    between: tuple[int, int] | None = None,
    of: str | None = None,
) -> None:
    """Check that a scaling policy of the stack is as described. What is not given is not compared.

    Args:
        stack: a stack or an app, which is synthesized with its nested stacks, a construct of a
            stack, which stands for the stack, a ``Template`` of ``aws_cdk.assertions``, or the path
            of a template or a folder that ``cdk synth`` wrote.
        on: the metric, which is required: ``"GPUUtilization"``, ``"InvocationsPerInstance"``, or
            the name of another CloudWatch metric or of a predefined metric.
        target: the policy's ``TargetValue``. It is a number of requests per minute for
            ``InvocationsPerInstance``. For utilization it is the percentage of one GPU or vCPU
            times their number, because SageMaker adds them up: 240 for 60 percent of four GPUs.
        between: the smallest and the largest number of instances, or of copies of an inference
            component.
        of: the variant that is scaled, or the inference component, by its name or the id of its
            construct (default: any).

    Raises:
        AssertionError: no policy is as described. The message lists the differences of the nearest
            one.
        InvalidValueError: ``on`` is missing, an argument has the wrong type, the stack is in no
            app, or the template cannot be read.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    check_name("on", on, "InvocationsPerInstance")
    check_name("of", of, "AllTraffic")
    check_number("target", target, 60)
    check_bounds("between", between)
    source = synthesized_source(stack)
    policies = [
        _Policy.of(policy) for each in source.all_stacks() for policy in scaling_policies(each)
    ]
    if not on:
        raise InvalidValueError(_no_metric(source.name, policies))
    chosen = [each for each in policies if of is None or each.is_of(of)]
    candidates = [each for each in chosen if on in each.metrics]
    if not candidates:
        raise AssertionError(_no_policy(source.name, on, of, policies, chosen))
    nearest, differences = min(
        ((each, list(each.differences(target, between))) for each in candidates),
        key=lambda found: len(found[1]),
    )
    if differences:
        lines = "\n".join(f"  {each}" for each in differences)
        raise AssertionError(
            f'{source.name}: the policy on "{on}" of {nearest.scaled} differs\n{lines}'
        )


@dataclass(frozen=True)
class _Policy:
    """A scaling policy. ``scaled`` is a resource ID such as
    ``endpoint/digits/variant/AllTraffic``.
    """

    scaled: str
    metrics: frozenset[str]
    target: float | None
    between: tuple[object, object]

    @classmethod
    def of(cls, policy: DeclaredPolicy) -> _Policy:
        limits = policy.target.properties
        return cls(
            policy.target.resource_id,
            frozenset([*_tracked(policy.tracking or {}), *_metric_names(policy.alarms)]),
            (policy.tracking or {}).get("TargetValue"),
            (limits.get("MinCapacity"), limits.get("MaxCapacity")),
        )

    def is_of(self, name: str) -> bool:
        """Return whether this scales a variant or a component: by its name,
        or the id of its construct.
        """
        return self.scaled.rpartition("/")[2] in (name, f"{name}Component")

    def differences(self, target: float | None, between: tuple[int, int] | None) -> Iterator[str]:
        if target is not None:
            yield from (
                each + self._hint(target) for each in differing("target", target, self.target)
            )
        if between is not None:
            yield from differing("between", between, self.between)

    def _hint(self, expected: float) -> str:
        """Explain a target that is a multiple of the percentage that the test expects."""
        unit = next((unit for metric, unit in _ADDED_UP.items() if metric in self.metrics), None)
        if unit is None or not self.target or not expected or self.target % expected:
            return ""
        count = int(self.target / expected)
        return (
            f"; SageMaker adds up {unit}, and {expected:g} "
            f"percent of each of {count} is {self.target:g}"
        )

    def __str__(self) -> str:
        smallest, largest = self.between
        value = "" if self.target is None else f" at {self.target:g}"
        names = ", ".join(sorted(name for name in self.metrics if not name.startswith("SageMaker")))
        return f"{self.scaled}: {names}{value}, between {smallest} and {largest}"


def _tracked(tracking: Mapping[str, Any]) -> Iterator[str]:
    """Yield the metrics of a target tracking policy;
    a predefined one has a short and a long name.
    """
    for key, specification in tracking.items():
        if not key.endswith("MetricSpecification"):
            continue
        yield from _metric_names(specification)
        predefined = specification.get("PredefinedMetricType", "")
        for prefix in ("", "SageMakerVariant", "SageMakerInferenceComponent"):
            if predefined.startswith(prefix) and predefined:
                yield predefined.removeprefix(prefix)


def _metric_names(value: Any) -> Iterator[str]:
    """Yield every ``MetricName``, also those of expressions."""
    match value:
        case {"MetricName": str(name)}:
            yield name
        case dict():
            for each in value.values():
                yield from _metric_names(each)
        case list():
            for each in value:
                yield from _metric_names(each)


def _no_metric(stack: str, policies: list[_Policy]) -> str:
    names = {metric for each in policies for metric in each.metrics}
    shown = f"; its policies scale on {listed(names)}" if names else "; it has no scaling policy"
    return f'{stack}: assert_scales needs a metric{shown}; write for example on="GPUUtilization"'


def _no_policy(
    stack: str, on: str, of: str | None, policies: list[_Policy], chosen: list[_Policy]
) -> str:
    if not policies:
        return (
            f"{stack}: has no scaling policy; "
            "call auto_scale_instance_count() of an endpoint's variant"
        )
    if not chosen:
        scaled = {each.scaled.rpartition("/")[2] for each in policies}
        return (
            f'{stack}: nothing called "{of}" is scaled; '
            f"{did_you_mean(of or '', scaled, listed(scaled))}"
        )
    names = {metric for each in chosen for metric in each.metrics}
    hint = did_you_mean(on, names, "its policies are")
    lines = "\n".join(f"  {each}" for each in chosen)
    return f'{stack}: no policy scales on "{on}"; {hint}\n{lines}'
