"""Write what each release of Triton has into ``facts/releases.json``, from source folders.

    python dev/facts_releases.py --server FOLDER --common FOLDER --onnxruntime-backend FOLDER \\
        --limits limits.json

Each FOLDER is a git repository of triton-inference-server with the branches ``r21.08`` and later.
``limits.json`` is the output of ``dev/onnxruntime_limits.py``. A release whose branch is absent
keeps its row; ``--published 26.10`` adds a row in which nothing is known.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RELEASES = ROOT / "packages/check/src/triton_model_check/facts/releases.json"
FIRST_RELEASE = "21.08"

PYTHON_OF_UBUNTU = {"20.04": "3.8", "22.04": "3.10", "24.04": "3.12"}
"""``python3`` of each Ubuntu, which is the Python of the images."""

_BRANCH = re.compile(r"r(2\d\.\d\d)")
# Backends are folders; an ensemble is a platform, and the two TensorFlows have one name in
# config.pbtxt, which the server completes by the version of --backend-config.
_NOT_BACKENDS = {"ensemble"}
_OTHER_NAMES = {"tensorflow1": "tensorflow", "tensorflow2": "tensorflow"}


class Sources:
    """One git repository with a branch for each release."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = self._git("branch", "--all", "--format=%(refname:short)").split()
        branches = {name.removeprefix("origin/"): name for name in names}
        self.branches = {
            match[1]: branch
            for name, branch in branches.items()
            if (match := _BRANCH.fullmatch(name)) and match[1] >= FIRST_RELEASE
        }

    def read(self, release: str, path: str) -> str | None:
        """Return a file of a release, or ``None`` without a branch of the release."""
        if release not in self.branches:
            return None
        return self._git("show", f"{self.branches[release]}:{path}")

    def commit(self, release: str) -> str | None:
        """Return the commit of the release's branch."""
        if release not in self.branches:
            return None
        return self._git("rev-parse", "--short=12", self.branches[release]).strip()

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.check_output(command, encoding="utf-8")


def read_onnxruntime(build: str) -> str:
    """Return the version of ONNX Runtime in a ``build.py``.

    Up to 24.11 it is the third value of a tuple, later a named entry.
    """
    named = re.search(r'"ort_version": "([\d.]+)"', build)
    if named is not None:
        return str(named[1])
    table = build[build.index("TRITON_VERSION_MAP = ") :]
    versions: list[str] = re.findall(r"""^\s+['"]([\d.]+)['"],""", table, re.MULTILINE)
    # The two versions of the container may be on one line; they have no third number.
    return next(version for version in versions if version.count(".") == 2)


def read_python(build: str) -> str:
    """Return the Python of the Ubuntu for which a ``build.py`` installs packages."""
    found = set(re.findall(r"ubuntu:?(2\d)\.?(04)", build))
    (ubuntu,) = {f"{year}.{month}" for year, month in found}
    return PYTHON_OF_UBUNTU[ubuntu]


def read_backends(build: str, guide: str) -> list[str]:
    """Return the backends of NVIDIA's image.

    They are those of ``--enable-all``, which the images are built with; before 22.05, those that
    ``docs/build.md`` lists for the same build.
    """
    start = build.find("def enable_all():")
    if start >= 0:
        listed = re.search(r"all_backends = (\[[^\]]*\])", build[start:])
        assert listed is not None
        names = set(ast.literal_eval(listed[1]))
    else:
        command = next(line for line in guide.splitlines() if "--backend=fil" in line)
        names = set(re.findall(r"--backend=(\w+)", command))
    others = {_OTHER_NAMES[name] for name in names & _OTHER_NAMES.keys()}
    return sorted((names | others) - _NOT_BACKENDS)


def read_bf16(utilities: str | None) -> bool | None:
    """Return whether the ONNX Runtime backend converts BF16, from ``onnxruntime_utils.cc``."""
    return None if utilities is None else "TRITONSERVER_TYPE_BF16" in utilities


def read_fields(proto: str) -> set[str]:
    """Return the fields and enum values of ``model_config.proto`` as ``Message.field``."""
    without_comments = re.sub(r"//.*", "", proto)
    found: set[str] = set()
    opened: list[tuple[str, str]] = []
    statement: list[str] = []
    for word in re.findall(r'"[^"]*"|[\w.]+|[{}=;<>,\[\]]', without_comments):
        if word == "{":
            opened.append((statement[0], statement[1]))
            statement = []
        elif word == "}":
            opened.pop()
            statement = []
        elif word == ";":
            if opened and "=" in statement and statement[0] not in ("option", "reserved"):
                messages = [name for kind, name in opened if kind != "oneof"]
                found.add(".".join([*messages, statement[statement.index("=") - 1]]))
            statement = []
        else:
            statement.append(word)
    return found


def read_releases(server: Sources, backend: Sources) -> dict[str, dict[str, Any]]:
    """Return the row of each release that has a branch of the server."""
    rows = {}
    for release in sorted(server.branches):
        build = server.read(release, "build.py") or ""
        utilities = backend.read(release, "src/onnxruntime_utils.cc")
        rows[release] = {
            "onnxruntime": read_onnxruntime(build),
            "python": read_python(build),
            "supports_bf16": read_bf16(utilities),
            "backends": read_backends(build, _guide(server, release)),
            "mark": "read",
            "commits": [server.commit(release), backend.commit(release)],
        }
    return rows


def _guide(server: Sources, release: str) -> str:
    # The guide moved later, when build.py has the list itself.
    return (server.read(release, "docs/build.md") or "") if release < "22.05" else ""


def read_new_fields(common: Sources) -> dict[str, list[str]]:
    """Return the fields of the first release, and those that each later release added."""
    known: set[str] = set()
    added: dict[str, list[str]] = {}
    for release in sorted(common.branches):
        fields = read_fields(common.read(release, "protobuf/model_config.proto") or "")
        if known - fields:
            raise SystemExit(f"{release} removed fields, which was never so: {known - fields}")
        if fields - known:
            added[release] = sorted(fields - known)
        known |= fields
    return added


def with_limits(
    known: dict[str, Any], rows: dict[str, dict[str, Any]], asked: dict[str, Any]
) -> dict[str, Any]:
    """Return the limits of each ONNX Runtime of the releases.

    A version without a wheel has those of another wheel of its minor version, which is named.
    """
    limits = {}
    for version in dict.fromkeys(row["onnxruntime"] for row in rows.values()):
        if version is None:
            continue
        minor = version.rpartition(".")[0]
        similar = [other for other in asked if other.rpartition(".")[0] == minor]
        if version in asked or similar:
            wheel = version if version in asked else similar[-1]
            limits[version] = {**asked[wheel], "mark": "run", "asked": wheel}
        elif version in known:
            limits[version] = known[version]
    return limits


def render(facts: dict[str, Any]) -> str:
    """Return the file: a line for each entry of the outer two levels."""
    parts = []
    for key, value in facts.items():
        if isinstance(value, dict):
            lines = (f"    {json.dumps(name)}: {json.dumps(each)}" for name, each in value.items())
            parts.append(f"  {json.dumps(key)}: {{\n" + ",\n".join(lines) + "\n  }")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Write the file."""
    arguments = _parser().parse_args()
    facts = json.loads(RELEASES.read_text(encoding="utf-8"))
    rows = read_releases(Sources(arguments.server), Sources(arguments.onnxruntime_backend))
    unknown = dict.fromkeys(("onnxruntime", "python", "supports_bf16", "backends"))
    published = {
        release: {**unknown, "mark": "not known", "commits": [None, None]}
        for release in arguments.published
    }
    common = Sources(arguments.common)

    facts["as_of"] = datetime.now(UTC).date().isoformat()
    facts["releases"] = dict(sorted({**published, **facts["releases"], **rows}.items()))
    asked = json.loads(arguments.limits.read_text())
    facts["onnxruntimes"] = with_limits(facts["onnxruntimes"], facts["releases"], asked)
    facts["new_fields"] = read_new_fields(common)
    facts["fields_until"] = max(facts["fields_until"], *common.branches)
    RELEASES.write_text(render(facts), encoding="utf-8")
    print(f"{len(rows)} releases, {len(facts['onnxruntimes'])} ONNX Runtimes")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Write what each release of Triton has.")
    for name in ("server", "common", "onnxruntime-backend", "limits"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--published", action="append", default=[], metavar="YY.MM")
    return parser


if __name__ == "__main__":
    main()
