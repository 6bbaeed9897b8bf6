"""``constructs-triton cost``: the instances of a template, with given prices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from constructs_triton.cli import main

TYPE = "AWS::SageMaker::"
PRICES = ("--price", "ml.g5.xlarge=2", "ml.g6.xlarge=1")


def _variant(name: str, **properties: Any) -> dict[str, Any]:
    return {"VariantName": name, "ModelName": "model", "InitialInstanceCount": 2, **properties}


def _template(*variants: dict[str, Any], **target: Any) -> dict[str, Any]:
    resources: dict[str, Any] = {
        "Endpoint": {"Type": f"{TYPE}Endpoint", "Properties": {"EndpointName": "vision"}},
        "Config": {
            "Type": f"{TYPE}EndpointConfig",
            "Properties": {"ProductionVariants": list(variants)},
        },
    }
    resources["Endpoint"]["Properties"]["EndpointConfigName"] = {
        "Fn::GetAtt": ["Config", "EndpointConfigName"]
    }
    if target:
        properties = {"ResourceId": "endpoint/vision/variant/Main", **target}
        kind = "AWS::ApplicationAutoScaling::ScalableTarget"
        resources["Target"] = {"Type": kind, "Properties": properties}
    return {"Resources": resources}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(template: dict[str, Any], *arguments: str, code: int = 0) -> Any:
        path = tmp_path / "Stack.template.json"
        path.write_text(json.dumps(template))
        assert main(["cost", str(path), *arguments, "--json"]) == code
        printed = capsys.readouterr()
        return json.loads(printed.out) if code == 0 else printed.err

    return call


def test_scaling_and_its_schedule_decide_the_range(run: Any) -> None:
    """The range covers the fewest and the most instances, also those that a schedule sets."""
    night = {
        "Schedule": "cron(0 22 * * ? *)",
        "ScalableTargetAction": {"MinCapacity": 0, "MaxCapacity": 9},
    }
    main_variant = _variant("Main", InstanceType="ml.g5.xlarge")
    found = run(
        _template(main_variant, MinCapacity=1, MaxCapacity=4, ScheduledActions=[night]), *PRICES
    )
    assert found["cost_per_hour"] == {"least": 0, "initial": 4, "most": 18}
    assert found["cost_per_month"]["initial"] == 4 * 730


def test_stack_is_looked_for_in_one_template_too(run: Any) -> None:
    """A template has the stack that its file is named after."""
    template = _template(_variant("Main", InstanceType="ml.g5.xlarge"))
    assert run(template, *PRICES, "--stack", "Stack")["cost_per_hour"]["initial"] == 4
    assert '--stack: no stack "Stak" in ' in run(template, *PRICES, "--stack", "Stak", code=2)


def test_several_types_count_the_cheapest_and_the_dearest(run: Any) -> None:
    """Of instance pools the cheapest type counts for the least,
    the first for the first deployment.
    """
    pools = [
        {"InstanceType": "ml.g5.xlarge", "Priority": 1},
        {"InstanceType": "ml.g6.xlarge", "Priority": 2},
    ]
    found = run(
        _template(_variant("Main", InstancePools=pools), MinCapacity=1, MaxCapacity=4), *PRICES
    )
    assert found["cost_per_hour"] == {"least": 1, "initial": 4, "most": 8}


def test_hosts_of_components_scale_themselves(run: Any) -> None:
    """Managed instance scaling has its own bounds."""
    managed = {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 3}
    variant = _variant("Main", InstanceType="ml.g6.xlarge", ManagedInstanceScaling=managed)
    del variant["ModelName"]
    assert run(_template(variant), *PRICES)["cost_per_hour"] == {
        "least": 0,
        "initial": 2,
        "most": 3,
    }


def test_cost_of_calls_needs_a_rate(run: Any) -> None:
    """At ten requests per second, a million calls take 27.8 hours."""
    template = _template(_variant("Main", InstanceType="ml.g6.xlarge"))
    found = run(template, *PRICES, "--requests-per-second", "vision=10")
    assert found["cost_per_million_calls"]["vision"]["least"] == pytest.approx(2 * 1e6 / 36_000)
    assert "cost_per_million_calls" in found
    assert 'did you mean "vision"?' in run(
        template, *PRICES, "--requests-per-second", "visio=1", code=2
    )
    assert "must be above 0, got 0" in run(
        template, *PRICES, "--requests-per-second", "vision=0", code=2
    )


def test_what_is_not_known_is_named(run: Any) -> None:
    """A type without a price, or a count that only the deployment knows,
    is listed and not counted.
    """
    token = {"Ref": "Count"}
    template = _template(
        _variant("Main", InstanceType="ml.g5.xlarge"),
        _variant("Other", InstanceType="ml.p4d.24xlarge"),
        _variant("Third", InstanceType="ml.g5.xlarge", InitialInstanceCount=token),
    )
    template["Parameters"] = {"Count": {"Type": "Number"}}
    found = run(template, *PRICES)
    assert found["cost_per_hour"]["most"] == 4
    assert found["unknown"] == [
        "ml.p4d.24xlarge: no price was given; add --price ml.p4d.24xlarge=PRICE",
        "vision/Third: only the deployment knows the number of instances",
    ]
    assert "no cost can be calculated" in run(template, "--price", "ml.m5.large=1", code=2)
    assert "no endpoint in the stacks" in run(
        {"Resources": {"T": {"Type": "A::B::C"}}}, *PRICES, code=2
    )


def test_without_a_price_and_a_region_an_option_is_named(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the option that replaces AWS's price list,
    with the instance type of the app.
    """
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    template = _template(_variant("Main", InstanceType="ml.c6i.large"))
    assert "or give prices, such as --price ml.c6i.large=PRICE" in run(template, code=2)


def test_table_shows_least_most_and_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table has a row for each variant, and the text says what is not counted."""
    path = tmp_path / "Stack.template.json"
    path.write_text(
        json.dumps(
            _template(_variant("Main", InstanceType="ml.g5.xlarge"), MinCapacity=1, MaxCapacity=4)
        )
    )
    assert main(["cost", str(path), *PRICES]) == 0
    printed = capsys.readouterr().out
    assert "2.00 to 8.00 (4.00)" in printed
    assert "Not counted: storage" in printed


def write_two_regions(folder: Path) -> None:
    """Write an app with the same endpoint in two Regions, which a schedule turns off."""
    template = _template(_variant("Main", InstanceType="ml.g5.xlarge"))
    call = "arn:${AWS::Partition}:scheduler:::aws-sdk:cloudformation:updateStack"
    target = {"Arn": {"Fn::Sub": call}}
    schedule = {"Type": "AWS::Scheduler::Schedule", "Properties": {"Target": target}}
    template["Resources"]["Evening"] = schedule
    artifacts = {}
    for name, region in (("Dev-Vision", "us-east-1"), ("Prod-Vision", "eu-west-1")):
        (folder / f"{name}.template.json").write_text(json.dumps(template))
        artifacts[name] = {
            "type": "aws:cloudformation:stack",
            "environment": f"aws://111122223333/{region}",
            "properties": {"templateFile": f"{name}.template.json", "stackName": name},
        }
    manifest = {"version": "36.0.0", "artifacts": artifacts}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_app_of_two_regions_names_the_stack_of_each_endpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows of two stages differ in their stack and Region, and one price is said to be one;
    hours in which a schedule turns a stack off are said to count.
    """
    write_two_regions(tmp_path)
    assert main(["cost", str(tmp_path), *PRICES]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Dev-Vision (us-east-1)" in printed
    assert "Prod-Vision (eu-west-1)" in printed
    assert "which are in eu-west-1 and us-east-1; for other prices" in printed
    assert 'also those in which a schedule turns "Dev-Vision" and "Prod-Vision" off' in printed
    assert main(["cost", str(tmp_path), *PRICES, "--stack", "Dev-Vision"]) == 0
    assert "us-east-1" not in capsys.readouterr().out


LISTED = {"us-east-1": "1.5", "eu-west-1": "2"}


class PriceList(BaseHTTPRequestHandler):
    """Answers as the AWS Price List API does: another price in each Region."""

    def do_POST(self) -> None:
        """Answer GetProducts."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        filters = {each["Field"]: each["Value"] for each in asked["Filters"]}
        name, price = filters["instanceName"], LISTED[filters["regionCode"]]
        terms = {"A": {"priceDimensions": {"B": {"unit": "Hrs", "pricePerUnit": {"USD": price}}}}}
        product = {
            "product": {"attributes": {"usagetype": f"XX-Host:{name}"}},
            "terms": {"OnDemand": terms},
        }
        body = json.dumps({"PriceList": [json.dumps(product)]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.fixture
def price_list(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A price list on the loopback, and a Region of the user that no stack has."""
    server = HTTPServer(("127.0.0.1", 0), PriceList)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    yield
    server.shutdown()
    server.server_close()


def test_each_region_has_its_own_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], price_list: None
) -> None:
    """AWS's price list is read for the Region of each stack, or for ``--region``, and named."""
    write_two_regions(tmp_path)

    def found(*options: str) -> tuple[list[float], str]:
        assert main(["cost", str(tmp_path), "--json", *options]) == 0
        answer = json.loads(capsys.readouterr().out)
        costs = [each["cost_per_hour"]["least"] for each in answer["variants"]]
        return costs, " ".join(answer["notes"])

    costs, notes = found()
    assert costs == [3, 4]
    assert "price list for eu-west-1 and us-east-1" in notes
    assert "count for all stacks" not in notes
    costs, notes = found("--region", "eu-west-1")
    assert costs == [4, 4]
    assert "price list for eu-west-1." in notes
    assert "count for all stacks" in notes
    costs, notes = found("--stack", "Dev-Vision")
    assert (costs, "price list for us-east-1." in notes) == ([3], True)
