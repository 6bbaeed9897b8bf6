"""``constructs-triton compile``, with jobs that run the real script against
a simulated SageMaker.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from types import SimpleNamespace

import aws_cdk as cdk
import boto3
import pytest
from aws_cdk.assertions import Annotations, Match
from moto.logs.responses import LogsResponse
from moto.sagemaker.exceptions import ValidationError
from simulated_jobs import ROLE, SimulatedJobs, simulated_jobs, write_onnx

from constructs_triton import (
    InstancePool,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
)
from constructs_triton.cli import main
from constructs_triton_tools.aws import waiting
from constructs_triton_tools.building.plans import plan_job
from triton_model_check.model_repository import ModelRepository

JOB = ["--role", ROLE, "--bucket", "plans", "--max-batch-size", "16"]


@pytest.fixture
def jobs(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SimulatedJobs]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        plan_job, "PAUSE_SECONDS", 0.2
    )  # a request takes longer than a shorter pause
    write_onnx(tmp_path / "bert.onnx")
    with simulated_jobs(tmp_path / "jobs", monkeypatch) as simulated:
        yield simulated


def compile_model(*words: str) -> int:
    return main(["compile", "bert.onnx", "--instance-type", "ml.g4dn.2xlarge", *JOB, *words])


def test_plan_is_built_once(
    jobs: SimulatedJobs, own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job writes a repository that passes the checks;
    this machine and the bucket then have the plan.
    """
    assert compile_model("--yes", "--precision", "fp16", "--json") == 0
    (plan,) = json.loads(capsys.readouterr().out)["plans"]
    assert plan["origin"] == "a job"
    assert plan["manifest"]["tensorrt"] == "10.16.1.11"
    assert plan["manifest"]["driver"] == "580.65.06"
    assert ModelRepository.from_directory("compiled/T4").check().errors == ()
    assert "Engine built in" in Path("compiled/logs/T4/bert.log").read_text()
    assert compile_model("--precision", "fp16", "--json") == 0
    assert json.loads(capsys.readouterr().out)["plans"][0]["origin"] == "this machine"
    (next((own_cache / "plans").iterdir()) / "plan.json").unlink()
    assert compile_model("--precision", "fp16", "--json") == 0
    assert json.loads(capsys.readouterr().out)["plans"][0]["origin"] == "the bucket"
    assert len(jobs.requests) == 1


def test_plan_is_compared_with_its_configuration(
    jobs: SimulatedJobs, own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch above the profile is an error, also of a plan that an earlier version has kept."""
    assert compile_model("--yes", "--json") == 0
    written = Path("compiled/T4/bert/plan.json").read_text()
    kept = next((own_cache / "plans").iterdir()) / "plan.json"
    assert (json.loads(kept.read_text())["inputs"], len(json.loads(written)["inputs"])) == ([], 2)
    assert compile_model("--json") == 0
    assert Path("compiled/T4/bert/plan.json").read_text() == written
    config = Path("compiled/T4/bert/config.pbtxt")
    config.write_text(config.read_text().replace("max_batch_size: 16", "max_batch_size: 64"))
    capsys.readouterr()
    assert main(["check", "compiled/T4", "--instance-type", "ml.g4dn.xlarge"]) == 1
    assert (
        "specified max-batch 64 but TensorRT engine only supports max-batch 16"
        in capsys.readouterr().out
    )


def test_progress_price_and_cost(jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str]) -> None:
    """Before a job its price, limit and risks are printed, during it its log,
    and after it its cost.
    """
    assert compile_model("--yes") == 0
    printed = capsys.readouterr()
    assert "instance     ml.g4dn.xlarge (T4), for ml.g4dn.2xlarge\n" in printed.err
    assert "price        0.9 USD per hour\n" in printed.err
    assert "time limit   7200 s, so at most 1.80 USD" in printed.err
    assert "not settled: the driver of the hosts" in printed.err
    assert "  &&&& PASSED TensorRT.trtexec\n" in printed.err
    assert "bytes, from a job\n" in printed.out
    assert re.search(r"cost about 0\.\d{4} USD", printed.out)


def test_start_is_confirmed(jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --yes and without a terminal nothing starts."""
    assert compile_model() == 2
    error = "error: --yes: nothing was done, because no terminal can answer; add --yes"
    assert error in capsys.readouterr().err
    assert not jobs.requests


FAILURES = [
    (
        "FAIL_operator",
        "Tesla T4, 7.5, 580",
        "does not support an operator of the model; export the model",
    ),
    (
        "FAIL_memory",
        "Tesla T4, 7.5, 580",
        "the GPU has too little memory for the build; set --workspace",
    ),
    (
        "FAIL_driver",
        "Tesla T4, 7.5, 470",
        "its driver cannot run the image; SageMaker does not let you",
    ),
    ("", None, "nvidia-smi: NVIDIA-SMI has failed; the GPU or its driver cannot run the image"),
    (
        "",
        "NVIDIA A10G, 8.6, 580",
        "expected a GPU of compute capability 7.5, got NVIDIA A10G of 8.6",
    ),
]
"""What the job finds: a word for ``trtexec``, the GPU, and what the error says."""


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        *(("processing", each) for each in FAILURES),
        ("training", FAILURES[0]),
        ("training", FAILURES[3]),
    ],
)
def test_failure_has_cause_and_fix(
    jobs: SimulatedJobs,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    failure: tuple[str, str | None, str],
) -> None:
    """A failed job names the cause and the fix, and leaves no plan behind."""
    doc, jobs.gpu, expected = failure
    write_onnx(Path("bert.onnx"), doc=doc)
    assert compile_model("--yes", "--job", kind) == 1
    assert expected in capsys.readouterr().err
    assert not Path("compiled").exists()


def test_option_that_tensorrt_11_lacks(
    jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the image has another TensorRT than published, the option that it refuses is named."""
    jobs.environment["TENSORRT_VERSION"] = "11.1.0.106"
    assert compile_model("--yes", "--precision", "fp16") == 1
    assert (
        "Unknown option: --fp16; the TensorRT of the image does not have an option"
        in capsys.readouterr().err
    )


def test_quota_is_named(jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str]) -> None:
    """A quota of 0 names the quota to raise."""
    message = (
        "The account-level service limit 'ml.g4dn.xlarge for processing job usage' is 0 Instances"
    )
    jobs.refusal = ("ResourceLimitExceeded", message)
    assert compile_model("--yes") == 2
    printed = capsys.readouterr().err
    assert (
        f"ResourceLimitExceeded: {message}; the account's quota does not allow the instance"
        in printed
    )
    assert 'ask for a higher quota "ml.g4dn.xlarge for processing job usage"' in printed


@pytest.mark.parametrize("kind", ["processing", "training"])
def test_interruption_stops_the_job(
    jobs: SimulatedJobs,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """Ctrl-C stops the job, whose script still reports, and the exit code is 130."""
    write_onnx(Path("bert.onnx"), doc="HANG")

    def interrupt(_: float) -> None:
        sleep(0.05)
        if any("RUNNING" in each.read_text() for each in jobs.root.rglob("trtexec.log")):
            raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "time", SimpleNamespace(sleep=interrupt))
    assert compile_model("--yes", "--job", kind) == 130
    assert "stopping the job" in capsys.readouterr().err
    ((name, _),) = jobs.requests.items()
    jobs.wait(name)
    assert jobs.status(name) == "Stopped"
    assert (
        json.loads((jobs.root / name / "opt/ml/output/message").read_text())["stage"] == "stopped"
    )


def test_several_gpus(jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str]) -> None:
    """One plan for each type of GPU, in a repository of its own;
    the A100 is built by a training job.
    """
    types = ["--instance-type", "ml.g4dn.xlarge", "--instance-type", "ml.p4d.24xlarge", "--json"]
    jobs.gpu = "Tesla T4, 7.5, 580"
    assert compile_model("--yes", *types[:2], "--json") == 0
    jobs.gpu = "NVIDIA A100, 8.0, 580"
    capsys.readouterr()
    assert compile_model("--yes", *types) == 0
    plans = json.loads(capsys.readouterr().out)["plans"]
    assert [(each["folder"], each["origin"]) for each in plans] == [
        ("compiled/T4/bert", "this machine"),
        ("compiled/A100/bert", "a job"),
    ]
    assert plans[0]["instance_types"] == ["ml.g4dn.2xlarge", "ml.g4dn.xlarge"]
    assert plans[1]["instance_seconds"] == 7


def test_plans_of_two_gpus_become_one_archive(
    jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two jobs run one after the other; each plan has its own key, and an endpoint gets both."""
    jobs.gpus["ml.g5.xlarge"] = "NVIDIA A10G, 8.6, 580.65.06"
    assert compile_model("--yes", "--instance-type", "ml.g5.2xlarge", "--json") == 0
    plans = json.loads(capsys.readouterr().out)["plans"]
    assert [each["manifest"]["gpu_model"] for each in plans] == ["T4", "A10G"]
    assert len({each["manifest"]["key"] for each in plans}) == 2
    first, second = (jobs.times(each["manifest"]["job"]) for each in plans)
    assert first[1] <= second[0]
    source = ModelSource.from_compiled(
        "compiled", instance_type=types("ml.g4dn.2xlarge", "ml.g5.2xlarge")
    )
    app = cdk.App(outdir=str(tmp_path / "cdk.out"), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Test")
    TritonEndpoint(
        stack,
        "Endpoint",
        model_repository=TritonModelRepository(stack, "Models", source=source),
        instance_pools=[InstancePool(each) for each in types("ml.g4dn.2xlarge", "ml.g5.2xlarge")],
    )
    Annotations.from_stack(stack).has_no_error("*", Match.any_value())


def test_first_plan_is_kept_if_the_second_fails(
    jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failed job leaves the plans of the other GPUs,
    so the next run starts only what is missing.
    """
    words = ["--yes", "--instance-type", "ml.g5.2xlarge"]
    assert compile_model(*words) == 1
    assert "expected a GPU of compute capability 8.6" in capsys.readouterr().err
    assert [each.name for each in Path("compiled").iterdir() if each.name != "logs"] == ["T4"]
    jobs.gpus["ml.g5.xlarge"] = "NVIDIA A10G, 8.6, 580.65.06"
    jobs.requests.clear()
    assert compile_model(*words) == 0
    assert len(jobs.requests) == 1
    assert Path("compiled/A10G/bert/1/model.plan").is_file()


def types(*names: str) -> list[InstanceType]:
    return [InstanceType.of(name) for name in names]


def test_job_of_another_run_is_joined(
    jobs: SimulatedJobs, own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that lost its connection starts no second job: the next one waits for the first."""
    assert compile_model("--yes") == 0
    s3 = boto3.client("s3")
    (manifest,) = [
        each["Key"]
        for each in s3.list_objects_v2(Bucket="plans")["Contents"]
        if each["Key"].endswith("plan.json")
    ]
    s3.delete_object(Bucket="plans", Key=manifest)
    s3.close()
    (next((own_cache / "plans").iterdir()) / "plan.json").unlink()
    assert compile_model("--yes") == 0
    assert "builds this plan already, waiting for it" in capsys.readouterr().err
    assert len(jobs.requests) == 1
    timing = [each for each in jobs.stored_keys() if each.endswith("T4/timing.cache")]
    assert timing, "the timing cache of the first build is kept"


def test_dry_run_is_what_starts(
    jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed request is the one that is sent, but for the time in its name;
    and nothing is called.
    """
    address = os.environ["AWS_ENDPOINT_URL"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert compile_model("--dry-run", "--json") == 0
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    assert compile_model("--yes") == 0
    ((name, sent),) = jobs.requests.items()
    printed = json.loads(
        json.dumps(job["request"]).replace(job["request"]["ProcessingJobName"], name)
    )
    assert printed == sent
    assert set(job["uploads"]) == {
        each.replace(name, job["request"]["ProcessingJobName"]) for each in jobs.uploads()
    }


def test_question_on_a_terminal(
    jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only y starts the job; an empty line does not."""
    answers = iter(["\n", "y\n"])
    monkeypatch.setattr(
        sys, "stdin", SimpleNamespace(isatty=lambda: True, readline=lambda: next(answers))
    )
    assert compile_model() == 2
    assert "--yes: nothing was done, because the answer was no" in capsys.readouterr().err
    assert not jobs.requests
    assert compile_model() == 0
    assert "Start this job, for at most 1.80 USD? [y/N]" in capsys.readouterr().err


def test_folder_of_another_model_is_kept(
    jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that this command has not written is not replaced, and no job starts for it."""
    other = Path("compiled/T4/bert/config.pbtxt")
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    assert compile_model("--yes") == 2
    assert "already exists and was not compiled; choose another folder" in capsys.readouterr().err
    assert other.read_text() == "mine"
    assert not jobs.requests


def test_output_that_cannot_be_written(
    jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan is kept in the cache, so the next run needs no job."""
    Path("compiled").touch()
    assert compile_model("--yes") == 2
    assert "cannot be written (not a directory); choose a folder" in capsys.readouterr().err
    Path("compiled").unlink()
    assert compile_model() == 0
    assert len(jobs.requests) == 1


def test_cache_that_cannot_be_written(
    jobs: SimulatedJobs, own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the folder and the variable, before a job starts."""
    own_cache.write_text("")
    assert compile_model("--yes") == 2
    assert "set CONSTRUCTS_TRITON_CACHE_DIR to a folder" in capsys.readouterr().err
    assert not jobs.requests


def test_damaged_plan_in_the_bucket_is_built_again(
    jobs: SimulatedJobs, own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan that differs from its manifest, or a note about an unknown job, does not count."""
    assert compile_model("--yes") == 0
    s3 = boto3.client("s3")
    (plan,) = [
        each for each in jobs.stored_keys() if "/plans/" in each and each.endswith("model.plan")
    ]
    folder = plan.removesuffix("model.plan")
    s3.put_object(Bucket="plans", Key=plan, Body=b"ftrt" + bytes(20) + bytes((10, 16, 1, 11)))
    s3.put_object(
        Bucket="plans", Key=f"{folder}job.json", Body=b'{"name": "plan-gone", "kind": "training"}'
    )
    s3.close()
    (next((own_cache / "plans").iterdir()) / "plan.json").write_text("{}")
    jobs.requests.clear()
    assert compile_model("--yes") == 0
    assert "is damaged, and is built again" in capsys.readouterr().err
    assert len(jobs.requests) == 1


def test_unreadable_log_is_noted_once(
    jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the permission for the log the job goes on, and its result is used."""

    def deny(_: object) -> None:
        error = ValidationError("denied")
        error.code = "AccessDeniedException"
        raise error

    monkeypatch.setattr(LogsResponse, "filter_log_events", deny)
    jobs.environment["TRTEXEC_SECONDS"] = "0.5"
    assert compile_model("--yes") == 0
    assert capsys.readouterr().err.count("logs:FilterLogEvents: access denied") == 1


def test_bucket_that_does_not_exist(
    jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error of S3 has the operation and the words of AWS."""
    assert compile_model("--yes", "--bucket", "absent") == 2
    assert "NoSuchBucket" in capsys.readouterr().err


def test_aws_that_cannot_be_reached(
    jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a connection there is an error of ours."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    assert compile_model("--yes") == 2
    assert "AWS: cannot be reached" in capsys.readouterr().err


def test_time_limit(jobs: SimulatedJobs, capsys: pytest.CaptureFixture[str]) -> None:
    """A job that SageMaker stops has the option to raise."""
    jobs.ends_as = "Stopped"
    assert compile_model("--yes") == 1
    assert (
        "was stopped; someone has stopped it, or it reached the limit of 7200 seconds"
        in capsys.readouterr().err
    )


def test_encrypted_results(jobs: SimulatedJobs) -> None:
    """With a key, what this command writes is encrypted with it, as the results of the job are."""
    key = "arn:aws:kms:us-east-1:123456789012:key/k"
    assert compile_model("--yes", "--kms-key", key) == 0
    s3 = boto3.client("s3")
    kept = [each for each in jobs.stored_keys() if not each.rpartition("/")[0].endswith("/output")]
    found = {each: s3.head_object(Bucket="plans", Key=each).get("SSEKMSKeyId") for each in kept}
    s3.close()
    assert set(found.values()) == {key}
