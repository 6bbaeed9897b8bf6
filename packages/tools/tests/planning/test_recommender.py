"""Jobs of Inference Recommender: their requests, and their results as measurements."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import Requirement, cheapest, plan_all, read_measurements
from constructs_triton_tools.planning.recommender import read_recommendations, write_measurements
from constructs_triton_tools.planning.recommender_request import Phase, RecommenderRequest

ROLE = "arn:aws:iam::111122223333:role/recommender"
TIME = "2026-01-05T00:00:00"


def recommendation(instance_type: str, **values: Any) -> dict[str, Any]:
    metrics = {
        "CostPerHour": 0.94,
        "CostPerInference": 1.17e-5,
        "MaxInvocations": 1335,
        "ModelLatency": 499,
        "CpuUtilization": float("nan"),
    }
    parameters = [{"Key": "MODEL", "ValueType": "string", "Value": values.pop("model", "trt-db")}]
    count = values.pop("count", 1)
    return {
        "RecommendationId": f"bert/{instance_type}",
        "Metrics": {**metrics, **values},
        "EndpointConfiguration": {
            "EndpointName": "sm-epc-1",
            "VariantName": "sm-epc-1",
            "InstanceType": instance_type,
            "InitialInstanceCount": count,
        },
        "ModelConfiguration": {
            "EnvironmentParameters": parameters if parameters[0]["Value"] else []
        },
    }


def job(
    *recommendations: dict[str, Any], status: str = "COMPLETED", **values: Any
) -> dict[str, Any]:
    """A job of the shape of AWS's benchmark of BERT."""
    return {
        "JobName": "bert",
        "JobType": "Advanced",
        "JobArn": "arn:aws:sagemaker:eu-west-1:111122223333:inference-recommendations-job/bert",
        "RoleArn": ROLE,
        "Status": status,
        "CreationTime": TIME,
        "LastModifiedTime": TIME,
        "InputConfig": {"ModelName": "bert"},
        "InferenceRecommendations": list(recommendations),
        **values,
    }


def bert_job() -> dict[str, Any]:
    cheap = recommendation(
        "ml.g4dn.xlarge", MaxInvocations=3192, ModelLatency=783, CostPerHour=0.7364
    )
    large = recommendation(
        "ml.g4dn.12xlarge", MaxInvocations=5356, ModelLatency=278, CostPerHour=4.89
    )
    return job(recommendation("ml.g4dn.2xlarge"), cheap, large)


def shape(name: str, way: str) -> Any:
    model = botocore.session.get_session().get_service_model("sagemaker").operation_model(name)
    return getattr(model, f"{way}_shape")


def test_job_of_the_benchmark_becomes_its_plan(tmp_path: Path) -> None:
    """A job with the shape that AWS returns gives 23 instances at 21.62 an hour,
    also through a file.
    """
    described = bert_job()
    output = shape("DescribeInferenceRecommendationsJob", "output")
    assert not ParamValidator().validate(described, output).has_errors()
    write_measurements(tmp_path / "b.csv", read_recommendations(json.loads(json.dumps(described))))
    measurements = read_measurements(tmp_path / "b.csv")
    best = cheapest(plan_all(measurements, Requirement(requests_per_second=500, latency_ms=500)))
    assert (best.initial_instance_count, best.cost_per_hour) == (23, Decimal("21.62"))
    assert str(best) == "MODEL=trt-db on ml.g4dn.2xlarge"


def test_tests_without_a_result_are_left_out() -> None:
    """Serverless endpoints have no instance type, and a failed test has no throughput."""
    serverless = recommendation("ml.g5.xlarge")
    del serverless["EndpointConfiguration"]["InstanceType"]
    failed = recommendation("ml.g5.xlarge", MaxInvocations=None)
    (kept,) = read_recommendations(
        job(serverless, failed, recommendation("ml.g5.2xlarge", model=""))
    )
    assert (kept.configuration, kept.instance_type) == ("bert", "ml.g5.2xlarge")


def test_price_is_that_of_one_instance() -> None:
    """The cost of an endpoint is divided by its instances; a job without costs gives no price."""
    pair = recommendation("ml.g5.xlarge", count=2, CostPerHour=2.8161001205444336)
    assert read_recommendations(job(pair))[0].price_per_hour == Decimal("1.4081")
    assert (
        read_recommendations(job(recommendation("ml.g5.xlarge", CostPerHour=None)))[
            0
        ].price_per_hour
        is None
    )


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (job(status="IN_PROGRESS"), r"job bert: must be COMPLETED, got IN_PROGRESS; wait for it"),
        (job(status="FAILED", FailureReason="no image"), r"got FAILED \(no image\)"),
        (job(), r"job bert: has no results for instances; look at its steps"),
        ({}, r"job: must be the output of `aws sagemaker describe-inference-recommendations-job`"),
        ([], r"job: must be the output of"),
        (
            job(recommendation("ml.g5.xlarge", count=0)),
            r"job bert: InitialInstanceCount: .* got 0; save the",
        ),
        (
            job(recommendation("ml.g5.xlarge", CostPerHour="x")),
            r'job bert: CostPerHour: .* got "x"',
        ),
        (
            job(recommendation("ml.g5.xlarge", CostPerHour=1e300)),
            r"job bert: CostPerHour: .* got 1e\+300",
        ),
    ],
)
def test_unusable_job_is_refused(described: Any, message: str) -> None:
    """The message has the status and the next step."""
    with pytest.raises(InvalidValueError, match=message):
        read_recommendations(described)


def test_unwritable_file_is_an_error(tmp_path: Path) -> None:
    """The message has the path."""
    with pytest.raises(InvalidValueError, match=r"absent.*cannot be written"):
        write_measurements(tmp_path / "absent" / "b.csv", [])


# --- requests -------------------------------------------------------------------------------------


def request(**values: Any) -> RecommenderRequest:
    """The job of AWS's benchmark of BERT."""
    settings: dict[str, Any] = {
        "job_name": "bert",
        "role_arn": ROLE,
        "model_name": "bert",
        "instance_types": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"],
        "phases": [Phase(2, 2, 1500)],
        "max_invocations": 30000,
        "latency_ms": 500,
    }
    return RecommenderRequest(**{**settings, **values})


def test_request_is_that_of_the_benchmark() -> None:
    """Two users at the start, two more each minute, for 25 minutes."""
    made = request(
        environment={"OMP_NUM_THREADS": ["2", "4"]},
        max_parallel_tests=2,
        container={
            "Domain": "NATURAL_LANGUAGE_PROCESSING",
            "Task": "FILL_MASK",
            "Framework": "PYTORCH",
        },
    ).to_request()
    assert (
        not ParamValidator()
        .validate(made, shape("CreateInferenceRecommendationsJob", "input"))
        .has_errors()
    )
    config = made["InputConfig"]
    assert config["TrafficPattern"] == {
        "TrafficType": "PHASES",
        "Phases": [{"InitialNumberOfUsers": 2, "SpawnRate": 2, "DurationInSeconds": 1500}],
    }
    assert made["StoppingConditions"] == {
        "MaxInvocations": 30000,
        "ModelLatencyThresholds": [{"Percentile": "P95", "ValueInMilliseconds": 500}],
    }
    ranges = [{"Name": "OMP_NUM_THREADS", "Value": ["2", "4"]}]
    assert config["EndpointConfigurations"][1] == {
        "InstanceType": "ml.g4dn.2xlarge",
        "EnvironmentParameterRanges": {"CategoricalParameterRanges": ranges},
    }
    assert config["ResourceLimit"] == {"MaxParallelOfTests": 2}
    assert config["ContainerConfig"]["Task"] == "FILL_MASK"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"job_name": "bert_trt"}, r"job_name: must be 1 to 64 letters, digits and hyphens"),
        ({"model_name": None}, r"model_name: exactly one model is tested"),
        ({"model_package_version_arn": "arn:x"}, r"model_name: exactly one model is tested"),
        ({"instance_types": []}, r"instance_types: must have from 1 to 10 entries, got 0"),
        ({"instance_types": ["g5.xlarge"]}, r'did you mean "ml\.g5\.xlarge"'),
        ({"phases": []}, r"phases: must have at least 1 entries"),
        ({"environment": {"A": []}}, r'environment\["A"\]: must have from 1 to 3 entries'),
        (
            {"environment": {str(n): ["1"] for n in range(6)}},
            r"environment: must have from 1 to 5 entries",
        ),
        ({"latency_ms": 0}, r"latency_ms: must be from 1"),
        ({"role_arn": "role"}, r"request: botocore refuses it .*RoleArn"),
    ],
)
def test_invalid_request_is_refused(values: dict[str, Any], message: str) -> None:
    """The message has the name and the range; botocore's model of the API checks the rest."""
    with pytest.raises(InvalidValueError, match=message):
        request(**values).to_request()
