"""Results of SageMaker Inference Recommender as measurements.

Source: SageMaker API reference, DescribeInferenceRecommendationsJob. ``MaxInvocations`` is per
minute and instance, and ``ModelLatency`` is in milliseconds, unlike CloudWatch's metric of the same
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.regular_files import csv_text
from constructs_triton_core.untrusted.written_files import write_whole
from constructs_triton_tools.planning.measurements import Measurement
from constructs_triton_tools.planning.quantities import Bounds, exact

_INSTANCES = Bounds("1", "1000000", "save the output of the AWS command again")
_FINISHED = ("COMPLETED", "STOPPED")
_HEADINGS = (
    "configuration",
    "instance_type",
    "invocations_per_minute",
    "latency_ms",
    "price_per_hour",
)


def read_recommendations(job: Mapping[str, Any]) -> list[Measurement]:
    """Return the measurements of a finished job, as DescribeInferenceRecommendationsJob describes
    it.

    A configuration is named by its inference specification and its environment variables, or by the
    job. Serverless endpoints and tests without a result are left out.

    Args:
        job: Response of DescribeInferenceRecommendationsJob.

    Raises:
        InvalidValueError: the job is not finished, has no results, or is not the description of a
            job.
    """
    try:
        name = job["JobName"]
        status = job["Status"]
        measurements = list(_measurements(name, job.get("InferenceRecommendations", ())))
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidValueError(
            "job: must be the output of `aws sagemaker describe-inference-recommendations-job`, "
            f"got {type(error).__name__} ({error}); save that output as a file"
        ) from None
    if status not in _FINISHED:
        reason = f" ({job['FailureReason']})" if job.get("FailureReason") else ""
        raise InvalidValueError(
            f"job {name}: must be COMPLETED, got {status}{reason}; "
            "wait for it, or start another one"
        )
    if not measurements:
        raise InvalidValueError(
            f"job {name}: has no results for instances; look at its steps with "
            f"`aws sagemaker list-inference-recommendations-job-steps --job-name {name}`"
        )
    return measurements


def _measurements(name: str, recommendations: Iterable[Mapping[str, Any]]) -> Iterator[Measurement]:
    for recommendation in recommendations:
        endpoint = recommendation["EndpointConfiguration"]
        metrics = recommendation.get("Metrics") or {}
        if "InstanceType" not in endpoint or not metrics.get("MaxInvocations"):
            continue
        yield Measurement(
            configuration=_configuration(recommendation["ModelConfiguration"]) or name,
            instance_type=endpoint["InstanceType"],
            invocations_per_minute=metrics["MaxInvocations"],
            latency_ms=metrics["ModelLatency"],
            price_per_hour=_price(name, metrics, endpoint),
        )


def _configuration(model: Mapping[str, Any]) -> str:
    variables = (
        f"{parameter['Key']}={parameter['Value']}"
        for parameter in model.get("EnvironmentParameters", ())
    )
    return " ".join(filter(None, [model.get("InferenceSpecificationName"), *variables]))


def _price(job: str, metrics: Mapping[str, Any], endpoint: Mapping[str, Any]) -> Decimal | None:
    """The price of one instance; the job has that of the endpoint, as a 32-bit float."""
    if not metrics.get("CostPerHour"):
        return None
    cost = exact(f"job {job}: CostPerHour", metrics["CostPerHour"])
    count = exact(
        f"job {job}: InitialInstanceCount", endpoint.get("InitialInstanceCount", 1), _INSTANCES
    )
    return (cost / count).quantize(Decimal("0.0001")).normalize()


def write_measurements(path: str | PathLike[str], measurements: Iterable[Measurement]) -> None:
    """Write measurements as the CSV file that ``read_measurements`` reads.

    Args:
        path: Path of the CSV file, which is replaced.
        measurements: One row each.

    Raises:
        InvalidValueError: the file cannot be written.
    """
    rows = [
        [_cell(getattr(measurement, name)) for name in _HEADINGS] for measurement in measurements
    ]
    try:
        write_whole(Path(path), csv_text([_HEADINGS, *rows]))
    except OSError as error:
        raise InvalidValueError(
            f"{path}: cannot be written ({error.strerror}); give another path"
        ) from None


def _cell(value: object) -> object:
    if value is None:
        return ""
    return f"{value:f}" if isinstance(value, Decimal) else value
