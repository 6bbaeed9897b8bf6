"""Scaling of a variant on metrics that SageMaker does not publish."""

from __future__ import annotations

import math
from dataclasses import replace

from aws_cdk import Duration, Stack
from aws_cdk import aws_applicationautoscaling as appscaling

from constructs_triton.cdk.metrics.container_metrics import ContainerMetrics
from constructs_triton.cdk.metrics.metric_values import ExpressionValue
from constructs_triton.cdk.scaling import targets
from constructs_triton.cdk.scaling.stepped_scaling import SteppedScaling
from constructs_triton.cdk.scaling.target_tracking import ScalingPolicyOptions, check_policy
from constructs_triton.cdk.validation.arguments import check_known_string
from constructs_triton.cdk.validation.synthesis_warning import warn_at_synthesis
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.spelling import did_you_mean, quoted
from constructs_triton_core.tokens import is_lookup_dummy

# Queue time is near 0 until instances are almost busy, and then rises steeply. Target tracking adds
# instances in proportion to the metric, so an unlimited value would lead to max_capacity
# immediately.
_HIGHEST_IN_TARGETS = 2


class CustomMetricScaling(SteppedScaling):
    """A scalable instance count without its policies on SageMaker's own metrics."""

    _container_metrics: ContainerMetrics | None
    #: The ids of the policies on a queue time.
    _queue_policies: list[str]

    def scale_out_on_queue_time(
        self,
        id: str,
        *,
        target_queue_time: Duration,
        model: str | None = None,
        scale_out_cooldown: Duration | None = None,
        policy_name: str | None = None,
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Add instances when requests wait too long in the queue of a model; never remove any.

        A second policy beside the one that scales, such as ``scale_on_concurrent_requests``, which
        removes the instances again. Queue time is near 0 until the instances are almost busy, so it
        cannot say when there are too many. The policy at most doubles the instances at a time. It
        needs ``container_metrics=True``, and acts about five minutes after a load begins, plus the
        start of an instance. Without data it does nothing; the alarm ``ContainerMetricsMissing`` of
        ``add_alarms`` reports that.

        Args:
            id: Construct id of the policy.
            target_queue_time: Average time in the queue above which instances are added. Half of
                what your latency budget leaves for waiting is a good start.
            model: The model whose queue is read. Default: the only model of the archive that is not
                an ensemble, because an ensemble's requests wait in the queues of its steps.
            scale_out_cooldown: Time between two scale-out activities. Default: 300 seconds, the
                service's default.
            policy_name: Name of the policy. Default: generated from the construct's path.

        Raises:
            InvalidValueError: the variant publishes no metrics of Triton, the model has no queue or
                must be named, or the time is not a duration above 0.
        """
        metrics = self._published_metrics(id)
        if is_lookup_dummy(model):
            model = metrics.queued_models[0]  # the next synthesis has the model
        if model is not None:
            check_known_string("model", model, "detector")
        target = targets.microseconds("target_queue_time", target_queue_time)
        options: ScalingPolicyOptions = {
            "disable_scale_in": True,
            "scale_out_cooldown": scale_out_cooldown,
            "policy_name": policy_name,
        }
        check_policy(self.scale_out_on_queue_time, id, options)
        metric = _queue_time(metrics, _queued_model(metrics, model), target)
        policy = self._tracking.keep(id, metric, target, options)
        if not self._queue_policies:
            warn_at_synthesis(self, self._nothing_removes)
        self._queue_policies.append(id)
        return policy

    def _published_metrics(self, id: str) -> ContainerMetrics:
        if self._container_metrics is None:
            raise InvalidValueError(
                f"{id}: the variant does not publish Triton's queue time; set "
                "container_metrics=True on the construct that creates the endpoint, or use "
                "scale_on_concurrent_requests"
            )
        return self._container_metrics

    def _nothing_removes(self) -> Finding | None:
        """Return a warning if no other policy and no schedule removes the
        instances that were added.
        """
        policies = [
            each for each in self.node.find_all() if isinstance(each, appscaling.CfnScalingPolicy)
        ]
        schedules = Stack.of(self).resolve(self._cfn_target.scheduled_actions)
        if len(policies) > len(self._queue_policies) or schedules:
            return None
        return Finding(
            "queue-time-only-adds",
            Severity.WARNING,
            self._queue_policies[0],
            "only adds instances, and no other policy or schedule removes them",
            "add the policy that scales in both directions, "
            "such as scale_on_concurrent_requests, or acknowledge this",
        )


def _queue_time(metrics: ContainerMetrics, model: str, target: float) -> ExpressionValue:
    """Return the average queue time of a request,
    limited so that one activity adds a limited number.
    """
    from constructs_triton_core.cloud_assembly.scaling import limited_quotient

    queue = metrics._average("queue", model)
    total, number = queue.using_metrics
    return replace(
        queue, expression=limited_quotient(total, number, math.ceil(_HIGHEST_IN_TARGETS * target))
    )


def _queued_model(metrics: ContainerMetrics, model: str | None) -> str:
    """Return the model whose queue decides the scaling.

    Raises:
        InvalidValueError: it has no queue, or several have one and none is named.
    """
    queued = metrics.queued_models
    if model is None and len(queued) == 1:
        return queued[0]
    if model is None:
        raise InvalidValueError(
            "model: is required, because several models have a queue; "
            f"set it to one of {quoted(queued)}"
        )
    if model not in queued:
        is_packed = model in metrics.models
        why = (
            "is an ensemble, whose requests wait in its steps"
            if is_packed
            else "is not in the archive"
        )
        hint = did_you_mean(model, queued, f"set it to one of {quoted(queued)}")
        raise InvalidValueError(f'model: must be a model with a queue, but "{model}" {why}; {hint}')
    return model
