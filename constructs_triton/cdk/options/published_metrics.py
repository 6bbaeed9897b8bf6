"""The properties of an endpoint that publishes metrics of its Triton server."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, TypedDict

from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_lookup_dummy, is_token

_FAMILY = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_OF_TRITON = "nv_"
_OF_THE_LINE = ("Endpoint", "Variant", "_aws")
_MOST_CUSTOM = 50
"""A line of CloudWatch's embedded metric format has at most 100 metrics."""


class PublishedMetrics(TypedDict, total=False):
    """What an endpoint publishes besides the metrics of SageMaker."""

    container_metrics: Annotated[
        bool | None,
        Value(
            "Publishes Triton's own metrics in CloudWatch once a minute: queue and compute time, "
            "batch sizes, waiting and failed requests of each model. A small model ``_metrics`` in "
            "the archive prints them. They are custom metrics, which have a price. Not supported "
            "on multi-model endpoints.",
            default=False,
            example="True",
        ),
    ]
    custom_metrics: Annotated[
        Sequence[str] | None,
        Value(
            "Metrics of your own that ``container_metrics`` publishes too: names that ``model.py`` "
            "gives to ``pb_utils.MetricFamily``. Of a counter, it publishes the growth over all "
            "labels, and of a gauge the value of each set of labels. A histogram ``x`` is two "
            "counters, ``x_sum`` and ``x_count``. Each is a custom metric, which has a price.",
            example='"rejected_requests"',
        ),
    ]


def check_custom_metrics(metrics: PublishedMetrics) -> None:
    """Check the names of the metrics of the user's own, and that something publishes them.

    Raises:
        InvalidValueError: a name cannot be that of a family, is one of Triton's, or is there twice;
            or ``container_metrics`` is not set.
    """
    names = metrics["custom_metrics"]
    if names is None:
        return
    if not metrics["container_metrics"]:
        raise InvalidValueError(
            "custom_metrics: needs the model that publishes metrics; add container_metrics=True, "
            "or on a multi-model endpoint, which cannot have it, remove custom_metrics"
        )
    for name in names:
        _check_name(name)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidValueError(
            f'custom_metrics: must have each name once, got "{twice[0]}" twice; remove one of them'
        )
    if len(names) > _MOST_CUSTOM:
        raise InvalidValueError(
            f"custom_metrics: must be at most {_MOST_CUSTOM}, got {len(names)}; "
            "publish those that an alarm or a dashboard uses"
        )


def _check_name(name: object) -> None:
    if is_lookup_dummy(name):
        return  # the next synthesis has the name
    if not isinstance(name, str) or is_token(name) or not _FAMILY.fullmatch(name):
        raise InvalidValueError(
            "custom_metrics: must be names of pb_utils.MetricFamily, of letters, digits and _, "
            f'got {shown(name)}; write for example ["rejected_requests"]'
        )
    if name in _OF_THE_LINE:
        raise InvalidValueError(
            f'custom_metrics: must not be a name of the line that has the metrics, got "{name}"; '
            "rename the family in model.py"
        )
    if name.startswith(_OF_TRITON):
        raise InvalidValueError(
            f'custom_metrics: must be metrics of your own, got "{name}" of Triton; remove it, '
            "container_metrics.metric() has those that are published"
        )
