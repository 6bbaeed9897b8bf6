"""A SageMaker that runs jobs: moto's API, with requests checked by botocore's shapes, and the real
script.

A job is a process on this machine. Its folders below ``/opt/ml`` are in a scratch folder. Small
programs take the place of ``trtexec``, of ``nvidia-smi``, and of NVIDIA's entry point.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import onnx
import pytest
from moto.core.responses import ActionResult, EmptyResult
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.sagemaker.exceptions import ValidationError
from moto.sagemaker.responses import SageMakerResponse
from null_server import Received, run_null_server
from onnx import TensorProto, helper, numpy_helper

from cdk_rehearse.services.request_shapes import conform
from cdk_rehearse.stacks.server import serving

TRTEXEC = Path(__file__).with_name("trtexec.py")
ROLE = "arn:aws:iam::123456789012:role/PlanJobs"
GROUPS = {"processing": "/aws/sagemaker/ProcessingJobs", "training": "/aws/sagemaker/TrainingJobs"}


def write_onnx(
    path: Path,
    *,
    inputs: dict[str, list[Any]] | None = None,
    data_type: int = TensorProto.FLOAT,
    output: tuple[str, int] = ("OUTPUT__0", 2),
    doc: str = "",
) -> Path:
    """Write a small ONNX model: the mean of each row of the first input, times a row of weights."""
    shapes = inputs or {"INPUT__0": ["batch", 512], "INPUT__1": ["batch", 512]}
    first, first_dims = next(iter(shapes.items()))
    name, size = output
    nodes = [
        helper.make_node("Cast", [first], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Flatten", ["numbers"], ["rows"]),
        helper.make_node("ReduceMean", ["rows"], ["means"], axes=[1]),
        helper.make_node("MatMul", ["means", "weights"], [name]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        inputs=[
            helper.make_tensor_value_info(tensor, data_type, dims)
            for tensor, dims in shapes.items()
        ],
        outputs=[helper.make_tensor_value_info(name, TensorProto.FLOAT, [first_dims[0], size])],
        initializer=[numpy_helper.from_array(np.full((1, size), 0.5, np.float32), "weights")],
        doc_string=doc,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))
    return path


class SimulatedJobs:
    """The jobs of an account.

    ``gpu`` is what ``nvidia-smi`` prints; ``None`` means that it fails. ``gpus`` has another text
    for some instance types.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.gpu: str | None = "Tesla T4, 7.5, 580.65.06"
        self.gpus: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.requests: dict[str, dict[str, Any]] = {}
        self.refusal: tuple[str, str] | None = None
        self.ends_as: str | None = None
        self._answers: dict[str, dict[str, Any]] = {}
        self._processes: dict[str, subprocess.Popen[str]] = {}

    # --- the API ---

    def create(self, kind: str, request: dict[str, Any]) -> ActionResult:
        """Check the request of a job and start it; ``kind`` is "processing" or "training"."""
        prefix = f"{kind.capitalize()}Job"
        name = request[f"{prefix}Name"]
        _, errors = conform("sagemaker", f"Create{kind.capitalize()}Job", request)
        if errors:
            raise ValidationError("; ".join(errors))
        if self.refusal is not None:
            code, message = self.refusal
            error = ValidationError(message)
            error.code = code
            raise error
        if name in self.requests:
            raise ValidationError(f"ResourceInUse: {name}")

        self.requests[name] = request
        self._answers[name] = {f"{prefix}Name": name, f"{prefix}Status": "InProgress"}
        threading.Thread(target=self._run_or_fail, args=(kind, name), daemon=True).start()
        arn = f"arn:aws:sagemaker:us-east-1:123456789012:{kind}-job/{name}"
        return ActionResult({f"{prefix}Arn": arn})

    def describe(self, name: str) -> ActionResult:
        """Answer what SageMaker knows of a job."""
        if name not in self._answers:
            raise ValidationError("Could not find requested job with name")
        return ActionResult(dict(self._answers[name]))

    def stop(self, name: str) -> EmptyResult:
        """Send the job SIGTERM, as soon as it runs."""
        self._answers[name]["stopped"] = True
        while name not in self._processes:
            time.sleep(0.01)
        self._processes[name].send_signal(signal.SIGTERM)
        return EmptyResult()

    # --- for tests ---

    def wait(self, name: str) -> None:
        """Wait until a job has ended."""
        while self.status(name) == "InProgress":
            time.sleep(0.01)

    def status(self, name: str) -> str:
        """The status of a job of either kind."""
        answer = self._answers[name]
        return str(answer.get("ProcessingJobStatus") or answer["TrainingJobStatus"])

    def times(self, name: str) -> tuple[datetime, datetime]:
        """When a processing job started and ended."""
        answer = self._answers[name]
        return answer["ProcessingStartTime"], answer["ProcessingEndTime"]

    def stored_keys(self) -> list[str]:
        """The keys in the bucket of the plans."""
        s3 = boto3.client("s3")
        listing = s3.list_objects_v2(Bucket="plans")
        s3.close()
        return [item["Key"] for item in listing.get("Contents", ())]

    def uploads(self) -> list[str]:
        """What the only job has read."""
        (name,) = self.requests
        places = (f"/jobs/{name}/job/", "/models/")
        keys = [key for key in self.stored_keys() if any(place in key for place in places)]
        return [f"s3://plans/{key}" for key in keys]

    # --- the job ---

    def _run_or_fail(self, kind: str, name: str) -> None:
        """A fault of this program ends the job, because a caller would wait for it forever."""
        try:
            self._run(kind, name)
        except Exception as error:
            failure = {
                f"{kind.capitalize()}JobStatus": "Failed",
                "FailureReason": f"InternalError: {error!r}",
            }
            self._answers[name] = {**self._answers[name], **failure}

    def _run(self, kind: str, name: str) -> None:
        """Download the inputs, run the container, upload the outputs, and note how it ended."""
        request = self.requests[name]
        root = self.root / name
        started = datetime.now(UTC)
        for location, path in self._inputs(kind, request):
            self._download(location, root / path.lstrip("/"))
        container = request.get("AppSpecification") or request["AlgorithmSpecification"]
        command = [*container["ContainerEntrypoint"], *container["ContainerArguments"]]

        code = self._execute(name, kind, root, command)

        answer = self._answers[name]
        status = "Completed" if code == 0 else "Failed"
        if answer.pop("stopped", False):
            status = "Stopped"
        status = self.ends_as or status
        outputs = self._upload(kind, name, request, root)
        ended: dict[str, Any] = {f"{kind.capitalize()}JobStatus": status}
        messages = root / "opt/ml/output"
        if kind == "processing":
            ended["ProcessingStartTime"] = started
            ended["ProcessingEndTime"] = datetime.now(UTC)
            ended["ExitMessage"] = _text(messages / "message")[:1024]
            reason = "See job logs for more information"
        else:
            ended["BillableTimeInSeconds"] = 7
            ended["ModelArtifacts"] = {"S3ModelArtifacts": outputs}
            reason = _text(messages / "failure")
        if status == "Failed":
            ended["FailureReason"] = f"AlgorithmError: {reason}, exit code: {code}"
        self._answers[name] = answer | ended

    @staticmethod
    def _inputs(kind: str, request: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the URL of each input, and the folder of the container in which it is."""
        if kind == "processing":
            for processing_input in request["ProcessingInputs"]:
                place = processing_input["S3Input"]
                yield place["S3Uri"], place["LocalPath"]
            return
        for channel in request["InputDataConfig"]:
            url = channel["DataSource"]["S3DataSource"]["S3Uri"]
            yield url, f"/opt/ml/input/data/{channel['ChannelName']}"

    def _download(self, url: str, folder: Path) -> None:
        """Download the objects below a URL into a folder."""
        s3 = boto3.client("s3")
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        for item in s3.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/").get("Contents", ()):
            path = folder / item["Key"].removeprefix(f"{prefix}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            s3.download_file(bucket, item["Key"], str(path))

    def _execute(self, name: str, kind: str, root: Path, command: list[str]) -> int:
        """Run the command of a container on this machine, and return its exit code."""
        programs = root / "bin"
        self._write_programs(name, programs)
        entry, shell, *rest = command
        assert entry == "/opt/nvidia/nvidia_entrypoint.sh"
        local = [word.replace("/opt/ml", f"{root}/opt/ml") for word in rest]
        environment = {**os.environ, **self.environment, "PATH": f"{programs}:{os.environ['PATH']}"}
        process = subprocess.Popen(
            [programs / "entrypoint", shell, *local],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self._processes[name] = process
        self._log(name, kind, process)
        return process.returncode

    def _write_programs(self, name: str, folder: Path) -> None:
        """Write what takes the place of the programs of the image."""
        request = self.requests[name]
        resources = request.get("ResourceConfig") or request["ProcessingResources"]["ClusterConfig"]
        gpu = self.gpus.get(resources["InstanceType"], self.gpu)
        smi = f'echo "{gpu}"' if gpu else 'echo "NVIDIA-SMI has failed"; exit 9'
        folder.mkdir(parents=True)
        _program(folder / "nvidia-smi", smi)
        _program(folder / "trtexec", f'exec "{sys.executable}" "{TRTEXEC}" "$@"')
        _program(folder / "entrypoint", 'echo "== Triton Inference Server =="; exec "$@"')

    @staticmethod
    def _log(name: str, kind: str, process: subprocess.Popen[str]) -> None:
        """Write each line of a process to CloudWatch Logs, until the process has ended."""
        assert process.stdout is not None
        logs = boto3.client("logs")
        group = GROUPS[kind]
        stream = f"{name}/algo-1-1"
        if not logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]:
            logs.create_log_group(logGroupName=group)
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
        with process:
            for line in process.stdout:
                event = {"timestamp": int(time.time() * 1000), "message": line.rstrip("\n") or " "}
                logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=[event])

    def _upload(self, kind: str, name: str, request: dict[str, Any], root: Path) -> str:
        """Upload the output of a job, and return its URL."""
        if kind == "processing":
            output = request["ProcessingOutputConfig"]["Outputs"][0]["S3Output"]
            folder = output["LocalPath"]
            url = output["S3Uri"]
        else:
            output = request["OutputDataConfig"]
            folder = "/opt/ml/model"
            url = f"{output['S3OutputPath']}/{name}/output/model"
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        for path in (root / folder.lstrip("/")).glob("*"):
            boto3.client("s3").upload_file(str(path), bucket, f"{prefix}/{path.name}")
        return str(url)


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _price_list(received: Received) -> bytes:
    """Has one price: 0.90 USD for an hour of a processing job on ml.g4dn.xlarge,
    and that of hosting.
    """
    request = json.loads(received[2])
    filters = {condition["Field"]: condition["Value"] for condition in request["Filters"]}
    products = []
    if filters["instanceName"] == "ml.g4dn.xlarge":
        products = [
            _product("USE1-Host:ml.g4dn.xlarge", "0.7364"),
            _product("USE1-Processing:ml.g4dn.xlarge", "0.9"),
        ]
    return json.dumps({"PriceList": products}).encode()


def _product(usage: str, price: str) -> str:
    """A product with one price per hour, as the price list has it."""
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": price}}
    terms = {"OnDemand": {"a": {"priceDimensions": {"b": dimension}}}}
    return json.dumps({"product": {"attributes": {"usagetype": usage}}, "terms": terms})


@contextmanager
def simulated_jobs(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedJobs]:
    """Start the API on loopback, with the bucket ``plans``, and let boto3 use it."""
    jobs = SimulatedJobs(root)
    for kind in ("processing", "training"):
        _patch(monkeypatch, jobs, kind)
    with (
        serving(DomainDispatcherApplication(create_backend_app)) as url,
        run_null_server() as prices,
    ):
        prices.answer = _price_list
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", prices.url)
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket="plans")
        yield jobs
        for item in s3.list_objects_v2(Bucket="plans").get("Contents", ()):
            s3.delete_object(Bucket="plans", Key=item["Key"])
        s3.close()


def _patch(monkeypatch: pytest.MonkeyPatch, jobs: SimulatedJobs, kind: str) -> None:
    """Let moto's API answer with these jobs."""
    member = f"{kind.capitalize()}JobName"

    def create(response: Any) -> ActionResult:
        return jobs.create(kind, json.loads(response.body))

    def describe(response: Any) -> ActionResult:
        return jobs.describe(json.loads(response.body)[member])

    def stop(response: Any) -> EmptyResult:
        return jobs.stop(json.loads(response.body)[member])

    monkeypatch.setattr(SageMakerResponse, f"create_{kind}_job", create)
    monkeypatch.setattr(SageMakerResponse, f"describe_{kind}_job", describe)
    # moto cannot stop a training job.
    monkeypatch.setattr(SageMakerResponse, f"stop_{kind}_job", stop, raising=False)
