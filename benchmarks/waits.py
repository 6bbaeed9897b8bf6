"""Measures what users wait for at the command line, from the start of the command.

    python benchmarks/waits.py [--rounds 3] [--models 1000] [--project DIR]

``python app.py`` synthesizes the demo with warm caches. ``local up`` starts both endpoints of it
with the real Triton server, up to the line that says that they are ready. ``check`` reads
repositories of a thousand models that differ only in their names; the time of the same command for
one model is subtracted, and the rate is by processor time on one core. The size of
the base install is that of the packages that ``pip install constructs-triton`` needs, without
aws-cdk-lib and the project's own packages.

The shortest of the rounds counts. ``--project`` is another checkout, whose environment runs this
file: it imports nothing of the project. ``--without-app`` runs ``app.py`` only once, for ``local
up``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONFIG = """backend: "{backend}"
max_batch_size: 8
input {{ name: "x" data_type: TYPE_FP32 dims: 4 }}
output {{ name: "y" data_type: TYPE_FP32 dims: 4 }}
instance_group {{ kind: KIND_CPU }}
"""
PYTHON_MODEL = """import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        tensors = (pb_utils.get_input_tensor_by_name(each, "x").as_numpy() for each in requests)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x + 1)]) for x in tensors]
"""
COMMAND = (sys.executable, "-m", "constructs_triton.cli")
LEFT_OUT = {
    *("aws-cdk-lib", "constructs-triton", "constructs-triton-client", "constructs-triton-core"),
    "triton-model-check",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--without-app", action="store_true")
    parser.add_argument("--project", type=Path, default=Path(__file__).resolve().parents[1])
    arguments = parser.parse_args()
    os.environ["JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"] = "18,20"
    with tempfile.TemporaryDirectory() as work:
        folder, project = Path(work), arguments.project.resolve()
        os.environ["CONSTRUCTS_TRITON_CACHE_DIR"] = str(folder / "cache")
        os.environ["CDK_CONTEXT_JSON"] = json.dumps(
            json.loads((project / "cdk.json").read_text())["context"]
        )
        os.environ["CDK_OUTDIR"] = str(folder / "cdk.out")
        os.chdir(project)
        run(sys.executable, project / "app.py")  # fills the caches
        if not arguments.without_app:
            clock, cpu = shortest(arguments.rounds, lambda: run(sys.executable, project / "app.py"))
            print(f"{'python app.py':24}{clock:8.2f} s  {cpu:6.2f} s of CPU")
        print(
            f"{'local up':24}"
            f"{min(ready(folder) for _ in range(arguments.rounds)):8.2f} s until it is ready"
        )
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        for name, file, content in (
            ("Python", "model.py", PYTHON_MODEL.encode()),
            ("ONNX", "model.onnx", onnx_model()),
        ):
            rate = checked(folder / name, file, content, arguments)
            print(f"{f'check, {name} models':24}{rate:8,.0f} a second of CPU")
    print(f"{'base install':24}{base_bytes() / 1e6:8.1f} MB without aws-cdk-lib")


def run(*command: str | Path) -> tuple[float, float]:
    """Return the seconds of a command by the clock,
    and of the processor for it and its children.
    """
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}"
        )
    clock, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def shortest(rounds: int, action: Callable[[], tuple[float, float]]) -> tuple[float, ...]:
    """Return the shortest time of several rounds, of each clock."""
    return tuple(map(min, zip(*(action() for _ in range(rounds)), strict=True)))


def ready(folder: Path) -> float:
    """Return the seconds until ``local up`` prints that the endpoints are ready, and stop them."""
    begun = time.perf_counter()
    command = [*COMMAND, "local", "up", str(folder / "cdk.out"), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        seconds = time.perf_counter() - begun
        server.send_signal(signal.SIGINT)
    if not line:
        raise SystemExit("local up: did not start; see its messages above")
    return seconds


def checked(folder: Path, file: str, content: bytes, arguments: argparse.Namespace) -> float:
    """Return how many models are checked in a second of one core.

    Two processes that share the memory and caches of a machine take more seconds for the same work.
    """
    one, many = folder / "one", folder / "many"
    for directory, count in ((one, 1), (many, 1 + arguments.models)):
        write_models(directory, count, file, content)
    times = [
        shortest(arguments.rounds, lambda directory=each: run(*COMMAND, "check", directory))[1]  # type: ignore[misc]
        for each in (one, many)
    ]
    return float(arguments.models / (times[1] - times[0]))


def write_models(directory: Path, count: int, file: str, content: bytes) -> None:
    backend = {"model.py": "python", "model.onnx": "onnxruntime"}[file]
    for number in range(count):
        version = directory / f"model_{number:04}" / "1"
        version.mkdir(parents=True)
        (version.parent / "config.pbtxt").write_text(
            CONFIG.format(backend=backend), encoding="utf-8"
        )
        (version / file).write_bytes(content)


def onnx_model() -> bytes:
    """Return a model that adds 1 to its input."""
    from onnx import TensorProto, helper  # noqa: PLC0415 - not for --help

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in "xy")
    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "one"], ["y"])], "add", [x], [y], [one]
    )
    opsets = [helper.make_opsetid("", 13)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def base_bytes() -> int:
    """Return the size of the packages that a base install needs."""
    found = required("constructs-triton")
    return sum(size_of(package) for name, package in found.items() if name not in LEFT_OUT)


def required(name: str) -> dict[str, metadata.Distribution]:
    """Return a package and all that it requires, by name."""
    found: dict[str, metadata.Distribution] = {}
    add_required(found, Requirement(name))
    return found


def add_required(found: dict[str, metadata.Distribution], wanted: Requirement) -> None:
    """Add a package and all that it requires on this machine."""
    name = canonicalize_name(wanted.name)
    package = found.setdefault(name, metadata.distribution(name))
    for each in map(Requirement, package.requires or ()):
        extras = wanted.extras or {""}
        is_new = canonicalize_name(each.name) not in found or bool(each.extras)
        if is_new and (
            each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
        ):
            add_required(found, each)


def size_of(package: metadata.Distribution) -> int:
    """Return the bytes of a package's files, without compiled bytecode."""
    paths = [Path(str(file.locate())) for file in package.files or () if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


if __name__ == "__main__":
    main()
