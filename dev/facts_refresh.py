"""Rewrite the facts of core and check from the newest public packages: ``make facts-refresh``.

Facts that a package states are rewritten, and the difference is printed: image versions, accounts
and Regions, instance types and their hardware, and the published figures that the tests compare
with. Facts that a person has looked up (CUDA and Python of a release, compute capabilities,
inference AMIs) are kept. Those that are still to be looked up are listed at the end.

The schema of ``config.pbtxt`` is copied from the installed tritonclient, with its license.
"""

from __future__ import annotations

import difflib
import json
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from facts_check import NEWEST, ROOT, published
from google.protobuf import descriptor_pb2
from tritonclient.grpc import model_config_pb2

CHECK = ROOT / "packages/check/src/triton_model_check"
IMAGES = CHECK / "facts" / "images.json"
INSTANCE_TYPES = ROOT / "packages/core/src/constructs_triton_core/facts/instance_types.json"
FIGURES = {
    "published_tritonserver_images": ROOT / "packages/check/tests/facts",
    "published_instance_types": ROOT / "packages/core/tests/facts",
}
SCHEMA = CHECK / "model_config" / "model_config.binpb"
SCHEMA_LICENSE = SCHEMA.with_name("model_config.LICENSE.txt")
TYPES = "ProductionVariantInstanceType"


def refresh_images(facts: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Rewrite versions and accounts in place; return what is left to look up."""
    registries = {version: row["registries"] for version, row in theirs["versions"].items()}
    facts["accounts"] = dict(
        sorted(
            {region: each for row in registries.values() for region, each in row.items()}.items()
        )
    )
    missing = []
    for version, row in registries.items():
        if version not in facts["versions"]:
            missing.append(f"images.json: released_on, python and cuda of {version}")
        known = facts["versions"].setdefault(version, {})
        known["regions_without"] = sorted(set(facts["accounts"]) - set(row))
    facts["versions"] = dict(sorted(facts["versions"].items(), reverse=True))
    return missing


def refresh_instance_types(facts: dict[str, Any], figures: dict[str, Any]) -> list[str]:
    """Rewrite the list of types and their hardware in place; return what is left to look up."""
    capabilities = {
        row["gpu_model"]: row["compute_capability"]
        for row in facts["types"].values()
        if "compute_capability" in row
    }
    names = figures["shapes"][f"sagemaker:{TYPES}"]["enum"]
    rows, missing = {}, []
    for name in names:
        row = {**facts["types"].get(name, {}), **figures["hardware"].get(name, {})}
        if row.get("gpu_model") in capabilities:
            row["compute_capability"] = capabilities[row["gpu_model"]]
        elif row.get("gpus", 0):
            missing.append(
                f"instance_types.json: compute_capability of {name} ({row.get('gpu_model')})"
            )
        if "vcpus" not in row:
            missing.append(f"instance_types.json: hardware of {name}")
            row = {"gpus": None}
        rows[name] = row
    facts["types"] = rows
    return missing


def published_figures(figures: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The files that the tests compare with: name to content."""
    packages = figures["packages"]
    versions = figures["images"]["versions"]
    return {
        "published_tritonserver_images": {
            "source": f"PyPI sagemaker-core {packages['sagemaker-core']}, "
            "sagemaker/core/image_uri_config/sagemaker-tritonserver.json: registries by version",
            "versions": {
                name: dict(sorted(versions[name]["registries"].items()))
                for name in sorted(versions)
            },
        },
        "published_instance_types": {
            "source": f"botocore {packages['botocore']} sagemaker service model: {TYPES}",
            "instance_types": sorted(figures["shapes"][f"sagemaker:{TYPES}"]["enum"]),
        },
    }


def refresh_schema() -> None:
    """Copy the descriptor of ``model_config.proto`` and its license, and print what changed."""
    written, published = SCHEMA.read_bytes(), published_schema()
    texts = (
        str(descriptor_pb2.FileDescriptorProto.FromString(each)) for each in (written, published)
    )
    show_changes(SCHEMA, *texts)
    SCHEMA.write_bytes(published)
    SCHEMA_LICENSE.write_text(published_license(), encoding="utf-8")


def published_schema() -> bytes:
    """The descriptor in the installed tritonclient."""
    return bytes(model_config_pb2.DESCRIPTOR.serialized_pb)


def published_license() -> str:
    """The license of the installed tritonclient."""
    client = distribution("tritonclient")
    (file,) = (each for each in client.files or () if each.name == "LICENSE.txt")
    return file.read_text(encoding="utf-8")


def render(value: Any, depth: int = 2, level: int = 0) -> str:
    """Return JSON with a line for each entry of the outer ``depth`` levels,
    so that a diff is readable.
    """
    pad, end = "  " * (level + 1), "  " * level
    if depth and isinstance(value, dict) and value:
        entries = (
            f"{pad}{json.dumps(key)}: {render(each, depth - 1, level + 1)}"
            for key, each in value.items()
        )
        return "{\n" + ",\n".join(entries) + f"\n{end}}}"
    if depth and isinstance(value, list) and value:
        entries = (f"{pad}{render(each, depth - 1, level + 1)}" for each in value)
        return "[\n" + ",\n".join(entries) + f"\n{end}]"
    return json.dumps(value, ensure_ascii=False)


def write(path: Path, content: dict[str, Any]) -> None:
    """Write the file and print what changed in it."""
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    after = render(content) + "\n"
    path.write_text(after, encoding="utf-8")
    show_changes(path, before, after)


def show_changes(path: Path, before: str, after: str) -> None:
    """Print the difference between two versions of a file."""
    name = str(path.relative_to(ROOT))
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), name, name, lineterm="", n=0
    )
    print("\n".join(lines) or f"{name}: unchanged")


def main() -> int:
    """Refresh all files; return 1 if something is left to look up."""
    refresh_schema()
    figures = published(NEWEST, newest=True)
    images, types = (json.loads(path.read_text()) for path in (IMAGES, INSTANCE_TYPES))
    missing = [*refresh_images(images, figures["images"]), *refresh_instance_types(types, figures)]
    write(IMAGES, images)
    write(INSTANCE_TYPES, types)
    for name, content in published_figures(figures).items():
        write(FIGURES[name] / f"{name}.json", content)
    packages = ", ".join(f"{name}=={version}" for name, version in figures["packages"].items())
    print(f"read from {packages}; write these into facts_check.py and the sources of each file")
    for line in missing:
        print(f"to look up: {line}")
    return 1 if missing else 0


if __name__ == "__main__":
    raise SystemExit(main())
