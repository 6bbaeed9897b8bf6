"""The job of ``constructs-triton compile`` in a container: command, folders and network as in the
request.

The image has bash and a few programs where NVIDIA's image has them, a small program in place of
``trtexec``, and one in place of ``nvidia-smi``. SageMaker's part is done by the test: it mounts the
inputs, and reads the results.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sagemaker_image import build_small_image, needs_podman, podman, set_up_podman
from simulated_jobs import ROLE, write_onnx

from constructs_triton.cli import main
from triton_model_check.model_files import describe

BUDGET_MINUTES = 2
IMAGE = "localhost/constructs-triton-test:trtexec"
TRTEXEC = (
    Path(__file__).parents[2] / "packages" / "tools" / "tests" / "building" / "plans" / "trtexec.py"
)
pytestmark = needs_podman
ENTRYPOINT = """#!/bin/bash
echo "== Triton Inference Server =="
exec "$@"
"""
NVIDIA_SMI = '#!/bin/bash\necho "Tesla T4, 7.5, 580.65.06"\n'
PROGRAM = '#!/bin/bash\nexec python3 /usr/src/tensorrt/trtexec.py "$@"\n'


PROGRAMS = {
    "/opt/nvidia/nvidia_entrypoint.sh": ENTRYPOINT,
    "/usr/bin/nvidia-smi": NVIDIA_SMI,
    "/usr/src/tensorrt/bin/trtexec": PROGRAM,
    "/usr/src/tensorrt/trtexec.py": TRTEXEC.read_text(),
}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("image")
    with pytest.MonkeyPatch.context() as patch:
        set_up_podman(folder, patch)
        build_small_image("podman", IMAGE, folder, PROGRAMS)
        shutil.rmtree(folder / "root")
        yield IMAGE
        podman("rmi", "--force", IMAGE)


def prepared(
    folder: Path, capsys: pytest.CaptureFixture[str], kind: str, doc: str = ""
) -> dict[str, Any]:
    """Print the request of a job, and put its uploads where SageMaker would mount them."""
    model = write_onnx(folder / "bert.onnx", doc=doc)
    words = (
        "--instance-type ml.g4dn.xlarge --max-batch-size "
        f"16 --precision fp16 --job {kind} --role {ROLE}"
    )
    assert main(["compile", str(model), *words.split(), "--dry-run", "--json"]) == 0
    job: dict[str, Any] = json.loads(capsys.readouterr().out)["jobs"][0]
    for url, upload in job["uploads"].items():
        path = folder / url.split("/")[-2 if "text" in upload else -3] / url.rpartition("/")[2]
        path.parent.mkdir(exist_ok=True)
        if "text" in upload:
            path.write_text(upload["text"])
        else:
            shutil.copy(upload["path"], path)
    return job


def run_job(image: str, folder: Path, request: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run the container as SageMaker does: mounted inputs that cannot be written,
    and no network.
    """
    container = request.get("AppSpecification") or request["AlgorithmSpecification"]
    job, model, output, messages = container["ContainerArguments"]
    entry = container["ContainerEntrypoint"]
    isolated = request.get("NetworkConfig", request)["EnableNetworkIsolation"]
    for name in ("output", "messages"):
        (folder / name).mkdir(exist_ok=True)
    mounts = [f"{folder}/job:{job}:ro", f"{folder}/models:{model}:ro"]
    mounts += [f"{folder}/output:{output}", f"{folder}/messages:{messages}"]
    command = ["podman", "run", "--rm", f"--entrypoint={json.dumps(entry)}"]
    command += ["--network=none"] if isolated else []
    command += [f"--volume={each}" for each in mounts]
    return subprocess.run(
        [*command, image, job, model, output, messages], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("kind", ["processing", "training"])
def test_script_runs_as_the_request_says(
    image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """The entry point, the script and the arguments of the request write a plan,
    its log and a message.
    """
    job = prepared(tmp_path, capsys, kind)
    done = run_job(image, tmp_path, job["request"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("== Triton Inference Server ==\n")
    assert " --fp16 " in done.stdout
    assert describe(tmp_path / "output" / "model.plan").versions == {"tensorrt": "10.16.1.11"}
    message = json.loads((tmp_path / "messages" / "message").read_text())
    assert (message["stage"], message["gpu"], message["driver"]) == (
        "built",
        "Tesla T4",
        "580.65.06",
    )
    assert "&&&& PASSED" in (tmp_path / "output" / "trtexec.log").read_text()


def test_failure_in_the_container_is_reported(
    image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A build that fails ends the container with exit code 1,
    and its first error is in both messages.
    """
    job = prepared(tmp_path, capsys, "training", doc="FAIL_operator")
    assert run_job(image, tmp_path, job["request"]).returncode == 1
    for name in ("message", "failure"):
        message = json.loads((tmp_path / "messages" / name).read_text())
        assert "No importer registered for op: Mystery" in message["error"]
    assert not (tmp_path / "output" / "model.plan").exists()
