"""Containers of docker and podman, without either of them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from fake_engine import FakeEngine

from constructs_triton_core.errors import (
    InvalidValueError,
    LocalEndpointError,
    MissingDependencyError,
)
from constructs_triton_core.processes.children import python_command
from constructs_triton_tools.local.containers import container
from constructs_triton_tools.local.containers.container import EngineContainers, TritonContainer
from constructs_triton_tools.local.containers.engine import ContainerEngine
from constructs_triton_tools.local.containers.exec_relay import ExecRelay
from constructs_triton_tools.local.containers.run_arguments import (
    run_arguments,
    shared_memory_bytes,
)
from constructs_triton_tools.local.options import RunOptions
from constructs_triton_tools.local.sources.specs import (
    ComponentSpec,
    ContainerSpec,
    EndpointSpec,
    VariantSpec,
)

ECR = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
IMAGE = f"{ECR}/sagemaker-tritonserver:26.05-py3"
SINGLE = ContainerSpec("m", IMAGE, "s3://b/m.tar.gz", {"A": "b c"}, archive=Path("m.tar.gz"))
MULTI = ContainerSpec("m", IMAGE, "s3://b/models/")
ANSWERING = "echo 8589934592\n"


def words(container: ContainerSpec) -> str:
    """The arguments of `run` for a container, as one string."""
    return " ".join(run_arguments("n", "image", container, Path("/models"), shm_bytes=64, gpus=()))


def test_a_container_is_run_as_sagemaker_runs_it() -> None:
    """The models are read-only, the port is on loopback;
    multi-model containers have their variable.
    """
    assert words(SINGLE) == (
        "run --detach --pull never --name n --label constructs-triton --publish 127.0.0.1::8080 "
        "--mount type=bind,source=/models,target=/opt/ml/model,readonly --security-opt "
        "label=disable --shm-size 64 --env A=b c --env "
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS=--allow-http=true --http-address=127.0.0.1 image serve"
    )
    for multi in ("target=/opt/ml/models,readonly", "--env SAGEMAKER_MULTI_MODEL=true"):
        assert multi in words(MULTI)


def test_the_front_end_with_statistics_is_that_of_the_template_if_it_has_one() -> None:
    """Other arguments are kept, and HTTP listens on the container's loopback interface only."""
    name = "SAGEMAKER_TRITON_ADDITIONAL_ARGS"
    own = words(replace(SINGLE, environment={name: "--allow-http=true --http-port=9000"}))
    assert f"--env {name}=--allow-http=true --http-port=9000 image" in own
    other = words(replace(SINGLE, environment={name: "--log-verbose=1"}))
    assert f"{name}=--log-verbose=1 --allow-http=true --http-address=127.0.0.1 image" in other


def test_no_secret_is_an_argument_of_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other users see the arguments of a process, so secrets are in the engine's environment: those
    of the template, and what looks like one in a deployed endpoint.
    """
    token = "hf_" + "abcdefghijklmnopqrstuvwxyz"
    script = f"""
case "$1" in
  info) echo 8589934592 ;;
  run) printenv PIN HF_TOKEN >> {tmp_path}/seen; printenv MODE >> {tmp_path}/seen; exit 1 ;;
esac
"""
    engine = FakeEngine(tmp_path, monkeypatch, script)
    monkeypatch.delenv("MODE", raising=False)
    secret = replace(
        MULTI,
        environment={"PIN": "line\nof a pin", "HF_TOKEN": token, "MODE": "fast"},
        secrets=frozenset({"PIN"}),
    )
    with pytest.raises(LocalEndpointError, match="podman run: failed"):
        asyncio.run(create(secret).start())
    (call,) = [call for call in engine.calls if call.startswith("run ")]
    assert "--env PIN --env HF_TOKEN --env MODE=fast" in call
    assert (tmp_path / "seen").read_text() == f"line\nof a pin\n{token}\n"


def test_an_isolated_container_has_no_network() -> None:
    """It publishes no port either."""
    isolated = words(replace(SINGLE, is_isolated=True))
    assert "--network none" in isolated
    assert "--publish" not in isolated


@pytest.mark.parametrize(
    ("instance_types", "gibibytes"),
    [
        ([], 32),
        (["ml.g5.xlarge"], 8),
        (["ml.g5.48xlarge"], 32),
        (["ml.z99.large"], 32),
        (["nonsense"], 32),
        (["ml.g5.48xlarge", "ml.z99.large", "ml.g5.xlarge"], 8),
    ],
)
def test_shared_memory_is_half_of_the_instance_or_of_the_machine(
    instance_types: Sequence[str], gibibytes: int
) -> None:
    """The smallest type decides, unless this machine has less memory or the
    type is not published.
    """
    assert shared_memory_bytes(instance_types, 64 * 2**30) == gibibytes * 2**30


@pytest.mark.parametrize(
    ("name", "arguments"), [("docker", "--gpus all"), ("podman", "--device nvidia.com/gpu=all")]
)
def test_gpus_are_passed_where_the_host_has_them(
    name: str, arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine with nvidia-smi gives the container all GPUs, in the engine's own words."""
    assert not ContainerEngine(name).gpu_arguments()
    FakeEngine(tmp_path, monkeypatch, "", "nvidia-smi")
    assert " ".join(ContainerEngine(name).gpu_arguments()) == arguments


def create(
    container: ContainerSpec,
    images: Mapping[str, str] | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> TritonContainer:
    """The container of the only variant of an endpoint."""
    variant = VariantSpec("v", container)
    endpoint = EndpointSpec("e", "Stack", (variant,))
    options = RunOptions(Path("cdk.out"), engine="podman", images=images or {})
    runner = EngineContainers(options, [endpoint], report, Path("/nowhere"))
    return runner.create(endpoint, variant)


@pytest.mark.parametrize("name", ["e", "e/v", IMAGE])
def test_an_image_is_replaced_by_endpoint_variant_or_image(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--image`` accepts each of the three names; the template's image is the default."""
    FakeEngine(tmp_path, monkeypatch, ANSWERING)
    assert create(SINGLE).image == IMAGE
    assert create(SINGLE, {name: "other"}).image == "other"


def test_a_component_has_a_container_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--image`` accepts its name, and half of the memory of the instance
    type is its shared memory.
    """
    FakeEngine(tmp_path, monkeypatch, ANSWERING)
    component = ComponentSpec("c", SINGLE, instance_types=["ml.g5.xlarge"])
    endpoint = EndpointSpec("e", "Stack", (), components=(component,))
    options = RunOptions(Path("cdk.out"), engine="podman", images={"e/c": "other"})
    container = EngineContainers(options, [endpoint], lambda _: None, Path("/nowhere")).create(
        endpoint, component
    )
    assert (container.label, container.image, container.shm_bytes) == ("e/c", "other", 4 * 2**30)


@pytest.mark.parametrize(
    ("image", "images", "words"),
    [
        (IMAGE, {"x": "other"}, f"got 'x'; use one of e/v, e, {IMAGE}"),
        ("", {}, r"e: has no image.*set --image e=IMAGE"),
    ],
)
def test_an_image_that_cannot_be_chosen_is_an_error_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: str, images: dict[str, str], words: str
) -> None:
    """A misspelt name lists those that exist, and a repository has no image."""
    FakeEngine(tmp_path, monkeypatch, ANSWERING)
    with pytest.raises((InvalidValueError, LocalEndpointError), match=words):
        create(replace(SINGLE, image=image), images)


def test_an_engine_that_does_not_answer_or_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both errors name the engine and what to do."""
    FakeEngine(tmp_path, monkeypatch, "echo no socket >&2; exit 125")
    with pytest.raises(
        LocalEndpointError, match=r"--engine podman: .* does not answer .*no socket"
    ):
        create(SINGLE)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        MissingDependencyError, match="--engine podman: podman is not installed; install it"
    ):
        create(SINGLE)


def test_a_missing_image_is_explained_with_the_commands_that_pull_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For an image of ECR the login is included; nothing is left of the start."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    FakeEngine(tmp_path, monkeypatch, f'[ "$1" != image ] || exit 1\n{ANSWERING}')
    container = create(SINGLE)
    with pytest.raises(LocalEndpointError) as missing:
        asyncio.run(container.start())
    assert str(missing.value).splitlines() == [
        (
            f"e/v: the image {IMAGE} is not on this machine; pull it, "
            "or run another image with --image e=OTHER"
        ),
        (
            "  aws ecr get-login-password --region us-east-1 | podman login --username AWS "
            f"--password-stdin {ECR}"
        ),
        f"  podman pull {IMAGE}",
    ]
    assert not container.directory.exists()


def test_memory_is_that_of_the_processes_in_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proportional sizes are added; a container that has ended uses nothing."""
    FakeEngine(
        tmp_path,
        monkeypatch,
        'case "$1" in exec) printf "Rss: 9 kB\\nPss: 3 kB\\nPss: 4 kB\\n";; esac\n',
    )
    monkeypatch.setattr(ContainerEngine, "memory_bytes", lambda _: 2**33)
    assert create(SINGLE).memory_bytes() == 7 * 1024
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError):
        create(SINGLE).memory_bytes()


async def answer_ping(_: web.Request) -> web.Response:
    """Answer as a server that is ready."""
    return web.Response()


async def ready(container: TritonContainer, generation: int) -> None:
    """Wait until the container has started this many times."""
    while not (container.is_ready and container.generation == generation):
        await asyncio.sleep(0.01)


def test_a_container_that_ends_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The container is removed and run again; at the end nothing of it is left."""
    script = f"""
case "$1" in
  info) echo 8589934592 ;;
  port) echo "127.0.0.1:$(cat {tmp_path}/port)" ;;
  wait) while [ ! -e {tmp_path}/end ]; do sleep 0.05; done; rm {tmp_path}/end; echo 137 ;;
esac
"""
    engine = FakeEngine(tmp_path, monkeypatch, script)
    messages: list[str] = []

    async def live() -> None:
        application = web.Application()
        application.router.add_get("/ping", answer_ping)
        async with TestServer(application) as server:
            (tmp_path / "port").write_text(str(server.port))
            container = create(MULTI, report=messages.append)
            await container.start()
            (tmp_path / "end").touch()
            await ready(container, 2)
            await container.stop()
        assert not container.directory.exists()

    asyncio.run(asyncio.wait_for(live(), 60))
    assert messages == ["e/v: the container ended with exit code 137; starting another one"]
    assert [call.split()[0] for call in engine.calls].count("run") == 2
    assert engine.calls[-1].startswith("rm --force constructs-triton-")


def test_a_container_that_ends_at_once_shows_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no port any more; the error is the end of the container,
    and its name is free again.
    """
    script = (
        "case $1 in info) echo 8589934592;; port) exit 1;; "
        "wait) echo 1;; logs) echo error: boom;; esac\n"
    )
    engine = FakeEngine(tmp_path, monkeypatch, script)
    with pytest.raises(
        LocalEndpointError, match=r"(?s)e/v: the container ended before .*error: boom"
    ):
        asyncio.run(create(MULTI).start())
    assert [call.split()[0] for call in engine.calls].count("rm") == 1


def run_remover(lines: str, *folders: Path) -> None:
    """Run the remover until its standard input, which has these lines, ends."""
    command = python_command(container._REMOVER, "podman", "n", *map(str, folders))
    subprocess.run(command, input=lines, text=True, check=True)


@pytest.mark.parametrize(
    ("lines", "removes", "keeps_run"),
    [
        ("started\n", True, False),
        ("started\nremoved\n", False, False),
        ("started\nrun goes on\n", True, True),
    ],
)
def test_the_remover_removes_what_was_started(
    lines: str, removes: bool, keeps_run: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It kills the container before it removes it,
    and keeps the run's folders while the run goes on.
    """
    engine = FakeEngine(tmp_path, monkeypatch, "")
    own, run = tmp_path / "own", tmp_path / "run"
    own.mkdir()
    run.mkdir()
    run_remover(lines, own, run)
    assert engine.calls == (["container inspect n", "kill n", "rm --force n"] if removes else [])
    assert (own.exists(), run.exists()) == (False, keeps_run)


def test_the_relay_passes_bytes_through_a_process_in_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection is a process of the engine; its end closes the connection."""
    engine = FakeEngine(tmp_path, monkeypatch, 'read -r line; echo "$line back"\n')

    async def exchange() -> bytes:
        relay = ExecRelay("podman", "n")
        reader, writer = await asyncio.open_connection("127.0.0.1", await relay.start())
        writer.write(b"there and\n")
        try:
            return await reader.read()
        finally:
            writer.close()
            await relay.close()

    assert asyncio.run(asyncio.wait_for(exchange(), 30)) == b"there and back\n"
    assert engine.calls[0].startswith("exec --interactive n bash -c")


def test_containers_need_no_module_of_the_bundled_server() -> None:
    """macOS has no namespaces and no seccomp, so nothing that uses them is imported."""
    code = (
        "import sys, constructs_triton_tools.local.run\nnames = ('namespaces', 'private_address', "
        "'supervisor', 'server', 'connection')\nprint([name for name in names if "
        "f'constructs_triton_tools.local.server.{name}' in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert done.stdout.strip() == "[]"
