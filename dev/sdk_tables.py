"""Compare ``triton_model_check/facts/images.json`` with the image tables of the newest SageMaker
SDKs.

Only the files are read, from wheels that pip downloads without their dependencies. A table that is
no longer at its place is a difference too: the SDK has moved it, and the source in ``images.json``
is out of date.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from triton_model_check.facts import images
from triton_model_check.facts.published import load

CORE_TABLE = "sagemaker/core/image_uri_config/sagemaker-tritonserver.json"
SDK_TABLE = "sagemaker/image_uri_config/sagemaker-tritonserver.json"
LEGACY_TABLE = "sagemaker/serve/model_server/triton/triton_builder.py"
LEGACY_NAME = "TRITON_IMAGE_ACCOUNT_ID_MAP"
TABLES = {"sagemaker-core": (CORE_TABLE,), "sagemaker<3": (SDK_TABLE, LEGACY_TABLE)}


def newest_wheel(requirement: str, folder: Path) -> Path:
    """Download the newest wheel of a package, without its dependencies."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--quiet",
        "--disable-pip-version-check",
    ]
    target = folder / requirement.partition("<")[0]
    if subprocess.run(
        [*pip, "--no-deps", "--dest", str(target), requirement], check=False
    ).returncode:
        raise SystemExit(f"pip could not download {requirement}; see its output above")
    (wheel,) = target.glob("*.whl")
    return wheel


def differences() -> Iterator[str]:
    """Yield a line for each difference from the newest SDKs."""
    with tempfile.TemporaryDirectory() as scratch:
        for requirement, tables in TABLES.items():
            wheel = newest_wheel(requirement, Path(scratch))
            print(f"reading {wheel.name} ...", file=sys.stderr)
            yield from wheel_differences(wheel, tables)


def wheel_differences(wheel: Path, tables: tuple[str, ...]) -> Iterator[str]:
    """Yield a line for each table of a wheel that is not at its place,
    or has other values than ours.
    """
    name = "-".join(wheel.name.split("-")[:2])
    with zipfile.ZipFile(wheel) as archive:
        for table in tables:
            if table not in archive.namelist():
                yield f"{name}: {table} has moved; {_found_elsewhere(archive, table)}"
            elif table == LEGACY_TABLE:
                yield from _legacy(name, archive.read(table).decode())
            else:
                yield from _registries(name, json.loads(archive.read(table))["versions"])


def _found_elsewhere(archive: zipfile.ZipFile, table: str) -> str:
    file = table.rpartition("/")[2]
    others = [each for each in archive.namelist() if each.endswith(f"/{file}")]
    return f"the wheel has {', '.join(others)}" if others else f"the wheel has no {file}"


def _registries(name: str, versions: Mapping[str, Any]) -> Iterator[str]:
    """An older SDK lacks newer versions and Regions, so only what it has is compared."""
    for version, row in versions.items():
        image = images.image_version(version)
        if not image.is_published:
            yield f"{name}: has the image {version}, which we lack"
            continue
        ours = load("images")["accounts"]
        for region, account in row["registries"].items():
            if ours.get(region) != account or region in image.regions_without:
                yield (
                    f"{name}: {version} in {region} is in account {account}, "
                    f"we have {ours.get(region)}"
                )


def _legacy(name: str, source: str) -> Iterator[str]:
    """The accounts of images before 23.12 are a dictionary in the SDK's code."""
    for node in ast.walk(ast.parse(source)):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if [ast.unparse(target) for target in targets] == [LEGACY_NAME]:
            theirs = ast.literal_eval(node.value)  # type: ignore[attr-defined]  # an ast.Assign
            ours = load("images")["legacy_accounts"]
            for region in sorted(theirs.keys() | ours.keys()):
                if theirs.get(region) != ours.get(region):
                    yield (
                        f"{name}: {region} before 23.12: they {theirs.get(region)}, "
                        f"we {ours.get(region)}"
                    )
            return
    yield f"{name}: {LEGACY_TABLE} has no {LEGACY_NAME}; the table has moved"
