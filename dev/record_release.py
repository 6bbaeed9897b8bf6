"""Record a release: the digests of its deploy-time functions, and what its app and examples deploy.

    python dev/record_release.py 0.1.0

Adds the functions to ``constructs_triton/testing/released_functions.json``, with which a rehearsal
runs the functions of an assembly that this release wrote. Writes
``tests/acceptance/last_release.json``, with which a test compares app.py and the examples. It takes
minutes, because it synthesizes all of them.

``--sources`` names the folder of another release, and ``--functions`` the folder of its functions.
``PYTHONPATH`` may name what it needs and this version does not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from members import PROJECT
from release_check import RELEASED_FUNCTIONS

from cdk_rehearse.construct_libraries import function_digests
from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE

FUNCTIONS = "packages/functions/src/constructs_triton_functions"
RELEASED = PROJECT / RELEASED_FUNCTIONS
RECORD = PROJECT / "tests" / "acceptance" / "last_release.json"
#: Its weights, 84 MB, have to be downloaded.
LEFT_OUT = "minilm_ensembles"
_GENERATED = shutil.ignore_patterns("build", "models", "cdk.out", "__pycache__")
#: The types whose properties decide what serves, with their names in summaries.
_COMPARED = {
    "AWS::SageMaker::Endpoint": "endpoint",
    ADOPTED_TYPE: "endpoint",
    "AWS::SageMaker::EndpointConfig": "configuration",
    "AWS::SageMaker::InferenceComponent": "component",
    "AWS::SageMaker::Model": "model",
}

Record = dict[str, Any]


def record_of(assembly: Assembly, sources: Path) -> Record:
    """Return what an app deploys, and the digest of its sources.

    Resources by ``<stack>/<logical ID>`` with their types, the digests of properties that decide
    what serves, and the keys of uploaded models.
    """
    resources, properties = {}, {}
    for stage, artifact in assembly.artifacts():
        for logical_id, each in stage.template(artifact).resources.items():
            name = f"{stage.stack_name(artifact)}/{logical_id}"
            resources[name] = each.type
            if each.type in _COMPARED:
                properties[name] = _digest(json.dumps(each.properties, sort_keys=True).encode())
    return {
        "sources": sources_digest(sources),
        "resources": _by_type(resources),
        "properties": dict(sorted(properties.items())),
        "uploads": sorted(set(_uploads(assembly))),
    }


def _by_type(resources: Mapping[str, str]) -> dict[str, list[str]]:
    """The names of the resources of each type."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, kind in sorted(resources.items()):
        found[kind].append(name)
    return dict(sorted(found.items()))


def sources_digest(app: Path) -> str:
    """Return the digest of an app's Python files, as they are in the project."""
    files = [app] if (app.parent / "examples").exists() else sorted(app.parent.glob("*.py"))
    return _digest(
        *(content for each in files for content in (each.name.encode(), each.read_bytes()))
    )


def _uploads(assembly: Assembly) -> Iterator[str]:
    """The keys of models and of their lists: all files that are neither templates
    nor code of functions.
    """
    for stage in {stage.directory: stage for stage, _ in assembly.artifacts()}.values():
        for asset in (each for manifest in stage.asset_manifests for each in manifest.files()):
            if (
                asset.packaging == "file"
                and asset.path
                and not asset.path.name.endswith(".template.json")
            ):
                yield from (each["objectKey"] for each in asset.destinations.values())


def _digest(*contents: bytes) -> str:
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:16]


# What changed since the release.


def unexplained(record: Record, app: str, after: Record | None, changelog: str) -> str:
    """Return the line that explains what an app changes since the release; empty if nothing is to
    explain.

    A line of the changelog with exactly these numbers explains it, and a reason after them. So does
    the app's entry in ``edited`` of the record, but only if the Python files of the app itself
    changed. Either is wrong if its numbers are. ``after`` is ``None`` for an app that no longer
    exists.
    """
    before = record["apps"].get(app)
    found = "" if before is None else summary(before, after)
    beginning = f"- `{app}` since {record['release']}: "
    stated = re.findall(rf"^{re.escape(beginning)}(.*?)\. \S", changelog, re.MULTILINE)
    if app in record["edited"]:
        entry = record["edited"][app]
        is_edited = before is None or after is None or before["sources"] != after["sources"]
        stated += [entry["differences"]] if is_edited and entry["reason"] else [""]
    is_explained = stated == ([found] if found else [])
    return "" if is_explained else f"{beginning}{found or 'nothing changed'}. REASON"


def summary(before: Record, after: Record | None) -> str:
    """Return how many resources, properties and uploads differ; empty if none do."""
    if after is None:
        return "removed"
    old, new = (
        {(name, kind) for kind, names in each["resources"].items() for name in names}
        for each in (before, after)
    )
    found = [
        _counted(len(new - old), "logical id", "created"),
        _counted(len(old - new), "logical id", "deleted"),
    ]
    changed: dict[str, int] = defaultdict(int)
    for name, kind in sorted(old & new):
        if before["properties"].get(name) != after["properties"].get(name):
            changed[_COMPARED[kind]] += 1
    found += [_counted(count, what, "changed") for what, count in sorted(changed.items())]
    found.append(
        _counted(len({*after["uploads"]} - {*before["uploads"]}), "file", "uploaded again")
    )
    return ", ".join(filter(None, found))


def _counted(count: int, what: str, change: str) -> str:
    return f"{count} {what}{'s' * (count != 1)} {change}" if count else ""


# The record of a release.


def apps_of(sources: Path) -> dict[str, Path]:
    """Return ``app.py`` and every example, by the name of its folder;
    the first is called ``demo``.
    """
    examples = [
        *sources.glob("examples/*/app.py"),
        *sources.glob("examples/published_systems/*/app.py"),
    ]
    found = {"demo": sources / "app.py", **{app.parent.name: app for app in sorted(examples)}}
    return {name: app for name, app in found.items() if name != LEFT_OUT}


def synthesize(sources: Path, folder: Path) -> Path:
    """Write the assembly of each app, which runs in a copy with the packages of its release."""
    copy = folder / "copy"
    for name in ("assets", "examples"):
        shutil.copytree(sources / name, copy / name, ignore=_GENERATED)
    for name in ("app.py", "cdk.json"):
        shutil.copy(sources / name, copy)
    path = os.pathsep.join(filter(None, (str(sources), os.environ.get("PYTHONPATH"))))
    for name, app in apps_of(copy).items():
        own = app.with_name("cdk.json")
        settings = json.loads((own if own.exists() else copy / "cdk.json").read_text())
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "CDK_OUTDIR": str(folder / "assemblies" / name),
            "CDK_CONTEXT_JSON": json.dumps(settings["context"]),
        }
        command = settings["app"].replace("python3", sys.executable)
        run = subprocess.run(
            ["sh", "-c", command], check=False, cwd=app.parent, env=environment, capture_output=True
        )
        if run.returncode:
            sys.exit(f"{name}: cannot be synthesized\n{run.stdout.decode()}{run.stderr.decode()}")
        print(f"synthesized {name}", flush=True)
    return folder / "assemblies"


def main(arguments: list[str] | None = None) -> None:
    """Write both files."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("release", help="the name of the release, such as 0.1.0")
    parser.add_argument(
        "--sources", type=Path, default=PROJECT, help="its folder (default: this project)"
    )
    parser.add_argument("--functions", default=FUNCTIONS, help="the folder of its functions in it")
    given = parser.parse_args(arguments)
    sources: Path = given.sources.resolve()
    digests = function_digests(sources / given.functions)
    released = json.loads(RELEASED.read_text(encoding="utf-8"))
    released[given.release] = {
        handler: digest for digest, handler in sorted(digests.items(), key=lambda each: each[1])
    }
    RELEASED.write_text(json.dumps(released, indent=2) + "\n", encoding="utf-8")
    with TemporaryDirectory(prefix="release-") as folder:
        assemblies = synthesize(sources, Path(folder))
        apps = {
            name: record_of(Assembly(assemblies / name), app)
            for name, app in apps_of(sources).items()
        }
    earlier = json.loads(RECORD.read_text(encoding="utf-8"))
    edited = earlier["edited"] if earlier["release"] == given.release else {}
    record = {"release": given.release, "edited": edited, "apps": apps}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"recorded {len(digests)} functions and {len(apps)} apps")


if __name__ == "__main__":
    main()
