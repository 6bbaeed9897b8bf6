"""The page of ``status --ui`` in a real browser, for an endpoint in a simulated account."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from browser_page import PICTURES, browsing, needs_browser, opened_page, serious_findings
from operate_app import NAME, STACK, synthesize
from playwright.sync_api import expect

from cdk_rehearse import SimulatedAccount

BUDGET_MINUTES = 1
pytestmark = needs_browser
PRICES = "instance_type,price_per_hour,currency\nml.c6i.large,0.10,USD\n"


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedAccount]:
    """An account with an endpoint that had calls in the last hour, and an alarm."""
    assemblies = synthesize(tmp_path_factory.mktemp("assemblies"))
    with SimulatedAccount() as account:
        account.bootstrap()
        stack = account.deploy(assemblies / "first", STACK)
        assert stack.status == "CREATE_COMPLETE", stack.reason
        put_metrics(account)
        yield account


def put_metrics(account: SimulatedAccount) -> None:
    """Write metrics of the last half hour, as SageMaker does."""
    cloudwatch = account.client("cloudwatch")
    now = datetime.now(UTC)
    dimensions = [
        {"Name": "EndpointName", "Value": NAME},
        {"Name": "VariantName", "Value": "AllTraffic"},
    ]
    for minute in range(1, 30):
        at = now - timedelta(minutes=minute)
        # The simulated CloudWatch has no percentiles, so latencies are in the unit tests only.
        for name, value in (("Invocations", 40 + minute % 7), ("Invocation5XXErrors", minute % 3)):
            point = {"MetricName": name, "Dimensions": dimensions, "Timestamp": at, "Value": value}
            cloudwatch.put_metric_data(Namespace="AWS/SageMaker", MetricData=[point])
    (alarm, *_) = cloudwatch.describe_alarms()["MetricAlarms"]
    cloudwatch.set_alarm_state(
        AlarmName=alarm["AlarmName"], StateValue="ALARM", StateReason="<b>too slow</b>"
    )


@contextmanager
def served_page(account: SimulatedAccount, *options: str) -> Iterator[str]:
    """Run the command and yield the address that it prints; Ctrl-C ends it."""
    command = [sys.executable, "-m", "constructs_triton.cli", "status", NAME, "--ui", *options]
    with subprocess.Popen(
        command, env=account.environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            found = re.search(r"look at it: (http://127\.0\.0\.1:\d+/ui/)", line)
            assert found, line
            yield found[1]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)
    assert process.returncode == 130


def test_endpoint_in_aws_is_shown(aws: SimulatedAccount, tmp_path: Path) -> None:
    """The page has instances, cost, scaling, alarm and metrics; foreign text stays text."""
    prices = tmp_path / "prices.csv"
    prices.write_text(PRICES)
    problems: list[str] = []
    with served_page(aws, f"--prices={prices}") as address, browsing() as browser:
        for scheme in ("light", "dark"):
            page = opened_page(browser, address, problems, width=1440, scheme=scheme)
            expect(page.locator("#endpoints")).to_contain_text("ml.c6i.large")
            expect(page.locator("#endpoints")).to_contain_text("0.10 USD an hour")
            expect(page.locator("#scaling-list")).to_contain_text("1 to 4 instances")
            expect(page.locator("#alarm-list")).to_contain_text("<b>too slow</b>")
            expect(page.locator("#deployment-list")).to_contain_text("ALL_AT_ONCE")
            expect(page.locator("#charts tbody tr").first).to_be_visible()
            assert serious_findings(page) == []
            page.screenshot(
                path=Path(PICTURES or tmp_path) / f"status_{scheme}_1440.png", full_page=True
            )
        phone = opened_page(browser, address, problems, width=390, scheme="light")
        expect(phone.locator("#endpoints")).to_contain_text("ml.c6i.large")
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
        state = json.loads(phone.evaluate("fetch('state').then((each) => each.text())"))
        assert (state["readings_left"], state["metrics_read"]) == (119, 6)
    assert problems == []


def test_cost_without_a_price_is_not_known(aws: SimulatedAccount) -> None:
    """Without prices the page names the instance type and the option."""
    problems: list[str] = []
    with served_page(aws) as address, browsing() as browser:
        page = opened_page(browser, address, problems, width=1440, scheme="light")
        expect(page.locator("#endpoints")).to_contain_text("no price of ml.c6i.large; use --prices")
    assert problems == []
