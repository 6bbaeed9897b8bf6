"""The smallest use of each package, in an environment with its wheel and what it requires,
without extras.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from installed_wheels import CommandError, Environment
from members import PROJECT

MODELS = PROJECT / "assets" / "model_repositories" / "digits"
#: The most that a package and what it requires may take on the disk, without compiled files.
MOST_MEGABYTES = {"triton-model-check": 20}
#: The same for every other package.
MOST_MEGABYTES_OF_OTHERS = 300
_FINDING = """
from constructs_triton_core.findings import Finding
print(Finding.__name__)
"""
_CALL = """
import numpy as np

from constructs_triton_client import InMemoryTransport, TritonClient
from constructs_triton_client.wire import decode_response, encode_request

print(len(encode_request({"X": np.zeros((1, 2), np.float32)}).body))
client = TritonClient(InMemoryTransport(lambda inputs: {"Y": inputs["X"] * 2}))
print(client.infer({"X": np.array([1.0, 2.0])})["Y"].tolist())
header = (
    b'{"outputs":[{"name":"B","datatype":"BF16","shape":[1],'
    b'"parameters":{"binary_data_size":2}}]}'
)
content_type = f"application/vnd.sagemaker-triton.binary+json;json-header-size={len(header)}"
print(set(decode_response(header + bytes(2), content_type).bit_patterns))
"""
_REHEARSAL = """
import cdk_rehearse

if __name__ == "__main__":
    found = cdk_rehearse.rehearse("none", "queue.json")
    print(found.status["queue"], [step.logical_id for step in found.steps])
"""
_QUEUE = {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}
_APP = """
import sys
from importlib.util import find_spec

import aws_cdk as cdk

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

app = cdk.App(outdir="cdk.out")
stack = cdk.Stack(app, "Digits")
models = TritonModelRepository(stack, "Models", source=ModelSource.from_directory(sys.argv[1]))
TritonEnsembleEndpoint(
    stack,
    "Endpoint",
    model_repository=models,
    ensemble="digits",
    instance_type=InstanceType.of("ml.g5.xlarge"),
)
app.synth()
print(find_spec("numpy"))
"""


def _core(environment: Environment) -> None:
    _expect(environment.run("python", "-W", "error", "-c", _FINDING), "Finding\n")


def _check(environment: Environment) -> None:
    _expect(environment.run("triton-model-check", MODELS), "0 errors, 0 warnings")
    environment.run("triton-model-check", MODELS / "missing", exit_code=2)


def _client(environment: Environment) -> None:
    printed = environment.run("python", "-W", "error", "-c", _CALL)
    _expect(printed, "[2.0, 4.0]\n{'B'}\n")


def _rehearse(environment: Environment) -> None:
    (environment.folder / "queue.json").write_text(json.dumps(_QUEUE))
    (environment.folder / "rehearsal.py").write_text(_REHEARSAL)
    _expect(environment.run("python", "rehearsal.py"), "CREATE_COMPLETE ['Queue']")
    _expect(environment.run("cdk-rehearse", "none", "queue.json"), "queue CREATE_COMPLETE")


def _constructs(environment: Environment) -> None:
    (environment.folder / "app.py").write_text(_APP)
    _expect(environment.run("python", "app.py", MODELS), "None\n")
    template = json.loads((environment.folder / "cdk.out" / "Digits.template.json").read_text())
    types = [resource["Type"] for resource in template["Resources"].values()]
    _expect(str(types.count("AWS::SageMaker::Endpoint")), "1")
    _expect(environment.run("constructs-triton", "check", MODELS), "0 errors, 0 warnings")
    missing = environment.run("constructs-triton", "rehearse", "a", "b", exit_code=2)
    _expect(missing, "pip install 'constructs-triton[rehearse]'")


def _expect(printed: str, wanted: str) -> None:
    if wanted not in printed:
        raise CommandError(f"{wanted!r} was expected, got {printed!r}")


#: By the name of the distribution. Each raises a ``CommandError`` if the package does not work.
USES: dict[str, Callable[[Environment], None]] = {
    "constructs-triton-core": _core,
    "triton-model-check": _check,
    "constructs-triton-client": _client,
    "cdk-rehearse": _rehearse,
    "constructs-triton": _constructs,
}
