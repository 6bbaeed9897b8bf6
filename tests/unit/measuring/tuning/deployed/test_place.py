"""What a search in AWS costs at most, and whether the account allows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from constructs_triton.cli import main
from constructs_triton_core.aws_reader import AwsReader, make_session
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.tuning.deployed.place import AwsPlace

ROLE = "arn:aws:iam::111122223333:role/models"
TENSORS = 'input { name: "X" data_type: TYPE_FP32 dims: 4 } output { name: "Y" data_type: TYPE_FP32 dims: 4 }'


def place(instance_type: str = "ml.g5.xlarge", usd_per_hour: float = 1.5, **options: Any) -> AwsPlace:
    reader = AwsReader(make_session("eu-west-1"))
    given: dict[str, Any] = {"role": ROLE, "bucket": "archives", "reader": reader, **options}
    return AwsPlace(instance_type=instance_type, usd_per_hour=usd_per_hour, **given)


@pytest.fixture
def quotas() -> Iterator[tuple[AwsReader, Stubber]]:
    """A reader whose Service Quotas gives recorded answers, checked against its service model."""
    client = boto3.client("service-quotas", "eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
    reader = AwsReader(make_session("eu-west-1"))
    reader._clients["service-quotas"] = client
    with Stubber(client) as stubber:
        yield reader, stubber


@pytest.mark.parametrize(
    ("instance_type", "is_multi_model", "image"),
    [
        ("ml.g5.xlarge", True, "py3"),
        ("ml.g6.xlarge", False, "py3"),
        ("ml.c5.xlarge", True, "py3-cpu"),
    ],
)
def test_candidates_share_an_endpoint_where_aws_allows_it(
    instance_type: str, image: str, *, is_multi_model: bool
) -> None:
    """Types on AWS's list and CPU types have a multi-model endpoint; others, endpoints in turn."""
    found = place(instance_type)
    assert found.is_multi_model is is_multi_model
    assert found.image.endswith(image)
    assert (found.inference_ami_version is None) is (image == "py3-cpu")


def test_unknown_hardware_is_refused() -> None:
    """A type whose CPUs are not known cannot be searched."""
    with pytest.raises(InvalidValueError, match=r"the hardware of ml.z9.large is not known"):
        place("ml.z9.large")


def test_budget_that_is_too_small_names_the_minutes_that_fit() -> None:
    """A search that may cost more than the budget is refused; both hints of the message lead to success."""
    with pytest.raises(InvalidValueError, match=r"20 minutes may cost 3.50 USD, got 3; set") as error:
        place(budget_usd=3).check_budget(20)
    assert "set --budget-minutes 10, or raise --budget-usd to 3.50" in str(error.value)
    place(budget_usd=3).check_budget(10)
    place(budget_usd=3.5).check_budget(20)
    place(usd_per_hour=1.41, budget_usd=3.29).check_budget(20)
    with pytest.raises(InvalidValueError, match=r"set --budget-minutes 13, or raise --budget-usd to 3\.29"):
        place(usd_per_hour=1.41, budget_usd=3).check_budget(20)
    with pytest.raises(InvalidValueError, match="got 1; raise --budget-usd"):
        place(budget_usd=1).check_budget(20)


def test_quota_is_found_on_a_later_page(quotas: tuple[AwsReader, Stubber]) -> None:
    """All pages are read, and the quota of the type's endpoints is taken, not that of its other uses."""
    reader, stubber = quotas
    other = {"QuotaName": "ml.g5.xlarge for training job usage", "Value": 7.0}
    wanted = {"QuotaName": "ml.g5.xlarge for endpoint usage", "Value": 2.0}
    stubber.add_response("list_service_quotas", {"Quotas": [other], "NextToken": "t"})
    stubber.add_response("list_service_quotas", {"Quotas": [wanted]})
    found = place(reader=reader)
    found.check_quota()
    assert (found.quota, found.runs_variants, found.warnings) == (2, True, [])


def test_quota_that_may_not_be_read_is_a_note(quotas: tuple[AwsReader, Stubber]) -> None:
    """Without the permission the search may start, and the plan says which permission is missing."""
    reader, stubber = quotas
    stubber.add_client_error("list_service_quotas", "AccessDeniedException")
    found = place(reader=reader)
    found.check_quota()
    assert "service-quotas:ListServiceQuotas" in found.warnings[0]
    assert found.runs_variants


@pytest.mark.parametrize(
    ("instance_type", "instances", "needed"), [("ml.g5.xlarge", 0, 1), ("ml.g6.xlarge", 1, 2)]
)
def test_quota_that_is_too_small_is_refused(
    quotas: tuple[AwsReader, Stubber], instance_type: str, instances: int, needed: int
) -> None:
    """0 is refused; endpoints in turn also need a second instance for the comparison."""
    reader, stubber = quotas
    for value in (instances, needed):
        quota = {"QuotaName": f"{instance_type} for endpoint usage", "Value": float(value)}
        stubber.add_response("list_service_quotas", {"Quotas": [quota]})
    with pytest.raises(InvalidValueError, match=f"must be at least {needed} in eu-west-1, got {instances}"):
        place(instance_type, reader=reader).check_quota()
    place(instance_type, reader=reader).check_quota()


def test_one_instance_is_enough_on_a_multi_model_endpoint(quotas: tuple[AwsReader, Stubber]) -> None:
    """With a quota of 1 the comparison cannot have two variants, but the search can run."""
    reader, stubber = quotas
    quota = {"QuotaName": "ml.g5.xlarge for endpoint usage", "Value": 1.0}
    stubber.add_response("list_service_quotas", {"Quotas": [quota]})
    found = place(reader=reader)
    found.check_quota()
    assert not found.runs_variants
    assert "The quota is 1 instance" in found.warnings[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--instance-type", "ml.g5.xlarge"], "--role: is required in AWS"),
        (["--instance-type", "ml.g5.xlarge", "--role", ROLE], "--bucket: is required in AWS"),
        (["--instance-type", "ml.g5.xlarge", "--role", "me", "--bucket", "b"], "--role: must be an ARN"),
        (["--budget-usd", "3"], "--budget-usd: is for searches in AWS; add --instance-type"),
    ],
)
def test_missing_arguments_are_named(
    tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An argument that a search in AWS lacks, or one that only it has, is an error before any call."""
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_text(f'backend: "python" max_batch_size: 8 {TENSORS}')
    assert main(["tune", str(tmp_path), "--latency-ms", "100", "--yes", *words]) == 2
    assert message in capsys.readouterr().err


def test_repository_and_limit_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --clean and --policy, the repository and the limit are required."""
    assert main(["tune"]) == 2
    assert "REPOSITORY is required" in capsys.readouterr().err
    assert main(["tune", "models"]) == 2
    assert "--latency-ms is required" in capsys.readouterr().err


def test_policies_name_the_role_and_the_bucket(capsys: pytest.CaptureFixture[str]) -> None:
    """--policy prints IAM policies without a call; only this role may be passed to SageMaker."""
    given = ["--role", ROLE, "--bucket", "archives"]
    assert main(["tune", "--policy", "caller", *given]) == 0
    statements = json.loads(capsys.readouterr().out)["Statement"]
    passed = [each for each in statements if each["Action"] == ["iam:PassRole"]]
    assert passed[0]["Resource"] == [ROLE]
    assert all("*" not in each["Action"] for each in statements)
    assert main(["tune", "--policy", "models", *given]) == 0
    assert "arn:aws:s3:::archives/constructs-triton-tune-*" in capsys.readouterr().out
