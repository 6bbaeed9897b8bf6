"""The page of endpoints in AWS: bounded readings, rows of metrics and the cost of instances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp.test_utils import TestClient, TestServer
from botocore.hooks import HierarchicalEmitter
from fake_container import in_loop

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.aws.noting_reader import NotingReader
from constructs_triton_tools.local.page import deployed
from constructs_triton_tools.local.page.deployed import DeployedPage, cost_of, metric_rows
from constructs_triton_tools.operations.status import EndpointState, VariantState
from constructs_triton_tools.planning.prices import Prices

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
VARIANT = VariantState("v", False, "ml.g5.xlarge", 3, 3, 1.0, None, None, None, None, None)
POOLS = replace(VARIANT, instance_type=None, instance_pools={"ml.a": 2, "ml.b": 0})
STATE = EndpointState("e", "InService", None, "c", NOON, "ROLLING", (VARIANT,), (), (), (), (), ())


class CloudWatch:
    """A session whose CloudWatch answers each query with one value, and keeps the queries."""

    region_name = "eu-west-1"
    meta = SimpleNamespace(events=HierarchicalEmitter())

    def __init__(self) -> None:
        self.queries: list[dict[str, Any]] = []

    def client(self, service: str, **_options: object) -> CloudWatch:
        assert service == "cloudwatch"
        return self

    def get_metric_data(self, **request: Any) -> dict[str, Any]:
        self.queries += request["MetricDataQueries"]
        results = [
            {"Id": each["Id"], "Timestamps": [NOON], "Values": [number * 1000.0]}
            for number, each in enumerate(request["MetricDataQueries"], 1)
        ]
        return {"MetricDataResults": results}


def test_rows_have_requests_errors_and_milliseconds() -> None:
    """4xx and 5xx are added up, ModelLatency is in microseconds,
    and nothing is asked for nothing.
    """
    account = CloudWatch()
    reader = NotingReader(cast(Any, account))
    assert metric_rows(reader, {}, NOON) == {}
    assert account.queries == []
    rows = metric_rows(reader, {"v": {"EndpointName": "e", "VariantName": "v"}}, NOON)
    assert rows == {"v": [[NOON.timestamp(), 1000.0, 5000.0, 4.0, 5.0, 6.0]]}
    metrics = [each["MetricStat"] for each in account.queries[3:]]
    assert [each["Stat"] for each in metrics] == ["p50", "p95", "p99"]
    assert {each["Metric"]["MetricName"] for each in metrics} == {"ModelLatency"}


@pytest.mark.parametrize(
    ("variant", "prices", "expected"),
    [
        (VARIANT, {"ml.g5.xlarge": Decimal("1.41")}, (Decimal("4.23"), [])),
        (VARIANT, {}, (None, ["ml.g5.xlarge"])),
        (replace(VARIANT, current_instances=0), {}, (Decimal(0), [])),
        (POOLS, {"ml.a": Decimal(1)}, (Decimal(2), [])),
    ],
    ids=["one type", "no price", "no instances", "pools"],
)
def test_cost_is_that_of_running_instances(
    variant: VariantState, prices: dict[str, Decimal], expected: tuple[Decimal | None, list[str]]
) -> None:
    """Without the price of a running type the cost is not known;
    types without instances need none.
    """
    assert cost_of(replace(STATE, variants=(variant,)), prices) == expected


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The endpoints that were read, in order."""
    found: list[str] = []

    def read(_session: object, name: str) -> EndpointState:
        found.append(name)
        if len(found) == 2:
            raise InvalidValueError("AWS: cannot be reached")
        return STATE

    monkeypatch.setattr(deployed, "read_status", read)
    return found


def page_of(account: CloudWatch, clock: Callable[[], float]) -> DeployedPage:
    return DeployedPage(cast(Any, account), ["e"], Prices({}, "USD"), clock)


@in_loop
async def test_pages_share_a_reading_a_minute(readings: list[str]) -> None:
    """More requests within a minute read nothing; a failed reading keeps the state before it."""
    now = [1000.0]
    async with TestClient(
        TestServer(page_of(CloudWatch(), lambda: now[0]).application())
    ) as client:
        states = [await (await client.get("/ui/state")).json() for _ in range(3)]
        now[0] += 60
        failed = await (await client.get("/ui/state")).json()
        foreign = await client.get("/ui/state", headers={"Host": "evil.example"})
    assert [each["readings_left"] for each in states] == [119] * 3
    assert states[0]["metrics_read"] == 6
    assert states[0]["endpoints"][0]["currency"] == "USD"
    assert (failed["error"], failed["endpoints"][0]["name"]) == ("AWS: cannot be reached", "e")
    assert (foreign.status, readings) == (403, ["e", "e"])


@in_loop
async def test_readings_end(readings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is left open causes a limited number of readings."""
    monkeypatch.setattr(deployed, "_MOST_READINGS", 1)
    now = [0.0]
    async with TestClient(
        TestServer(page_of(CloudWatch(), lambda: now[0]).application())
    ) as client:
        for _ in range(3):
            state = await (await client.get("/ui/state")).json()
            now[0] += 3600
    assert (state["readings_left"], readings) == (0, ["e"])
