"""Endpoints in containers of podman, from an image that behaves as SageMaker's Triton image."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from local_assembly import PYTHON_CONFIG, AssemblyBuilder, adding_ensemble, adding_model, below
from local_processes import log_of, variants
from sagemaker_image import build_image, needs_podman, podman, set_up_podman
from test_local_endpoints import Caller, eventually

from constructs_triton_client.wire import encode_request
from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 6
PROJECT = Path(__file__).resolve().parents[2]
IMAGE = "localhost/constructs-triton-test:sagemaker"
pytestmark = needs_podman
sys.path.insert(0, str(PROJECT / "assets" / "training"))

#: Returns what the container allows: 1 or 0 for writing to the model's folder and for a network
#: interface, and the size of /dev/shm in MiB.
LOOKING = """
import os
from pathlib import Path
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        try:
            (Path("/opt/ml/model") / "written").touch()
            self.is_writable = 1
        except OSError:
            self.is_writable = 0

    def execute(self, requests):
        status = os.statvfs("/dev/shm")
        interfaces = len(Path("/proc/net/dev").read_text().splitlines()) - 2
        seen = [self.is_writable, interfaces > 1, status.f_blocks * status.f_frsize >> 20]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array(seen, np.float32))])]
"""


@pytest.fixture(scope="module", autouse=True)
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The image, and podman's settings for this machine, until the last test has run."""
    folder = tmp_path_factory.mktemp("image")
    with pytest.MonkeyPatch.context() as patch:
        set_up_podman(folder, patch)
        build_image("podman", IMAGE, folder)
        shutil.rmtree(folder / "root")
        yield
        podman("rmi", "--force", IMAGE)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What app.py synthesizes."""
    directory = tmp_path_factory.mktemp("demo") / "cdk.out"
    context = json.loads((PROJECT / "cdk.json").read_text())["context"]
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(directory),
        "CDK_CONTEXT_JSON": json.dumps(context),
    }
    subprocess.run([sys.executable, "app.py"], cwd=PROJECT, env=environment, check=True)
    return directory


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One endpoint of each type, each of whose models adds a number or looks around."""
    builder = AssemblyBuilder(tmp_path_factory.mktemp("engine") / "cdk.out")
    targets = {
        "root.tar.gz": builder.asset("root", adding_model(200)),
        "ensemble.tar.gz": builder.asset("mme-ensemble", adding_ensemble("whole", 300, 1)),
        "refused.tar.gz": builder.asset(
            "refused", below("m", {"config.pbtxt": "no such field: 1"})
        ),
    }
    builder.multi_model("Many", targets)
    builder.endpoint("Multi", {"AllTraffic": ("Many", 1)})
    looking = below("m", {"config.pbtxt": PYTHON_CONFIG, "1/model.py": LOOKING})
    builder.serve("Open", looking).serve("Isolated", looking)
    builder.resources["IsolatedModel"]["Properties"]["EnableNetworkIsolation"] = True
    builder.endpoint("Shared", {})
    builder.resources["SharedConfig"]["Properties"]["ProductionVariants"] = [
        {"VariantName": "AllTraffic"}
    ]
    for component in ("Thousand", "Million"):
        model = builder.asset(
            component, below("m", adding_model(1000 if component == "Thousand" else 1e6))
        )
        specification = {
            "ModelName": {
                "Fn::GetAtt": [builder.single_model(f"{component}Model", model), "ModelName"]
            }
        }
        builder.resources[component] = {
            "Type": "AWS::SageMaker::InferenceComponent",
            "Properties": {
                "EndpointName": {"Fn::GetAtt": ["Shared", "EndpointName"]},
                "Specification": specification,
            },
        }
    return builder.write()


@pytest.fixture(scope="module")
def local(assembly: Path) -> Iterator[LocalEndpoint]:
    """One run of all endpoints in containers."""
    images = dict.fromkeys(
        ("Multi", "Open", "Isolated", "Shared/Thousand", "Shared/Million"), IMAGE
    )
    with LocalEndpoint.from_assembly(assembly, engine="podman", images=images) as running:
        yield running


def test_each_component_has_a_container_of_its_own(local: LocalEndpoint) -> None:
    """Callers choose it by its name."""
    caller = Caller(local.endpoint_url)
    found = [
        caller.add("Shared", 1.0, InferenceComponentName=each) for each in ("Thousand", "Million")
    ]
    assert found == [1001.0, 1000001.0]


def test_models_in_containers_are_counted(local: LocalEndpoint) -> None:
    """The counters come from inside the container, also of one without a network;
    no port is published.
    """
    caller = Caller(local.endpoint_url)
    before = local.statistics()
    for name, target in (
        ("Open", {}),
        ("Isolated", {}),
        ("Multi", {"TargetModel": "ensemble.tar.gz"}),
    ):
        caller.add(name, 1.0, **target)
    found = local.statistics(since=before)
    counted = {
        (endpoint, each.name): each.inferences
        for endpoint in ("Open", "Isolated", "Multi")
        for each in found[endpoint]["AllTraffic"]
    }
    assert counted[("Open", "m")] == counted[("Isolated", "m")] == 1
    assert counted[("Multi", "ensemble.tar.gz")] == counted[("Multi", "first")] == 1
    published = podman("port", containers(local)["Open"])
    assert published.splitlines()[0].startswith("8080/tcp -> 127.0.0.1:")
    assert len(published.splitlines()) == 1


def containers(local: LocalEndpoint) -> dict[str, str]:
    """The container of each endpoint."""
    return {
        each["name"]: variant["container"]
        for each in local.description["endpoints"]
        for variant in each["variants"].values()
    }


def answers(local: LocalEndpoint) -> list[tuple[str, bytes]]:
    """The content types and bodies of responses to the demo's requests,
    and of one to each other model.
    """
    from split import encode_png, held_out_images

    images, _ = held_out_images()
    pngs = np.array([encode_png(image) for image in images], dtype=object)[:, np.newaxis]
    runtime: Any = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
    found = []
    for start in range(0, len(pngs), 64):
        request = encode_request({"image": pngs[start : start + 64]})
        found.append(answer(runtime, "digits", request.content_type, request.body))
    (variant,) = variants(local, "catalog")
    (sentiment,) = [name for name in variant["target_models"] if name.startswith("sentiment")]
    texts = encode_request(
        {"text": np.array([[b"a wonderful tool"], [b"a terrible waste"]], dtype=object)}
    )
    found.append(answer(runtime, "catalog", texts.content_type, texts.body, TargetModel=sentiment))
    return found


def answer(
    runtime: Any, endpoint: str, content_type: str, body: bytes, **parameters: str
) -> tuple[str, bytes]:
    """The content type and the body of one response."""
    response = runtime.invoke_endpoint(
        EndpointName=endpoint, ContentType=content_type, Body=body, **parameters
    )
    return response["ContentType"], response["Body"].read()


def test_the_demo_has_the_same_bytes_as_the_bundled_server(demo: Path) -> None:
    """Both endpoints of app.py answer the same in containers as in the bundled server,
    byte for byte.
    """
    images = {"digits": IMAGE, "catalog/AllTraffic": IMAGE}
    with LocalEndpoint.from_assembly(demo, engine="podman", images=images) as contained:
        in_containers = answers(contained)
    with LocalEndpoint.from_assembly(demo) as bundled:
        assert in_containers == answers(bundled)


def test_the_client_contract_holds_in_a_container() -> None:
    """The contract suite of the client passes against a container."""
    repository = PROJECT / "tests" / "contract" / "contract_repository"
    name = "contract-repository"
    with LocalEndpoint.from_repository(
        repository, endpoint=name, engine="podman", images={name: IMAGE}
    ) as running:
        environment = {**os.environ, "CONSTRUCTS_TRITON_ENDPOINT_URL": running.endpoint_url}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "url"]
        done = subprocess.run(
            [*command, "tests/contract/test_endpoint_contract.py"],
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout


def test_a_multi_model_container_loads_and_refuses(local: LocalEndpoint) -> None:
    """Archives are loaded on their first call, ensembles too;
    one that is wrong is a model error.
    """
    caller = Caller(local.endpoint_url)
    assert caller.add("Multi", TargetModel="root.tar.gz") == 200
    assert caller.add("Multi", TargetModel="ensemble.tar.gz") == 301
    assert caller.refusal("Multi", TargetModel="refused.tar.gz")["Error"]["Code"] == "ModelError"


def test_models_are_unloaded_when_memory_is_short(assembly: Path) -> None:
    """The memory of the container's processes is measured:
    with a low limit only one model stays.
    """
    with LocalEndpoint.from_assembly(
        assembly, endpoint="Multi", engine="podman", images={"Multi": IMAGE}, memory_limit_mib=1
    ) as running:
        caller = Caller(running.endpoint_url)
        for name, value in (("root", 200), ("ensemble", 301), ("root", 200)):
            assert caller.add("Multi", TargetModel=f"{name}.tar.gz") == value
        assert eventually(lambda: "successfully unloaded" in log_of(running).read_text())


def test_the_container_is_that_of_sagemaker(local: LocalEndpoint) -> None:
    """Models cannot be written, shared memory has a size,
    and only isolated endpoints have no network.
    """
    request = json.dumps(
        {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [0]}]}
    ).encode()
    runtime = Caller(local.endpoint_url).runtime
    seen = {
        name: json.loads(answer(runtime, name, "application/json", request)[1])["outputs"][0][
            "data"
        ]
        for name in ("Open", "Isolated")
    }
    memory = int(podman("info", "--format", "{{.Host.MemTotal}}"))
    assert [seen["Open"][:2], seen["Isolated"][:2]] == [[0, 1], [0, 0]]
    # Half of the memory of ml.m5.xlarge, which has 16 GiB, or of this machine.
    assert abs(seen["Open"][2] - min(8 * 1024, memory // 2 >> 20)) < 2
    ports = podman("port", containers(local)["Open"])
    assert ports.startswith("8080/tcp -> 127.0.0.1:")


def test_a_killed_container_is_replaced(local: LocalEndpoint) -> None:
    """A new container takes its place, and a multi-model container loads its models again."""
    caller = Caller(local.endpoint_url)
    assert caller.add("Multi", TargetModel="root.tar.gz") == 200
    podman("kill", containers(local)["Multi"])
    assert eventually(
        lambda: "Multi/AllTraffic: the container ended with exit code 137" in local.messages
    )
    assert eventually(lambda: _answers(caller))


def _answers(caller: Caller) -> bool:
    try:
        return caller.add("Multi", TargetModel="root.tar.gz") == 200
    except caller.runtime.exceptions.ClientError:
        return False


def test_a_container_that_cannot_start_shows_its_log_and_is_removed(tmp_path: Path) -> None:
    """The error contains the log of the container, which leaves nothing."""
    builder = AssemblyBuilder(tmp_path / "cdk.out")
    broken = below(
        "m", {"config.pbtxt": PYTHON_CONFIG, "1/model.py": "raise ValueError('no weights')\n"}
    )
    builder.serve("Faulty", broken)
    known = set(podman("ps", "--all", "--quiet").split())
    with (
        pytest.raises(
            LocalEndpointError, match=r"Faulty/AllTraffic: the container ended .*(?s:.*)no weights"
        ),
        LocalEndpoint.from_assembly(builder.write(), engine="podman", images={"Faulty": IMAGE}),
    ):
        pass
    assert set(podman("ps", "--all", "--quiet").split()) <= known


def test_nothing_is_left_after_the_gateway_was_killed(assembly: Path) -> None:
    """The containers and their folders are removed although the gateway cannot clean up."""
    with LocalEndpoint.from_assembly(
        assembly, endpoint="Isolated", engine="podman", images={"Isolated": IMAGE}
    ) as running:
        name = containers(running)["Isolated"]
        folder = log_of(running).parent
        assert running.process is not None
        running.process.send_signal(signal.SIGKILL)
        assert eventually(lambda: name not in podman("ps", "--all", "--format", "{{.Names}}"))
        assert eventually(lambda: not folder.exists())


def test_a_missing_image_is_explained(assembly: Path) -> None:
    """The error contains the command that pulls the image."""
    missing = {"Open": "localhost/no-such-image:1"}
    run = LocalEndpoint.from_assembly(assembly, endpoint="Open", engine="podman", images=missing)
    with pytest.raises(LocalEndpointError, match="podman pull localhost/no-such-image:1"):
        run.__enter__()
