"""Asserts how a stack scales its endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from constructs_triton.testing.argument_types import check_bounds, check_name, check_number
from constructs_triton.testing.differences import differing, listed
from constructs_triton.testing.synthesized_stack import (
    Source,
    SynthesizedSource,
    synthesized_source,
)
from constructs_triton_core.cloud_assembly.scaling import DeclaredPolicy, scaling_policies
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean

#: The metrics that are the sum over all GPUs or vCPUs of an instance: up to 400 percent with four.
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
    policies = _policies(source)
    if not on:
        raise InvalidValueError(_no_metric(source.name, policies))

    chosen = policies
    if of is not None:
        chosen = [policy for policy in policies if policy.is_of(of)]
    candidates = [policy for policy in chosen if on in policy.metrics]
    if not candidates:
        raise AssertionError(_no_policy(source.name, on, of, policies, chosen))

    # A variant can have several policies on one metric: the test means the most similar one.
    nearest = min(candidates, key=lambda policy: len(policy.differences(target, between)))
    differences = nearest.differences(target, between)
    if differences:
        lines = "\n".join(f"  {difference}" for difference in differences)
        raise AssertionError(
            f'{source.name}: the policy on "{on}" of {nearest.scaled} differs\n{lines}'
        )


def _policies(source: SynthesizedSource) -> list[_Policy]:
    """Return the scaling policies of all stacks, nested ones included."""
    policies = []
    for stack in source.all_stacks():
        policies += [_Policy.of(declared) for declared in scaling_policies(stack)]
    return policies


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
        tracking = policy.tracking or {}
        limits = policy.target.properties
        return cls(
            scaled=policy.target.resource_id,
            metrics=frozenset([*_tracked(tracking), *_metric_names(policy.alarms)]),
            target=tracking.get("TargetValue"),
            between=(limits.get("MinCapacity"), limits.get("MaxCapacity")),
        )

    def is_of(self, name: str) -> bool:
        """Return whether this scales a variant or a component: by its name,
        or the id of its construct.
        """
        return self.scaled.rpartition("/")[2] in (name, f"{name}Component")

    def differences(self, target: float | None, between: tuple[int, int] | None) -> list[str]:
        """Return a sentence for each value that differs from the expected one.

        ``None`` is not compared.
        """
        sentences: list[str] = []
        if target is not None:
            for sentence in differing("target", target, self.target):
                sentences.append(sentence + self._hint(target))
        if between is not None:
            sentences += differing("between", between, self.between)
        return sentences

    def _hint(self, expected: float) -> str:
        """Explain a target that is a multiple of the percentage that the test expects."""
        unit = self._added_up()
        if unit is None or not self.target or not expected or self.target % expected:
            return ""
        count = int(self.target / expected)
        return (
            f"; SageMaker adds up {unit}, and {expected:g} "
            f"percent of each of {count} is {self.target:g}"
        )

    def _added_up(self) -> str | None:
        """Return the units whose utilization SageMaker adds up in one of the metrics."""
        for metric, unit in _ADDED_UP.items():
            if metric in self.metrics:
                return unit
        return None

    def __str__(self) -> str:
        smallest, largest = self.between
        value = "" if self.target is None else f" at {self.target:g}"
        # A predefined metric is also in the set with its long name, "SageMakerVariant…".
        short_names = [name for name in self.metrics if not name.startswith("SageMaker")]
        names = ", ".join(sorted(short_names))
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
            for member in value.values():
                yield from _metric_names(member)
        case list():
            for item in value:
                yield from _metric_names(item)


def _metrics_of(policies: Iterable[_Policy]) -> frozenset[str]:
    """Return the metrics that at least one of these policies scales on."""
    return frozenset().union(*(policy.metrics for policy in policies))


def _no_metric(stack: str, policies: list[_Policy]) -> str:
    names = _metrics_of(policies)
    shown = f"; its policies scale on {listed(names)}" if names else "; it has no scaling policy"
    return f'{stack}: assert_scales needs a metric{shown}; write for example on="GPUUtilization"'


def _no_policy(
    stack: str, on: str, of: str | None, policies: list[_Policy], chosen: list[_Policy]
) -> str:
    """Return the message for a stack without a policy on ``on``.

    ``policies`` are all of the stack, ``chosen`` those that scale ``of``.
    """
    if not policies:
        return (
            f"{stack}: has no scaling policy; "
            "call auto_scale_instance_count() of an endpoint's variant"
        )
    if not chosen:
        scaled = {policy.scaled.rpartition("/")[2] for policy in policies}
        return (
            f'{stack}: nothing called "{of}" is scaled; '
            f"{did_you_mean(of or '', scaled, listed(scaled))}"
        )
    hint = did_you_mean(on, _metrics_of(chosen), "its policies are")
    lines = "\n".join(f"  {policy}" for policy in chosen)
    return f'{stack}: no policy scales on "{on}"; {hint}\n{lines}'
