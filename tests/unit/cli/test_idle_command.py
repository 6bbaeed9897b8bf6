"""``constructs-triton cost idle`` in moto's account;
services that it lacks answer by their shapes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from moto.sagemaker.models import sagemaker_backends

from constructs_triton.cli import main
from constructs_triton_tools.cli import options
from constructs_triton_tools.cli.deployed import idle

REGION, TYPE = "eu-west-1", "ml.g4dn.xlarge"
NOW = datetime.now(UTC) + timedelta(days=20)


class Account(boto3.Session):
    """An account whose Compute Optimizer, price list and components are what a test says."""

    def __init__(self) -> None:
        super().__init__("testing", "testing", region_name=REGION)
        self.components: list[dict[str, str]] = []
        self.events.register("before-call.sagemaker.ListInferenceComponents", self._list_components)
        self.stubbed: dict[str, Any] = {}
        self.optimizer = self.stub("compute-optimizer")
        self.pricing = self.stub("pricing")

    def stub(self, service: str) -> Stubber:
        client: Any = super().client(service)
        self.stubbed[service] = client
        stubber = Stubber(client)
        stubber.activate()
        return stubber

    def client(self, service_name: str, *arguments: Any, **options: Any) -> Any:
        return self.stubbed.get(service_name) or super().client(service_name, *arguments, **options)

    def _list_components(self, params: Any, **_context: object) -> Any:
        name = json.loads(params["body"])["EndpointNameEquals"]
        found = [each for each in self.components if each["EndpointName"] == name]
        return SimpleNamespace(status_code=200, headers={}), {"InferenceComponents": found}

    def add_endpoint(
        self, name: str, *variants: str, tags: Mapping[str, str] = {}, **config: Any
    ) -> None:
        """Create an endpoint with two instances of each variant."""
        sagemaker = self.client("sagemaker")
        role = "arn:aws:iam::123456789012:role/endpoint"
        image = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton:1"
        sagemaker.create_model(
            ModelName=name, PrimaryContainer={"Image": image}, ExecutionRoleArn=role
        )
        declared = [
            {
                "VariantName": variant,
                "ModelName": name,
                "InstanceType": TYPE,
                "InitialInstanceCount": 2,
            }
            for variant in variants
        ]
        sagemaker.create_endpoint_config(
            EndpointConfigName=name, ProductionVariants=declared, **config
        )
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name, Tags=pairs)

    def call(
        self,
        name: str,
        variant: str,
        times: int,
        metric: str = "Invocations",
        dimension: str = "EndpointName",
    ) -> None:
        """Count calls in CloudWatch, three days before the search."""
        dimensions = [{"Name": dimension, "Value": name}]
        if variant:
            dimensions.append({"Name": "VariantName", "Value": variant})
        datum = {"MetricName": metric, "Dimensions": dimensions, "Value": times}
        datum["Timestamp"] = NOW - timedelta(days=3)
        self.client("cloudwatch").put_metric_data(Namespace="AWS/SageMaker", MetricData=[datum])

    def says_idle(self, *names: str) -> None:
        found = [
            {"resourceArn": f"arn:aws:sagemaker:{REGION}:123456789012:endpoint/{name}"}
            for name in names
        ]
        self.optimizer.add_response("get_idle_recommendations", {"idleRecommendations": found})

    def refuses_to_say(self) -> None:
        self.optimizer.add_client_error(
            "get_idle_recommendations",
            "OptInRequiredException",
            "is not registered",
            http_status_code=403,
        )

    def has_price(self, price: str) -> None:
        dimension = {"unit": "Hrs", "pricePerUnit": {"USD": price}}
        product = {
            "product": {"attributes": {"usagetype": "EU-Host:ml.g4dn.xlarge"}},
            "terms": {"OnDemand": {"A": {"priceDimensions": {"B": dimension}}}},
        }
        self.pricing.add_response("get_products", {"PriceList": [json.dumps(product)]})


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return NOW.astimezone(tz)

    with mock_aws():
        account = Account()
        monkeypatch.setattr(options, "make_session", lambda *_arguments: account)
        monkeypatch.setattr(idle, "datetime", Clock)
        yield account


def test_idle_variants_have_cost_owner_and_command(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """An endpoint without a data point is idle; one with calls is not;
    the cost is that of its instances.
    """
    tags = {"aws:cloudformation:stack-name": "Vision", "team": "search"}
    account.add_endpoint("old", "AllTraffic", tags=tags)
    account.add_endpoint("notebook", "AllTraffic")
    account.add_endpoint("used", "AllTraffic")
    account.call("used", "AllTraffic", 7)
    account.says_idle("old", "used")
    account.has_price("1.5")
    assert main(["cost", "idle"]) == 1
    shown = capsys.readouterr().out
    assert "eu-west-1: 2 of 3 variants with instances had no calls in 14 days" in shown
    row = next(line for line in shown.splitlines() if line.startswith("old"))
    assert (
        row.split()
        == f"old AllTraffic 0 2 x {TYPE} 72.00 2,190.00 stack Vision, team=search".split()
    )
    assert "together: 144.00 USD per day, 4,380.00 USD per month" in shown
    assert "stop: remove the endpoint from the app of stack Vision, and deploy it" in shown
    assert "stop: constructs-triton stop notebook --region eu-west-1" in shown
    assert (
        "AWS disagrees: used: AWS Compute Optimizer calls it idle; CloudWatch counted 7 calls"
        in shown
    )
    assert "AWS disagrees: notebook: AWS Compute Optimizer does not call it idle" in shown


def test_each_variant_is_judged(
    account: Account, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A variant without calls beside one with calls is idle,
    and --below decides how many calls are few.
    """
    account.add_endpoint("two", "A", "B")
    account.call("two", "A", 40)
    account.call("two", "B", 3)
    account.refuses_to_say()
    prices = tmp_path / "prices.csv"
    prices.write_text("instance_type,price_per_hour\nml.g4dn.xlarge,2\n")
    assert main(["cost", "idle", "--below", "4", "--prices", str(prices), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (variant,) = found["variants"]
    assert (variant["name"], variant["calls"], variant["cost_per_hour"]) == ("B", 3, 4.0)
    assert found["currency"] is None
    assert any("OptInRequiredException" in each for each in found["not_read"])


def test_component_without_calls_is_idle_where_others_work(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """Calls of components count for the variant;
    of its components only those without calls are idle.
    """
    account.add_endpoint("shared", "AllTraffic")
    for name in ("busy", "asleep"):
        account.components.append(
            {"EndpointName": "shared", "VariantName": "AllTraffic", "InferenceComponentName": name}
        )
    account.call("busy", "", 5, dimension="InferenceComponentName")
    account.says_idle()
    assert main(["cost", "idle"]) == 1
    shown = capsys.readouterr().out
    assert "0 of 1 variants" in shown
    assert "inference component asleep of shared: 0 calls" in shown
    assert (
        "delete-inference-component --inference-component-name asleep --region eu-west-1" in shown
    )


def test_a_waiting_request_is_work(account: Account, capsys: pytest.CaptureFixture[str]) -> None:
    """An asynchronous endpoint whose queue had requests is not idle;
    with nothing idle the exit code is 0.
    """
    output = {"OutputConfig": {"S3OutputPath": "s3://bucket/out"}}
    account.add_endpoint("queue", "AllTraffic", AsyncInferenceConfig=output)
    account.call("queue", "", 2, metric="ApproximateBacklogSize")
    account.says_idle()
    assert main(["cost", "idle"]) == 0
    assert "0 of 1 variants with instances had no calls" in capsys.readouterr().out


def test_young_endpoints_are_not_judged(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """An endpoint that was created in the period had no time to be called."""
    account.add_endpoint("new", "AllTraffic")
    account.says_idle()
    assert main(["cost", "idle", "--days", "30"]) == 0
    assert "too young: new" in capsys.readouterr().out


@pytest.mark.parametrize("status", ["Failed", "Creating"])
def test_endpoints_that_do_not_serve_are_listed_apart(
    status: str, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their calls say nothing, and whether a failed endpoint costs something is not known."""
    account.add_endpoint("broken", "AllTraffic")
    (endpoint,) = sagemaker_backends["123456789012"][REGION].endpoints.values()
    endpoint.endpoint_status = status
    account.says_idle()
    assert main(["cost", "idle"]) == 0
    shown = capsys.readouterr().out
    assert "0 of 0 variants" in shown
    assert f"broken ({status})" in shown


def test_unknown_price_is_unknown(account: Account, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the price list has no price, the cost is unknown and never 0."""
    account.add_endpoint("old", "AllTraffic")
    account.refuses_to_say()
    account.pricing.add_response("get_products", {"PriceList": []})
    assert main(["cost", "idle"]) == 1
    shown = capsys.readouterr().out
    assert shown.count("unknown") == 2
    assert "together" not in shown
    assert (
        "not read: price of ml.g4dn.xlarge: the price list has none for eu-west-1; use --prices"
        in shown
    )


def test_calls_that_cannot_be_read_are_an_error(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without figures nothing is idle: the command ends with exit code 2
    and names the permission.
    """
    account.add_endpoint("old", "AllTraffic")
    stubber = account.stub("cloudwatch")
    stubber.add_client_error("get_metric_data", "AccessDenied", "not allowed")
    assert main(["cost", "idle"]) == 2
    assert "cloudwatch:GetMetricData: access denied; add this permission" in capsys.readouterr().err
