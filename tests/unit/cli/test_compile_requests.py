"""What ``constructs-triton compile`` reads and prints before anything is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from policy_sentry.querying.all import get_all_actions
from simulated_jobs import ROLE, write_onnx

from cdk_rehearse.services.request_shapes import conform
from constructs_triton.cli import main

TYPE = ["--instance-type", "ml.g5.xlarge"]
CONFIG = """name: "bert"
backend: "onnxruntime"
max_batch_size: 8
input { name: "INPUT__0" data_type: TYPE_FP32 dims: [512] }
input { name: "INPUT__1" data_type: TYPE_FP32 dims: [512] }
output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [2] }
dynamic_batching { preferred_batch_size: [2, 4] }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # nothing may be called
    write_onnx(tmp_path / "bert.onnx")
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The answer of a dry run; its requests are valid."""
    assert main(["compile", *words, "--role", ROLE, "--dry-run", "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    for job in document["jobs"]:
        assert conform("sagemaker", job["operation"], job["request"])[1] == []
    return document


def refused(
    capsys: pytest.CaptureFixture[str], *words: str, role: str = ROLE, code: int = 2
) -> str:
    assert main(["compile", *words, "--role", role, "--dry-run"]) == code
    return capsys.readouterr().err


def test_configuration_decides_shapes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """max_batch_size and the preferred batch come from the model's folder,
    which becomes one for TensorRT.
    """
    write_onnx(folder / "models" / "bert" / "2" / "model.onnx")
    (folder / "models" / "bert" / "config.pbtxt").write_text(CONFIG)
    document = printed(capsys, "models/bert", *TYPE, "--name", "encoder")
    assert "--optShapes=INPUT__0:4x512,INPUT__1:4x512" in document["jobs"][0]["trtexec_arguments"]
    assert "--maxShapes=INPUT__0:8x512,INPUT__1:8x512" in document["jobs"][0]["trtexec_arguments"]
    assert (
        'name: "encoder"\nplatform: "tensorrt_plan"\nbackend: "tensorrt"'
        in document["config_pbtxt"]
    )
    assert "preferred_batch_size" in document["config_pbtxt"]
    given = printed(
        capsys, "models/bert", *TYPE, "--max-batch-size", "32", "--opt-batch-size", "16"
    )
    assert "--optShapes=INPUT__0:16x512,INPUT__1:16x512" in given["jobs"][0]["trtexec_arguments"]


def test_configuration_is_compared_with_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong name or size is found before a GPU is paid for."""
    (folder / "config.pbtxt").write_text(
        CONFIG.replace("INPUT__1", "MASK").replace("dims: [2]", "dims: [3]")
    )
    message = refused(capsys, "bert.onnx", *TYPE, "--config", "config.pbtxt", code=1)
    assert 'unexpected inference input "MASK"' in message or "MASK" in message
    assert "OUTPUT__0" in message


def test_batch_of_given_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    """If every input has its sizes, the largest batch follows from them."""
    sizes = ["--input", "INPUT__0=1..2..6,512", "--input", "INPUT__1=1..2..4,512"]
    assert "max_batch_size: 4" in printed(capsys, "bert.onnx", *TYPE, *sizes)["config_pbtxt"]


def test_tensors_that_tensorrt_8_narrows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TensorRT 8 reads INT64 inputs as INT32, so the configuration has INT32."""
    write_onnx(folder / "ids.onnx", inputs={"ids": ["batch", 4]}, data_type=7)
    words = ["ids.onnx", *TYPE, "--max-batch-size", "2"]
    assert "TYPE_INT64" in printed(capsys, *words)["config_pbtxt"]
    assert "TYPE_INT32" in printed(capsys, *words, "--image-version", "24.03")["config_pbtxt"]


def test_every_setting_reaches_the_request(capsys: pytest.CaptureFixture[str]) -> None:
    """What companies require of jobs can be set: keys, network, tags, disk, time and bucket."""
    settings = [
        "--bucket",
        "plans",
        "--prefix",
        "team/",
        "--region",
        "eu-central-1",
        "--max-seconds",
        "600",
        "--volume-size",
        "900",
        "--kms-key",
        "arn:aws:kms:eu-central-1:123456789012:key/k",
        "--subnet",
        "subnet-1",
        "--security-group",
        "sg-1",
        "--no-network-isolation",
        "--tag",
        "team=search",
        "--build-on",
        "ml.g5.2xlarge",
    ]
    for kind in ("processing", "training"):
        words = ["bert.onnx", *TYPE, "--max-batch-size", "2", "--job", kind, *settings]
        request = printed(capsys, *words)["jobs"][0]["request"]
        text = json.dumps(request)
        assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 600}
        assert '"InstanceType": "ml.g5.2xlarge", "VolumeSizeInGB": 450' in text, (
            "at most the local NVMe"
        )
        assert '"VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}' in text
        assert '"EnableNetworkIsolation": false' in text
        assert '"KmsKeyId": "arn:aws:kms:eu-central-1:123456789012:key/k"' in text
        assert {"Key": "team", "Value": "search"} in request["Tags"]
        assert "s3://plans/team/models/" in text


def test_key_is_that_of_everything_that_determines_the_plan(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Model, options, image and GPU change the key; Regions, buckets,
    names and sizes of instances do not.
    """

    def key(
        *words: str, model: str = "bert.onnx", gpu: str = "ml.g5.xlarge", batch: str = "2"
    ) -> str:
        words = (model, "--instance-type", gpu, "--max-batch-size", batch, *words)
        return str(printed(capsys, *words)["jobs"][0]["key"])

    write_onnx(folder / "other.onnx", doc="changed")
    same = [
        key(),
        key("--region", "eu-central-1"),
        key("--name", "b"),
        key(gpu="ml.g5.48xlarge"),
        key("--bucket", "plans"),
    ]
    assert len(set(same)) == 1
    changed = [
        key(model="other.onnx"),
        key(batch="4"),
        key("--precision", "fp16"),
        key("--image-version", "25.09"),
        key("--image", "123456789012.dkr.ecr.us-east-1.amazonaws.com/tritonserver:26.05-py3"),
        key(gpu="ml.g4dn.xlarge"),
    ]
    assert len({*same, *changed}) == 7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bert.onnx"], "--instance-type: is missing"),
        (TYPE, "MODEL: is missing"),
        (["none.onnx", *TYPE], "none.onnx: does not exist; pass the path of an ONNX file"),
        (
            ["bert.onnx", *TYPE],
            "bert.onnx: the batch dimension is dynamic, so a plan needs the largest batch; set",
        ),
        ([".", *TYPE], ".: has no 1/model.onnx; pass the path of the ONNX file"),
        (
            ["model.pt", *TYPE],
            "model.pt: is not an ONNX file; export it where your model's code is",
        ),
        (
            ["bert.onnx", *TYPE, "--config", "none.pbtxt"],
            "none.pbtxt: cannot be read (no such file or directory)",
        ),
        (
            ["bert.onnx", *TYPE, "--config", "py.pbtxt"],
            'must be for the backend onnxruntime or tensorrt, got "python"',
        ),
        (
            ["bert.onnx", *TYPE, "--max-batch-size", "2", "--opt-batch-size", "4"],
            "must be at most max_batch_size, 2",
        ),
        (
            ["bert.onnx", *TYPE, "--bucket", "s3://b"],
            '--bucket: must be the name of a bucket, got "s3://b"',
        ),
        (
            ["bert.onnx", *TYPE, "--prefix", "x"],
            '--prefix: must end with "/" and not begin with it, got "x"',
        ),
        (
            ["bert.onnx", *TYPE, "--subnet", "s"],
            "--subnet, --security-group: a job in a VPC needs both",
        ),
        (["bert.onnx", *TYPE, *["--tag", "a=b"] * 50], "--tag: must be at most 49, got 50"),
        (
            ["bert.onnx", "--instance-type", "ml.p3.2xlarge"],
            "needs GPUs of compute capability 7.5 or newer",
        ),
        (
            [
                "bert.onnx",
                "--instance-type",
                "ml.p4d.24xlarge",
                "--max-batch-size",
                "2",
                "--job",
                "processing",
            ],
            "--job: processing jobs do not have ml.p4d.24xlarge (A100); use --job training",
        ),
        (
            ["bert.onnx", *TYPE, "--max-batch-size", "2", "--region", "ap-southeast-1"],
            "--region: processing jobs have no g5 instances in ap-southeast-1; use --job training",
        ),
    ],
)
def test_wrong_arguments(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    """Each error names the option or the file, and the fix."""
    (folder / "model.pt").touch()
    (folder / "py.pbtxt").write_text('backend: "python"\n')
    assert message in refused(capsys, *words)


def test_a_time_limit_that_sagemaker_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    """The parser knows the longest run of a job."""
    with pytest.raises(SystemExit):
        main(["compile", "bert.onnx", *TYPE, "--max-seconds", "777601"])
    assert (
        "--max-seconds: must be from 1 to 777600, got 777601; lower it to 777600"
        in capsys.readouterr().err
    )


def test_model_that_is_wrong_has_exit_code_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that was read and is no model is wrong;
    one that does not exist could not be looked at.
    """
    (folder / "text.onnx").write_text("version https://example.com\n")
    assert "text.onnx: Protobuf parsing failed" in refused(capsys, "text.onnx", *TYPE, code=1)
    (folder / "models" / "1").mkdir(parents=True)
    (folder / "models" / "1" / "model.onnx").symlink_to("absent.onnx")
    assert "models/1/model.onnx" in refused(capsys, "models/1/model.onnx", *TYPE, code=2)


def test_role_and_region(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are found in the environment; without them, and for a name of a role,
    there is an error.
    """
    words = ["compile", "bert.onnx", *TYPE, "--max-batch-size", "2", "--dry-run"]
    assert main(words) == 2
    assert (
        "--role: must be the ARN of the job's role; set --role, or the variable"
        in capsys.readouterr().err
    )
    monkeypatch.setenv("CONSTRUCTS_TRITON_COMPILE_ROLE", ROLE)
    assert main([*words, "--json"]) == 0
    assert (
        "s3://sagemaker-us-east-1-123456789012/constructs-triton/compile/"
        in capsys.readouterr().out
    )
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert main(words) == 2
    assert "no Region is configured; set --region" in capsys.readouterr().err
    assert '--role: must be the ARN of a role, got "PlanJobs"' in refused(
        capsys, "bert.onnx", "--region", "us-east-1", role="PlanJobs"
    )


def test_external_data_is_uploaded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The weights beside a model keep their paths; those elsewhere are an error."""
    (folder / "big" / "data").mkdir(parents=True)
    model = onnx.load("bert.onnx")
    onnx.save(
        model, "big/m.onnx", save_as_external_data=True, location="data/w.bin", size_threshold=0
    )
    words = ["big/m.onnx", *TYPE, "--max-batch-size", "2"]
    (job,) = printed(capsys, *words)["jobs"]
    assert {"path": "big/data/w.bin"} in job["uploads"].values()
    content = (folder / "big" / "m.onnx").read_bytes()
    (folder / "big" / "m.onnx").write_bytes(content.replace(b"data/w.bin", b"../../w.bi"))
    assert "../../w.bi" in refused(capsys, *words, code=1)


def test_dry_run_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json the essentials are printed, with what is not settled."""
    words = ["bert.onnx", *TYPE, "--max-batch-size", "2", "--role", ROLE, "--dry-run"]
    assert main(["compile", *words, "--image", "example.com/triton:1"]) == 0
    out = capsys.readouterr().out
    assert "(TensorRT version not published)" in out
    assert "not settled: the driver of the hosts" in out
    assert "Nothing was called." in out


@pytest.mark.parametrize("kind", ["job", "caller"])
@pytest.mark.parametrize("more", [[], ["--kms-key", "arn:aws:kms:us-east-1:123456789012:key/k"]])
def test_policies_have_existing_actions(
    capsys: pytest.CaptureFixture[str], kind: str, more: list[str]
) -> None:
    """Every action of the two policies exists, and each side may read and write the bucket."""
    network = ["--subnet", "subnet-1", "--security-group", "sg-1"]
    words = ["--policy", kind, "--role", ROLE, "--bucket", "plans", *network, *more]
    assert main(["compile", *words]) == 0
    policy = json.loads(capsys.readouterr().out)
    actions = {action for each in policy["Statement"] for action in each["Action"]}
    known = {each.lower() for each in get_all_actions()}
    assert {each for each in actions if each.lower() not in known} == set()
    assert {"s3:GetObject", "s3:PutObject", "s3:ListBucket"} < actions
    assert ("kms:Decrypt" in actions) is bool(more)
    assert ("iam:PassRole" in actions) is (kind == "caller")
