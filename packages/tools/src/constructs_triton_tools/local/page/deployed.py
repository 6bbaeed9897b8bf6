"""The page of endpoints in AWS: what ``status`` reads, their metrics, and what their instances
cost.

Everything is only read. CloudWatch bills each metric that is read, so pages cause at most one
reading a minute, and a run stops reading after two hours.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from aiohttp import web

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.aws.noting_reader import NotingReader
from constructs_triton_tools.local.gateway.gateway_port import HOST, listen
from constructs_triton_tools.local.gateway.listener import serving
from constructs_triton_tools.local.gateway.runtime_errors import refuse_foreign_requests
from constructs_triton_tools.local.interruptible import run_in_thread
from constructs_triton_tools.local.options import PAGE_PATH
from constructs_triton_tools.local.page.page_files import PageFiles, secure
from constructs_triton_tools.operations.status import EndpointState, read_status
from constructs_triton_tools.planning.prices import Prices

if TYPE_CHECKING:
    import boto3

_LEAST_SECONDS = 60.0
_MOST_READINGS = 120
_PERIOD_SECONDS = 60
_HISTORY = timedelta(hours=1)
#: Metric, statistic and factor of each figure of a row. Latencies are in microseconds.
_FIGURES = (
    ("Invocations", "Sum", 1.0),
    ("Invocation4XXErrors", "Sum", 1.0),
    ("Invocation5XXErrors", "Sum", 1.0),
    ("ModelLatency", "p50", 0.001),
    ("ModelLatency", "p95", 0.001),
    ("ModelLatency", "p99", 0.001),
)


class DeployedPage:
    """The page of endpoints. ``prices`` are those of an instance hour, by instance type."""

    def __init__(
        self,
        session: boto3.Session,
        names: Sequence[str],
        prices: Prices,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._names = names
        self._prices = prices
        self._clock = clock
        self._lock = asyncio.Lock()
        self._read_at = -_LEAST_SECONDS
        self._readings = 0
        self._metrics = 0
        self._state: dict[str, object] = {}

    def application(self) -> web.Application:
        """Return the web application of the page."""
        page = web.Application(middlewares=[secure])
        page.router.add_get("/state", self._answer)
        PageFiles("status.html").add_to(page)
        application = web.Application(middlewares=[refuse_foreign_requests])
        application.add_subapp(PAGE_PATH, page)
        return application

    async def _answer(self, _: web.Request) -> web.Response:
        """Answer with the state; all pages of a run share one reading a minute."""
        async with self._lock:
            is_due = (
                self._clock() - self._read_at >= _LEAST_SECONDS and self._readings < _MOST_READINGS
            )
            if is_due:
                self._read_at = self._clock()
                self._readings += 1
                self._state = await run_in_thread(self._read)
        left = _MOST_READINGS - self._readings
        return web.json_response(
            {**self._state, "readings_left": left, "metrics_read": self._metrics}
        )

    def _read(self) -> dict[str, object]:
        now = datetime.now(UTC)
        try:
            endpoints = [self._endpoint(name, now) for name in self._names]
        except InvalidValueError as error:
            return {**self._state, "error": str(error)}
        return {
            "endpoints": endpoints,
            "read_at": now.timestamp(),
            "region": self._session.region_name,
        }

    def _endpoint(self, name: str, now: datetime) -> dict[str, Any]:
        """Return what the page shows of an endpoint; each metric that is read costs money."""
        state = read_status(self._session, name)
        reader = NotingReader(self._session)
        series = _series(state)
        rows = metric_rows(reader, series, now)
        self._metrics += len(series) * len(_FIGURES)
        cost, missing = cost_of(state, self._prices)
        return {
            **state.to_dict(),
            "cost_per_hour": None if cost is None else f"{cost:.2f}",
            "currency": self._prices.currency,
            "types_without_price": missing,
            "rows": rows,
            "not_read": [*state.not_read, *reader.not_read],
        }


def cost_of(
    state: EndpointState, prices: Mapping[str, Decimal]
) -> tuple[Decimal | None, list[str]]:
    """Return the price of the running instances for an hour, and the types whose price is not
    known.

    The price is ``None`` if a type has none.
    """
    counts: dict[str, int] = {}
    for variant in state.variants:
        single = (
            {variant.instance_type: variant.current_instances or 0} if variant.instance_type else {}
        )
        for name, count in (variant.instance_pools or single).items():
            counts[name] = counts.get(name, 0) + count
    missing = sorted(name for name, count in counts.items() if count and name not in prices)
    if missing:
        return None, missing
    return sum((prices[name] * count for name, count in counts.items() if count), Decimal(0)), []


def _series(state: EndpointState) -> dict[str, Mapping[str, str]]:
    """Return the dimensions of the metrics of each variant, or of each inference component."""
    if state.components:
        return {
            component.name: {"InferenceComponentName": component.name}
            for component in state.components
        }
    return {
        variant.name: {"EndpointName": state.name, "VariantName": variant.name}
        for variant in state.variants
        if not variant.is_shadow
    }


def metric_rows(
    reader: NotingReader, series: Mapping[str, Mapping[str, str]], now: datetime
) -> dict[str, list[list[float | None]]]:
    """Return a row for each minute of the last hour: time, requests,
    errors and percentiles in ms.
    """
    names = list(series)
    # The identifier of a query has the positions of its endpoint and its figure.
    queries = []
    for position, name in enumerate(names):
        for index, (metric, statistic, _) in enumerate(_FIGURES):
            queries.append(_query(f"m{position}_{index}", series[name], metric, statistic))
    if not queries:
        return {}

    minute = now.replace(second=0, microsecond=0)
    answer = reader.read(
        "cloudwatch",
        "get_metric_data",
        MetricDataQueries=queries,
        StartTime=minute - _HISTORY,
        EndTime=minute,
    )
    figures_at: dict[str, dict[float, list[float | None]]] = {name: {} for name in series}
    for result in answer.get("MetricDataResults", []):
        position, index = map(int, result["Id"][1:].split("_"))
        _, _, factor = _FIGURES[index]
        for at, value in zip(result["Timestamps"], result["Values"], strict=True):
            figures = figures_at[names[position]].setdefault(at.timestamp(), [None] * len(_FIGURES))
            figures[index] = value * factor

    rows = {}
    for name, figures_by_time in figures_at.items():
        rows[name] = [_row(at, figures) for at, figures in sorted(figures_by_time.items())]
    return rows


def _query(id: str, dimensions: Mapping[str, str], metric: str, statistic: str) -> dict[str, Any]:
    named = [{"Name": name, "Value": value} for name, value in dimensions.items()]
    described = {"Namespace": "AWS/SageMaker", "MetricName": metric, "Dimensions": named}
    return {
        "Id": id,
        "MetricStat": {"Metric": described, "Period": _PERIOD_SECONDS, "Stat": statistic},
    }


def _row(at: float, values: Sequence[float | None]) -> list[float | None]:
    calls, refused, failed, *latencies = values
    return [at, calls or 0, (refused or 0) + (failed or 0), *latencies]


def serve_deployed(page: DeployedPage, port: int, report: Callable[[str], None]) -> None:
    """Serve the page until the command is interrupted. ``report`` prints its address."""

    async def run() -> None:
        with listen(port) as listener:
            async with serving(page.application(), listener, report):
                report(f"look at it: http://{HOST}:{listener.getsockname()[1]}{PAGE_PATH}")
                await asyncio.Event().wait()

    asyncio.run(run())
