"""Compare the facts of core and check with what AWS's own packages publish: ``make facts-check``.

The packages are in a separate environment, ``.venv-facts``: sagemaker-core conflicts with
nvidia-pytriton.
Also compares the image tables with the newest SageMaker SDKs, which may have moved them: see
``dev/sdk_tables.py``. Prints every difference and exits with 1 if there is any.

``--newest`` compares with today's newest packages in place of the pinned ones: what AWS has changed
since the facts were written.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sdk_tables

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import instance_types, limits
from constructs_triton_functions import PYTHON_VERSION
from triton_model_check.facts import images
from triton_model_check.facts.inference_ami import inference_ami_names
from triton_model_check.facts.published import load

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-facts"
PINNED = ("sagemaker-core==2.27.0", "botocore==1.44.5", "cfn-lint==1.58.0", "moto==5.2.5")
NEWEST = tuple(requirement.partition("==")[0] for requirement in PINNED)

# botocore's patterns use classes that Python's re does not support; ours are equivalent.
OWN_WORDING = {
    "PolicyName",
    "TargetModelHeader",
    "TagKey",
    "TagValue",
    "EnvironmentValue",
    "KmsKeyId",
}


def published(requirements: Sequence[str], *, newest: bool = False) -> dict[str, Any]:
    """Return what ``dev/facts_probe.py`` prints in an environment with ``requirements``.

    ``newest`` installs them again, so that names without a version get today's newest.
    """
    python = _install(requirements, again=newest)
    print("reading them ...", file=sys.stderr)
    printed = subprocess.run(
        [str(python), str(ROOT / "dev" / "facts_probe.py")],
        check=True,
        stdout=subprocess.PIPE,
        cwd=ENVIRONMENT,
    )
    figures: dict[str, Any] = json.loads(printed.stdout)
    return figures


def _install(requirements: Sequence[str], *, again: bool) -> Path:
    """Create the environment, once for a list of requirements, and return its interpreter."""
    python = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin") / "python"
    stamp = ENVIRONMENT / "installed.txt"
    wanted = "\n".join(requirements)
    if not again and stamp.is_file() and stamp.read_text() == wanted:
        return python
    print(f"installing {', '.join(requirements)} into {ENVIRONMENT.name} ...", file=sys.stderr)
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    (ENVIRONMENT / ".gitignore").write_text("*\n")  # for git and ruff
    pip = [str(python), "-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, *requirements], check=False).returncode:
        raise SystemExit(f"pip could not install {', '.join(requirements)}; see its output above")
    stamp.write_text(wanted)
    return python


def differences(figures: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each difference between our facts and theirs."""
    yield from _accounts(figures["images"])
    yield from _uris(figures["uris"])
    yield from _names(figures)
    yield from _hardware(figures["hardware"])
    yield from _limits(figures["shapes"])


def _accounts(theirs: dict[str, Any]) -> Iterator[str]:
    listed = {version for version in images.published_versions() if _is_listed(version)}
    yield from _sets("image versions", listed, set(theirs["versions"]))
    for version, row in theirs["versions"].items():
        ours = {region: images.account(region, version) for region in images.regions(version)}
        yield from _sets(
            f"accounts of {version}", set(ours.items()), set(row["registries"].items())
        )
        yield from _sets(
            f"repository of {version}", {images.repository_name()}, {row["repository"]}
        )


def _is_listed(version: str) -> bool:
    image = images.image_version(version)
    return image.regions_are_known and not image.is_legacy


def _uris(theirs: dict[str, str | None]) -> Iterator[str]:
    for key, uri in theirs.items():
        region, version, processor = key.split(" ")
        ours = _uri(region, version, cpu=processor == "cpu")
        if ours != uri:
            yield f"image {key}: we have {ours}, sagemaker-core has {uri}"


def _uri(region: str, version: str, *, cpu: bool) -> str | None:
    try:
        return images.image_uri(region, version, cpu=cpu)
    except InvalidValueError:
        return None


def _names(figures: dict[str, Any]) -> Iterator[str]:
    shapes, cfn = figures["shapes"], figures["cfn"]
    types, amis = set(instance_types.instance_type_names()), set(inference_ami_names())
    yield from _sets(
        "botocore instance types", types, _enum(shapes, "ProductionVariantInstanceType")
    )
    yield from _sets("cfn-lint instance types", types, set(cfn["instance_types"]))
    yield from _sets(
        "botocore inference AMIs", amis, _enum(shapes, "ProductionVariantInferenceAmiVersion")
    )
    batch = set(load("batch_transform")["instance_types"])
    yield from _sets("batch transform types", batch, _enum(shapes, "TransformInstanceType"))
    yield from _sets("cfn-lint inference AMIs", amis, set(cfn["inference_amis"]))


def _enum(shapes: dict[str, Any], name: str) -> set[str]:
    return set(shapes[f"sagemaker:{name}"]["enum"])


def _hardware(theirs: dict[str, dict[str, Any]]) -> Iterator[str]:
    """EC2's record lacks a few withdrawn types; their rows have their own source."""
    for name in instance_types.instance_type_names():
        ours = instance_types.InstanceType.of(name)
        for key, value in theirs.get(name, {}).items():
            yield from _values(f"{name} {key}", getattr(ours, key), value)


def _limits(shapes: dict[str, Any]) -> Iterator[str]:
    for name, limit in vars(limits).items():
        if isinstance(limit, limits.TextLimit | limits.RangeLimit) and limit.shape:
            key = limit.shape if ":" in limit.shape else f"sagemaker:{limit.shape}"
            theirs = shapes.get(key)
            yield from (
                [f"{name}: botocore has no shape {key}"]
                if theirs is None
                else _limit(name, limit, theirs)
            )


def _limit(
    name: str, limit: limits.TextLimit | limits.RangeLimit, theirs: dict[str, Any]
) -> Iterator[str]:
    if isinstance(limit, limits.RangeLimit):
        yield from _values(
            name, (limit.minimum, limit.maximum), (theirs.get("min"), theirs.get("max"))
        )
        return
    yield from _values(f"{name} length", limit.max_length, theirs.get("max"))
    if limit.shape.rpartition(":")[2] not in OWN_WORDING:
        yield from _values(f"{name} pattern", limit.pattern, theirs.get("pattern"))


def _values(name: str, ours: object, theirs: object) -> Iterator[str]:
    if ours != theirs:
        yield f"{name}: we have {ours}, they have {theirs}"


def _sets(name: str, ours: set[Any], theirs: set[Any]) -> Iterator[str]:
    for each in sorted(ours - theirs):
        yield f"{name}: only we have {each}"
    for each in sorted(theirs - ours):
        yield f"{name}: we lack {each}"


def notes(figures: dict[str, Any]) -> Iterator[str]:
    """Yield what is newer in the packages, but not wrong in ours."""
    runtimes = [
        re.fullmatch(r"python3\.(\d+)", name)
        for name in figures["shapes"]["lambda:Runtime"]["enum"]
    ]
    newest = max(int(match[1]) for match in runtimes if match)
    if newest > int(PYTHON_VERSION.partition(".")[2]):
        yield (
            f"Lambda runtime: we use Python {PYTHON_VERSION}, botocore has 3.{newest}; raise "
            "PYTHON_VERSION in constructs_triton_functions/__init__.py "
            "when all Regions have the version"
        )


def main() -> int:
    """Print the differences; return 1 if there are any."""
    is_newest = "--newest" in sys.argv[1:]
    figures = published(NEWEST, newest=True) if is_newest else published(PINNED)
    found = [*differences(figures), *sdk_tables.differences()]
    for line in found:
        print(line)
    for line in notes(figures):
        print(f"note: {line}")
    compared = ", ".join(f"{name} {version}" for name, version in figures["packages"].items())
    print(
        f"{len(found)} differences from {compared}: {len(figures['uris'])} image URIs, "
        f"{len(instance_types.instance_type_names())} instance types compared"
    )
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
