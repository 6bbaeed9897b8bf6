"""Counts the invocations of variants and inference components in CloudWatch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from constructs_triton_core.aws.aws_reader import AwsReader
from constructs_triton_core.errors import InvalidValueError

#: The largest number of queries of one GetMetricData request.
_QUERIES = 500
_PERIOD = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Counted:
    """A metric whose data points of a period are added up."""

    metric: str
    dimensions: tuple[tuple[str, str], ...]


def count_calls(
    reader: AwsReader, metrics: Sequence[Counted], start: datetime, end: datetime
) -> Mapping[Counted, int]:
    """Return the sum of each metric. CloudWatch has no data points where nothing was called: the sum is 0.

    Raises:
        InvalidValueError: a metric cannot be read. A missing figure would look like an idle endpoint.
    """
    counts: dict[Counted, int] = {}
    for first in range(0, len(metrics), _QUERIES):
        batch = metrics[first : first + _QUERIES]
        sums = dict.fromkeys(range(len(batch)), 0.0)
        for result in _results(reader, batch, start, end):
            sums[int(result["Id"][1:])] += sum(result["Values"])
        counts |= {metric: round(sums[index]) for index, metric in enumerate(batch)}
    return counts


def _results(
    reader: AwsReader, metrics: Sequence[Counted], start: datetime, end: datetime
) -> Iterator[Mapping[str, Any]]:
    queries = [_query(index, metric) for index, metric in enumerate(metrics)]
    request = {"MetricDataQueries": queries, "StartTime": start, "EndTime": end}
    for result in reader.members("cloudwatch", "get_metric_data", "MetricDataResults", **request):
        if result["StatusCode"] not in ("Complete", "PartialData"):
            reasons = "; ".join(each.get("Value", "") for each in result.get("Messages", []))
            raise InvalidValueError(
                f"cloudwatch:GetMetricData: {result['StatusCode']} {reasons}".rstrip()
                + "; without the figures nothing can be called idle, run the command again"
            )
        yield result


def _query(index: int, counted: Counted) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in counted.dimensions]
    metric = {"Namespace": "AWS/SageMaker", "MetricName": counted.metric, "Dimensions": dimensions}
    period = int(_PERIOD.total_seconds())
    return {"Id": f"m{index}", "MetricStat": {"Metric": metric, "Period": period, "Stat": "Sum"}}
