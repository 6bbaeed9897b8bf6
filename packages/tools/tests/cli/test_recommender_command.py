"""``constructs-triton plan recommender`` and ``cost prices``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.cli import prices, recommender
from constructs_triton_tools.planning import read_measurements, read_prices

ROLE = "arn:aws:iam::111122223333:role/recommender"
MODEL = ("--role-arn", ROLE, "--model-name", "bert", "--instance-type", "ml.g4dn.xlarge")


def run(command: Any, *words: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return int(command.run(parser.parse_args(words)))


def test_request_is_written_with_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The options become the request, and the printed command starts it."""
    path = tmp_path / "job.json"
    words = (
        "--job-name",
        "bert",
        *MODEL,
        "--env",
        "A=1,2",
        "--max-invocations",
        "30000",
        "--latency-ms",
        "500",
        "--task",
        "FILL_MASK",
        "--payload-url",
        "s3://b/p.tar.gz",
        "--content-type",
        "application/json",
    )
    assert run(recommender, "request", *words, "-o", str(path)) == 0
    out, err = capsys.readouterr()
    assert err == f"wrote {path}\n"
    assert f"create-inference-recommendations-job --cli-input-json file://{path}\n" in out
    request = json.loads(path.read_text())
    (phase,) = request["InputConfig"]["TrafficPattern"]["Phases"]
    assert phase == {"InitialNumberOfUsers": 2, "SpawnRate": 2, "DurationInSeconds": 1500}
    assert request["InputConfig"]["ContainerConfig"]["PayloadConfig"] == {
        "SamplePayloadUrl": "s3://b/p.tar.gz",
        "SupportedContentTypes": ["application/json"],
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--job-type", "Default", "--latency-ms", "5"),
            r"latency_ms: a default job chooses its load .* remove",
        ),
        (
            ("--job-type", "Default", "--phase", "2:2:9"),
            r"phases: a default job .* remove phases, or set the job",
        ),
    ],
)
def test_invalid_option_is_refused(words: tuple[str, ...], message: str) -> None:
    """The message has the form."""
    with pytest.raises(InvalidValueError, match=message):
        run(recommender, "request", "--job-name", "bert", *MODEL, *words, "-o", "job.json")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--phase", "2:2"), '--phase: must have the form USERS:SPAWN_RATE:SECONDS, got "2:2"'),
        (("--env", "A"), "--env: must have the form NAME=VALUE,VALUE, got 'A'"),
    ],
)
def test_option_of_another_form_is_refused(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the parser, with an example."""
    with pytest.raises(SystemExit):
        run(recommender, "request", "--job-name", "bert", *MODEL, *words, "-o", "job.json")
    assert message in capsys.readouterr().err


def test_default_job_needs_no_instance_types(tmp_path: Path) -> None:
    """It recommends types, of all or of those that are given; an advanced job needs them."""
    path = tmp_path / "types.json"
    job = ("--job-name", "bert", "--role-arn", ROLE, "--model-name", "bert", "-o", str(path))
    assert run(recommender, "request", "--job-type", "Default", *job) == 0
    assert json.loads(path.read_text())["InputConfig"] == {"ModelName": "bert"}
    assert (
        run(
            recommender, "request", "--job-type", "Default", *job, "--instance-type", "ml.g5.xlarge"
        )
        == 0
    )
    container = json.loads(path.read_text())["InputConfig"]["ContainerConfig"]
    assert container == {"SupportedInstanceTypes": ["ml.g5.xlarge"]}
    with pytest.raises(
        InvalidValueError, match=r"--instance-type: is required for an advanced job; set 1 to 10"
    ):
        run(recommender, "request", *job)


def test_multi_model_endpoint_gets_the_reason(tmp_path: Path) -> None:
    """A template with a multi-model container is refused, and the message names load-test."""
    template = tmp_path / "S.template.json"
    container = {"Mode": "MultiModel"}
    model = {"Type": "AWS::SageMaker::Model", "Properties": {"PrimaryContainer": container}}
    template.write_text(json.dumps({"Resources": {"PetsModel": model}}))
    words = (
        "request",
        "--job-name",
        "bert",
        *MODEL,
        "--template",
        str(template),
        "-o",
        str(tmp_path / "j"),
    )
    with pytest.raises(
        InvalidValueError, match=r"PetsModel serves several models\. .* load-test --requests"
    ):
        run(recommender, *words)
    template.write_text(json.dumps({"Resources": {}}))
    assert run(recommender, *words) == 0
    template.write_text("[]")
    with pytest.raises(InvalidValueError, match=r"pass a template that `npx cdk synth` wrote"):
        run(recommender, *words)


JOB = {
    "JobName": "bert",
    "JobDescription": "",
    "JobType": "Advanced",
    "JobArn": "arn:aws:sagemaker:eu-west-1:111122223333:inference-recommendations-job/bert",
    "RoleArn": ROLE,
    "Status": "COMPLETED",
    "CreationTime": "2026-01-05T00:00:00",
    "LastModifiedTime": "2026-01-05T00:00:00",
    "InputConfig": {},
    "InferenceRecommendations": [
        {
            "RecommendationId": "a",
            "Metrics": {"MaxInvocations": 1335, "ModelLatency": 499, "CostPerHour": 0.94},
            "EndpointConfiguration": {
                "EndpointName": "e",
                "VariantName": "v",
                "InstanceType": "ml.g4dn.2xlarge",
            },
            "ModelConfiguration": {},
        }
    ],
}


def test_job_is_imported_from_a_file_or_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both give the same CSV file."""
    (tmp_path / "job.json").write_text(json.dumps(JOB))
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    assert run(recommender, "import", str(tmp_path / "job.json"), "-o", str(first)) == 0
    client: Any = boto3.client(
        "sagemaker", "eu-west-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    stub = Stubber(client)
    stub.add_response("describe_inference_recommendations_job", JOB, {"JobName": "bert"})
    monkeypatch.setattr(boto3.Session, "client", lambda *_, **__: client)
    with stub:
        assert run(recommender, "import", "bert", "-o", str(second)) == 0
        stub.add_client_error("describe_inference_recommendations_job", "ResourceNotFound")
        with pytest.raises(
            InvalidValueError, match=r"job other: does not exist in us-east-1; check"
        ):
            run(recommender, "import", "other", "-o", "b.csv")
    assert first.read_text() == second.read_text()
    assert read_measurements(first)[0].configuration == "bert"
    with pytest.raises(InvalidValueError, match=r"absent\.json: cannot be read"):
        run(recommender, "import", "absent.json", "-o", "b.csv")


# --- prices ---------------------------------------------------------------------------------------


def priced(monkeypatch: pytest.MonkeyPatch) -> Stubber:
    """Let the command use a stubbed client of the price list."""
    client: Any = boto3.client(
        "pricing", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    monkeypatch.setattr(boto3.Session, "client", lambda *_, **__: client)
    return Stubber(client)


def test_prices_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is what plan reads, and the price is printed;
    without --output nothing is written.
    """
    dimensions = {"x": {"unit": "Hrs", "pricePerUnit": {"USD": "1.5700000000"}}}
    product = {
        "product": {"attributes": {"usagetype": "EU-Host:ml.g5.xlarge"}},
        "terms": {"OnDemand": {"a": {"priceDimensions": dimensions}}},
    }
    stub = priced(monkeypatch)
    stub.add_response("get_products", {"PriceList": [json.dumps(product)]})
    with stub:
        assert (
            run(prices, "ml.g5.xlarge", "--region", "eu-west-1", "-o", str(tmp_path / "p.csv")) == 0
        )
    assert "1.57 USD per hour" in capsys.readouterr().out
    stub.add_response("get_products", {"PriceList": [json.dumps(product)]})
    monkeypatch.chdir(tmp_path)
    with stub:
        assert run(prices, "ml.g5.xlarge", "--region", "eu-west-1") == 0
    assert capsys.readouterr() == ("ml.g5.xlarge         1.57 USD per hour\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
    assert str(read_prices(tmp_path / "p.csv")["ml.g5.xlarge"]) == "1.57"


def test_denied_price_list_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the permission and the alternative; a Region is needed first."""
    stub = priced(monkeypatch)
    stub.add_client_error("get_products", "AccessDeniedException")
    message = r"^pricing:GetProducts: access denied; add this permission"
    with stub, pytest.raises(InvalidValueError, match=message):
        run(prices, "ml.g5.xlarge", "--region", "eu-west-1")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setattr(boto3.Session, "region_name", None)
    with pytest.raises(InvalidValueError, match=r"no Region is configured; set --region"):
        run(prices, "ml.g5.xlarge")
