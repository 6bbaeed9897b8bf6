"""Record a release: the digests of its deploy-time functions, and what its app and examples deploy.

    python dev/record_release.py 0.1.0

Adds the functions to ``constructs_triton/testing/released_functions.json``, with which a rehearsal runs the
functions of an assembly that this release wrote. Writes ``tests/acceptance/releases/0.1.0.json``, with which
a test compares app.py and every example. ``--sources`` names the folder of another release, and
``--functions`` its folder of functions. ``PYTHONPATH`` may name what that release needs and this one does not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from members import PROJECT

from cdk_rehearse.construct_libraries import function_digests
from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE

FUNCTIONS = "packages/functions/src/constructs_triton_functions"
RELEASED = PROJECT / "constructs_triton" / "testing" / "released_functions.json"
RECORDS = PROJECT / "tests" / "acceptance" / "releases"
#: Its weights, 84 MB, have to be downloaded.
LEFT_OUT = "minilm_ensembles"
_GENERATED = shutil.ignore_patterns("build", "models", "cdk.out", "__pycache__")
#: The types whose properties decide what serves.
_COMPARED = (
    "AWS::SageMaker::Endpoint",
    "AWS::SageMaker::EndpointConfig",
    "AWS::SageMaker::InferenceComponent",
    "AWS::SageMaker::Model",
    ADOPTED_TYPE,
)

Record = dict[str, Any]


def record_of(assembly: Assembly) -> Record:
    """Return what an app deploys: logical IDs by type, digests of properties, and the keys of its models."""
    stacks: Record = {}
    for stage, artifact in assembly.artifacts():
        types: dict[str, list[str]] = defaultdict(list)
        properties: Record = {}
        for logical_id, each in sorted(stage.template(artifact).resources.items()):
            types[each.type].append(logical_id)
            if each.type in _COMPARED:
                properties[logical_id] = {
                    name: _digest(json.dumps(value, sort_keys=True).encode())
                    for name, value in sorted(each.properties.items())
                }
        stacks[stage.stack(artifact).name] = {"resources": dict(sorted(types.items())), "properties": properties}
    return {"stacks": dict(sorted(stacks.items())), "uploads": sorted(set(_uploads(assembly)))}


def _uploads(assembly: Assembly) -> Iterator[str]:
    """The keys of models and of their lists: all files that are neither templates nor code of functions."""
    for stage in {stage.directory: stage for stage, _ in assembly.artifacts()}.values():
        for manifest in stage.asset_manifests:
            for asset in manifest.files():
                if asset.packaging == "file" and not asset.path.name.endswith(".template.json"):
                    yield from (each["objectKey"] for each in asset.destinations.values())


def _digest(*contents: bytes) -> str:
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:16]
