"""Files and answers of AWS that one command each reads: captures, journals, lock files, templates,
prices.

Documents of JSON are read twice: as they are mutated, and with some of their values replaced by
others, which mutated bytes rarely do. The mutated bytes decide which values.
"""

from __future__ import annotations

import copy
import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from template_targets import replace_one

from cdk_rehearse.template_parsing import parse_template
from constructs_triton_core.aws_reader import AwsReader
from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_core.untrusted.regular_files import read_json
from constructs_triton_tools.building.environments.contents import read_contents
from constructs_triton_tools.measuring.tuning.journal import Journal
from constructs_triton_tools.operations.captured_requests import read_capture_files
from constructs_triton_tools.operations.stopping.saved_endpoint import read_saved
from constructs_triton_tools.planning.prices import price_of
from constructs_triton_tools.planning.recommender import read_recommendations
from triton_model_check.artifacts.environments.lock import LOCK_MEMBER, read_lock
from triton_model_check.artifacts.environments.requirements import read_requirements
from triton_model_check.model_files.plan_manifest import read_manifest

_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        1.5,
        1e300,
        10**400,
        "",
        "x",
        "NaN",
        "\ud800",
        [],
        [[]],
        [None],
        ["x"],
        {},
    ),
    *({"x": 1}, {"Ref": "x"}, {"Fn::Sub": "${x}"}, {"Fn::If": ["C", 1, 2]}),
)
_INPUTS = '{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]}]}'
_CAPTURED = {
    "captureData": {
        "endpointInput": {
            "observedContentType": "application/json",
            "mode": "INPUT",
            "data": _INPUTS,
            "encoding": "JSON",
        },
        "endpointOutput": {
            "observedContentType": "application/octet-stream",
            "mode": "OUTPUT",
            "data": "eyJvdXRwdXRzIjpbXX0=",
            "encoding": "BASE64",
        },
    },
    "eventMetadata": {"eventId": "a", "inferenceId": "i", "inferenceTime": "2024-01-01T00:00:00Z"},
    "eventVersion": "0",
}
_SAVED = {
    "phase": "stopped",
    "region": "us-east-1",
    "stack": None,
    "create_endpoint": {
        "EndpointName": "a",
        "EndpointConfigName": "b",
        "Tags": [{"Key": "a", "Value": "b"}],
    },
    "capacities": {
        "EndpointName": "a",
        "DesiredWeightsAndCapacities": [{"VariantName": "v", "DesiredInstanceCount": 1}],
    },
    "scalable_targets": [
        {
            "ServiceNamespace": "sagemaker",
            "ResourceId": "endpoint/a/variant/v",
            "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        }
    ],
    "scaling_policies": [],
    "scheduled_actions": [],
    "step_policy_alarms": {"a": ["b"]},
}
_JOB = {
    "JobName": "j",
    "Status": "COMPLETED",
    "InferenceRecommendations": [
        {
            "EndpointConfiguration": {"InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1},
            "Metrics": {"MaxInvocations": 100, "ModelLatency": 10, "CostPerHour": 1.408},
            "ModelConfiguration": {
                "InferenceSpecificationName": "a",
                "EnvironmentParameters": [{"Key": "a", "Value": "b"}],
            },
        }
    ],
}
_PRODUCT = {
    "product": {
        "attributes": {"usagetype": "USE1-Host:ml.g5.xlarge", "instanceName": "ml.g5.xlarge"}
    },
    "terms": {
        "OnDemand": {
            "a": {"priceDimensions": {"b": {"pricePerUnit": {"USD": "1.408"}, "unit": "Hrs"}}}
        }
    },
}
_MANIFEST = {
    "format": 1,
    "key": "a" * 64,
    "gpu_model": "A10G",
    "compute_capability": "8.6",
    "built_on": "ml.g5.xlarge",
    "image": "i",
    "tensorrt": "10.3",
    "driver": "1",
    "arguments": ["--fp16"],
    "model_sha256": "a",
    "plan_bytes": 1,
    "plan_sha256": "a",
    "build_seconds": 1,
    "job": "j",
    "log_group": "l",
    "inputs": [
        {"name": "x", "data_type": "TYPE_FP32", "shape": [-1], "min": [1], "opt": [2], "max": [4]}
    ],
    "outputs": [{"name": "y", "data_type": "", "shape": None}],
}
_TEMPLATE = {
    "Parameters": {"A": {"Type": "String"}},
    "Conditions": {"C": {"Fn::Equals": ["a", "b"]}},
    "Resources": {
        "P": {
            "Type": "AWS::SSM::Parameter",
            "Condition": "C",
            "Properties": {"Type": "String", "Value": {"Fn::Sub": "${A}"}},
        }
    },
}
_YAML = b"""Resources:
  P:
    Type: AWS::SSM::Parameter
    Properties: &properties
      Type: String
      Value: !Sub "${AWS::Region}-x"
      Tags: {a: !GetAtt Q.Arn, b: !If [C, 1, 2], d: 2020-01-01}
  Q: {Type: "AWS::SSM::Parameter", Properties: *properties}
Conditions: {C: !Equals [a, b]}
"""
_LOCK = (
    b"# constructs-triton environment lock 1; "
    b"`constructs-triton env build` writes it, keep it in git\n"
    b'# {"constraints": [], "digest": "x", "extras": [], "options": ["--index", "https://a"], '
    b'"platform": "x86_64-manylinux_2_39", "python": "3.12", "requirements": ["six"]}\n'
    b"six==1.0 --hash=sha256:abc\n"
)
_METADATA = (
    b"Metadata-Version: 2.1\nName: a\nVersion: 1\nLicense: MIT\nClassifier: License :: OSI\n\n"
    b"text\n"
)
_REQUIREMENTS = b"six>=1\n-r a.txt\n-c b.txt\n--index-url https://x\n# c\nnumpy \\\n ==1\n"
_PROJECT = (
    b'[project]\nname = "a"\nversion = "1"\ndependencies = ["six"]\n'
    b'[project.optional-dependencies]\nx = ["y"]\n'
    b'[tool.uv.sources]\nz = {path = "z"}\n'
)
_JOURNAL = (
    b'{"inputs": {"model": "a"}}\n'
    b'{"key": "q #0", "value": {"rate": 1.5}}\n'
    b'{"key": "q #1", "value": null}\n'
)


@dataclass(frozen=True)
class Reader:
    """``read`` gets the bytes and an empty folder."""

    name: str
    samples: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], object]


def _changed(document: Any, seed: bytes) -> bytes:
    """Return a document in which some values are replaced or removed."""
    changed, rng = copy.deepcopy(document), random.Random(seed)
    for _ in range(rng.randint(1, 3)):
        replace_one(rng, changed, _VALUES)
    return json.dumps(changed).encode("utf-8", "surrogatepass")


def _document(
    name: str, document: Mapping[str, Any], read: Callable[[bytes, Path], object]
) -> Reader:
    """Return a reader of a JSON document."""

    def read_both(content: bytes, folder: Path) -> None:
        for each in (content, _changed(document, content)):
            with suppress(ConstructsTritonError):
                read(each, folder)

    return Reader(name, lambda: [json.dumps(document).encode()], read_both)


def _file(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def _read_capture(content: bytes, folder: Path) -> None:
    def no_session() -> Any:
        raise AssertionError("a file needs no session")

    for each in read_capture_files(str(_file(folder, "a.jsonl", content)), no_session):
        for decode in (each.decode_request, each.decode_response):
            with suppress(ConstructsTritonError):
                decode()


def _read_recommendations(content: bytes, folder: Path) -> None:
    try:
        described = read_json(_file(folder, "job.json", content))
    except ValueError:  # the command makes one sentence of it
        return
    read_recommendations(described)


class _PriceList(AwsReader):
    """Answers with one product."""

    def __init__(self, product: str) -> None:
        self._product = product

    def members(self, *_: str, **_request: Any) -> Iterator[str]:
        yield self._product


def _read_prices(content: bytes, _: Path) -> None:
    reader = _PriceList(content.decode("utf-8", "replace"))
    with suppress(ConstructsTritonError):
        price_of(reader, "us-east-1", "ml.g5.xlarge", "Train")
    price_of(reader, "us-east-1", "ml.g5.xlarge")


def _read_requirements(name: str, extras: tuple[str, ...], content: bytes, folder: Path) -> None:
    _file(folder, "a.txt", b"a\n")
    _file(folder, "b.txt", b"b<1\n")
    read_requirements(_file(folder, name, content), list(extras))


def _environment(lock: bytes = _LOCK, metadata: bytes = _METADATA) -> bytes:
    stream = io.BytesIO()
    members = {
        "bin/activate": b"x",
        LOCK_MEMBER: lock,
        "lib/python3.12/site-packages/a-1.dist-info/METADATA": metadata,
        "lib/python3.12/site-packages/a.libs/liba.so": b"x",
    }
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def _read_environment(content: bytes, folder: Path) -> None:
    """Read an archive of these bytes, and archives in which they are a member."""
    for each in (content, _environment(lock=content), _environment(metadata=content)):
        with suppress(ConstructsTritonError):
            read_contents(_file(folder, "e.tar", each))


def _read_template(content: bytes, _: Path) -> None:
    parse_template(content.decode("utf-8", "replace"))


READERS = (
    _document("capture", _CAPTURED, _read_capture),
    _document(
        "stopped-endpoint", _SAVED, lambda each, folder: read_saved(_file(folder, "s.json", each))
    ),
    Reader(
        "journal",
        lambda: [_JOURNAL],
        lambda each, folder: Journal(_file(folder, "j.jsonl", each), {"model": "a"}).close(),
    ),
    _document("recommender", _JOB, _read_recommendations),
    _document("price-list", _PRODUCT, _read_prices),
    Reader("lock", lambda: [_LOCK], lambda each, _: read_lock(each, "lock").versions),
    Reader(
        "requirements", lambda: [_REQUIREMENTS], partial(_read_requirements, "requirements.txt", ())
    ),
    Reader("pyproject", lambda: [_PROJECT], partial(_read_requirements, "pyproject.toml", ("x",))),
    Reader("packed-environment", lambda: [_environment(), _LOCK, _METADATA], _read_environment),
    _document(
        "plan-manifest",
        _MANIFEST,
        lambda each, folder: read_manifest(_file(folder, "p.json", each)),
    ),
    _document("template-json", _TEMPLATE, _read_template),
    Reader("template-yaml", lambda: [_YAML], _read_template),
)
