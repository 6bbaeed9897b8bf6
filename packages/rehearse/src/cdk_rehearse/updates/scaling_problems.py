"""Scaling that cannot act after an update, and endpoints whose variants get no requests.

Only what the update causes is a problem. Scaling of other services is not simulated.

Sources: SageMaker developer guide, "Auto scaling policy overview" (step scaling is needed to scale
out from zero) and "Scale an endpoint to zero instances"; SageMaker API reference,
``ProductionVariant`` (the share of a variant is its weight divided by the sum of all weights).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from constructs_triton_core.cloud_assembly.unknown_values import contains_unknown
from constructs_triton_core.facts.scaling_metrics import METRICS_OF_INSTANCES

from ..providers.provider import Deployed
from .codes import CODES
from .recording import State
from .report import Problem
from .trial import Outcome

_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
_CONFIG = "AWS::SageMaker::EndpointConfig"
_ENDPOINT = "AWS::SageMaker::Endpoint"
_CODE = "rehearse-scaling-cannot-act"
_WEIGHTS_CODE = "rehearse-all-weights-zero"
_NAMESPACES = ("AWS/SageMaker", "/aws/sagemaker/Endpoints", "/aws/sagemaker/InferenceComponents")
#: The metrics that have a value without instances or copies, on which a policy can start the first.
#: Source: SageMaker developer guide, "Autoscale an asynchronous endpoint" and "Scale an endpoint to
#: zero instances".
_METRICS_WITHOUT_INSTANCES = (
    "ApproximateBacklogSize",
    "ApproximateBacklogSizePerInstance",
    "HasBacklogWithoutCapacity",
    "NoCapacityInvocationFailures",
)
_KEY = ("ResourceId", "ScalableDimension", "ServiceNamespace")


@dataclass(frozen=True)
class _Scaling:
    """A scalable target with the policies that the stacks have for it."""

    target: Mapping[str, Any]
    policies: tuple[Mapping[str, Any], ...]

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """Its minimum and its maximum; ``None`` if not known."""
        return _number(self.target.get("MinCapacity")), _number(self.target.get("MaxCapacity"))

    @property
    def schedules(self) -> list[Mapping[str, Any]]:
        """The new bounds of each schedule."""
        actions = self.target.get("ScheduledActions") or ()
        return [action.get("ScalableTargetAction") or {} for action in actions]

    @property
    def unit(self) -> str:
        """What it counts."""
        is_of_copies = str(self.target["ResourceId"]).startswith("inference-component/")
        return "copies" if is_of_copies else "instances"


def scaling_problems(outcome: Outcome) -> Iterator[Problem]:
    """Yield a warning for each target and each configuration that was right or absent before."""
    known = {(problem.code, problem.path, problem.message) for problem in _problems(outcome.before)}
    for problem in _problems(outcome.after):
        if (problem.code, problem.path, problem.message) not in known:
            yield problem
    yield from _without_traffic(outcome)


def scaling_unknowns(outcome: Outcome) -> Iterator[str]:
    """Yield what is not known of the way from zero: the metrics of which no source says it."""
    for logical_id, scaling in _scalings(outcome.after):
        if not _can_be_zero(scaling):
            continue
        starts = [_starts(policy) for policy in scaling.policies]
        if None in starts and True not in starts:
            yield f"whether a policy of {logical_id} starts the first one from 0 {scaling.unit}"


def _problems(state: State) -> Iterator[Problem]:
    for logical_id, scaling in _scalings(state):
        yield from _without_policy(logical_id, scaling)
        yield from _without_way_back(logical_id, scaling)


def _scalings(state: State) -> Iterator[tuple[str, _Scaling]]:
    """The scalable targets by logical ID; none if a policy may belong to any of them."""
    resources = state.deployed.values()
    policies = [resource for resource in resources if resource.request.type == _POLICY]
    if any(_target_of(policy) is None for policy in policies):
        return

    for (_, logical_id), target in state.deployed.items():
        # Targets of other services are not simulated.
        if target.request.type != _TARGET or not target.physical.is_simulated:
            continue
        key = tuple(str(target.properties.get(name)) for name in _KEY)
        own = tuple(policy.properties for policy in policies if _target_of(policy) == key)
        yield logical_id, _Scaling(target.properties, own)


def _target_of(policy: Deployed) -> tuple[str, ...] | None:
    """Resource, dimension and service of a policy's target; ``None`` if not known."""
    properties = policy.properties
    joined = properties.get("ScalingTargetId", "")
    given = joined or [properties.get(name) for name in _KEY]
    if contains_unknown(given):
        return None
    parts = str(joined).split("|") if joined else [str(part) for part in given]
    return tuple(parts) if len(parts) == len(_KEY) else None


def _without_policy(logical_id: str, scaling: _Scaling) -> Iterator[Problem]:
    """Yield a warning for a range of capacity that nothing uses."""
    minimum, maximum = scaling.bounds
    is_range = minimum is not None and maximum is not None and minimum < maximum
    if is_range and not scaling.policies and not scaling.schedules:
        yield _warning(
            _CODE,
            logical_id,
            f"no policy and no schedule changes the number of {scaling.unit} within the bounds",
            "add a scaling policy, or acknowledge this if a policy outside of the stacks does it",
        )


def _without_way_back(logical_id: str, scaling: _Scaling) -> Iterator[Problem]:
    """Yield a warning for a target that scales to zero, and that nothing raises again."""
    schedules = scaling.schedules
    is_started = any(_may_be_above_zero(bounds, "MinCapacity") for bounds in schedules)
    is_raised = is_started or any(_may_be_above_zero(bounds, "MaxCapacity") for bounds in schedules)
    if not is_raised and any(_number(bounds.get("MaxCapacity")) == 0 for bounds in schedules):
        yield _warning(
            _CODE,
            logical_id,
            f"a schedule sets the maximum to 0 {scaling.unit}, and no schedule raises it again",
            "add a schedule that raises the maximum, or acknowledge this if you raise it by hand",
        )
        return

    if not _can_be_zero(scaling) or not scaling.policies:
        return
    if all(_starts(policy) is False for policy in scaling.policies):
        yield _warning(
            _CODE,
            logical_id,
            f"with 0 {scaling.unit} the metrics of its policies have no value, so nothing starts "
            "the first one",
            "add a step scaling policy on HasBacklogWithoutCapacity (asynchronous endpoint) or "
            "NoCapacityInvocationFailures (inference component), or set MinCapacity to 1",
        )


def _can_be_zero(scaling: _Scaling) -> bool:
    """Whether the number can be 0, and no schedule raises it again."""
    minima = [_number(bounds.get("MinCapacity")) for bounds in scaling.schedules]
    is_started = any(_may_be_above_zero(bounds, "MinCapacity") for bounds in scaling.schedules)
    return 0 in (scaling.bounds[0], *minima) and not is_started


def _starts(policy: Mapping[str, Any]) -> bool | None:
    """Whether a policy can start the first instance; ``None`` if its metric is not known."""
    tracking = policy.get("TargetTrackingScalingPolicyConfiguration")
    if not tracking:
        return True
    predefined = tracking.get("PredefinedMetricSpecification") or {}
    if str(predefined.get("PredefinedMetricType", "")).startswith("SageMaker"):
        return False

    metric = tracking.get("CustomizedMetricSpecification") or {}
    if metric.get("Namespace") not in _NAMESPACES:
        return None
    if metric.get("MetricName") in METRICS_OF_INSTANCES:
        return False
    return True if metric.get("MetricName") in _METRICS_WITHOUT_INSTANCES else None


def _without_traffic(outcome: Outcome) -> Iterator[Problem]:
    """A warning for each endpoint that gets a configuration in which all weights are zero."""
    before = outcome.before.deployed
    after = outcome.after.deployed
    silent: dict[str, str] = {}  # the logical ID of each such configuration, by its name
    for (_, logical_id), config in after.items():
        if config.request.type == _CONFIG and _has_no_weight(config.properties):
            silent[str(config.physical.attributes.get("EndpointConfigName"))] = logical_id

    for place, endpoint in after.items():
        name = str(endpoint.properties.get("EndpointConfigName"))
        if endpoint.request.type != _ENDPOINT or name not in silent:
            continue
        old = before.get(place)
        if old is not None and _keeps_weights(old, endpoint):
            continue
        yield _warning(
            _WEIGHTS_CODE,
            silent[name],
            "all variants have InitialVariantWeight 0, so no variant gets a request without "
            "TargetVariant",
            "",
        )


def _has_no_weight(config: Mapping[str, Any]) -> bool:
    variants = config.get("ProductionVariants") or ()
    weights = [_weight(variant.get("InitialVariantWeight")) for variant in variants]
    return bool(weights) and all(weight == 0 for weight in weights)


def _keeps_weights(old: Deployed, new: Deployed) -> bool:
    """Whether an update keeps the weights that the variants have, or changes no configuration."""
    if old.properties.get("EndpointConfigName") == new.properties.get("EndpointConfigName"):
        return True
    return str(new.properties.get("RetainAllVariantProperties")).lower() == "true"


def _may_be_above_zero(bounds: Mapping[str, Any], name: str) -> bool:
    """Whether a schedule sets a bound above 0, or one that is not known."""
    return bounds.get(name) is not None and _number(bounds[name]) != 0


def _number(value: Any) -> int | None:
    """A capacity as a number; ``None`` if it is absent or not known."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _weight(value: Any) -> float | None:
    """A weight as a number; ``None`` if it is absent, which is 1, or not known."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _warning(code: str, place: str, message: str, fix: str) -> Problem:
    return Problem(code, CODES[code].severity, place, message, fix or CODES[code].fix)
