"""``make release-check``: a dry run of a release from a clean clone of the commit. Nothing is published.

Builds both wheels, both source distributions and the documentation. Checks versions, contents and metadata.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
# The version that was tried. `uv tool run` installs it in an environment of its own.
TWINE = "twine==6.2.0"
PACKAGES = ("constructs_triton", "constructs_triton_client")
FOREIGN = re.compile(r"(^|/)(test_[^/]*\.py|__pycache__|node_modules|\.mypy_cache|cdk\.out)(/|$)")
# These tests belong to the projects that `project new` writes.
TEMPLATES = "packages/tools/src/constructs_triton_tools/cli/project/"


def main() -> int:
    """Run every step, print its problems, and return 1 if there are any."""
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        clone, dist = Path(folder, "clone"), Path(folder, "dist")
        run("git", "clone", "--quiet", PROJECT, clone)
        problems = list(version_problems(clone))
        for source in (clone / "client", clone):
            run(sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", dist, source)
        built = sorted(each for each in dist.iterdir() if each.suffix in (".whl", ".gz"))
        problems += [problem for each in built for problem in distribution_problems(each)]
        print(*(f"built {each.name} ({each.stat().st_size:,} bytes)" for each in built), sep="\n")
        run(sys.executable, "-m", "uv", "tool", "run", TWINE, "check", "--strict", *built)
        path = os.pathsep.join(map(str, (clone / "tools", clone, clone / "client")))
        run(sys.executable, "-m", "documentation", cwd=clone, PYTHONPATH=path)
    lines = [f"problem: {each}" for each in problems] + [f"owner: {each}" for each in open_points(PROJECT)]
    print(*lines, sep="\n")
    print(f"{len(problems)} problems")
    return 1 if problems else 0


def run(*command: object, cwd: Path = PROJECT, **variables: str) -> None:
    """Run a step, and end with its exit code if it fails."""
    print("$", *(str(each) for each in command[:6]), flush=True)
    words = [str(each) for each in command]
    done = subprocess.run(words, cwd=cwd, env=os.environ | variables, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def settings_of(folder: Path) -> dict[str, Any]:
    """Return the table ``project`` of a pyproject.toml."""
    document: dict[str, dict[str, Any]] = tomllib.loads((folder / "pyproject.toml").read_text())
    return document["project"]


def version_problems(project: Path) -> Iterator[str]:
    """Yield each place whose version is not that of pyproject.toml."""
    package, client = settings_of(project), settings_of(project / "client")
    version = package["version"]
    required = [each for each in package["dependencies"] if each.startswith("constructs-triton-client")]
    template = (
        project / "packages/tools/src/constructs_triton_tools/cli/project/template/requirements.txt"
    ).read_text()
    headings = re.findall(r"^## (\S+)", (project / "CHANGELOG.md").read_text(), re.MULTILINE)
    if client["version"] != version:
        yield f"client/pyproject.toml: version is {client['version']}, not {version}"
    if required != [f"constructs-triton-client=={version}"]:
        yield f"pyproject.toml: must require constructs-triton-client=={version}, got {required}"
    if f"constructs-triton[local,rehearse,testing]=={version}" not in template.splitlines():
        yield f"requirements.txt of the project template: must require constructs-triton {version}"
    if headings[:1] != [version]:
        yield f"CHANGELOG.md: the first version must be {version}, got {headings[:1]}"


def distribution_problems(path: Path) -> Iterator[str]:
    """Yield what is missing in a wheel or source distribution, and what does not belong there."""
    names = names_in(path)
    package = path.name.partition("-")[0]
    required = [f"{package}/py.typed", "LICENSE", "METADATA" if path.suffix == ".whl" else "PKG-INFO"]
    for each in required:
        if not any(name == each or name.endswith(f"/{each}") for name in names):
            yield f"{path.name}: {each} is missing"
    for name in names:
        if FOREIGN.search(name) and TEMPLATES not in name:
            yield f"{path.name}: {name} does not belong in a release"


def names_in(path: Path) -> list[str]:
    """Return the names of the files in a wheel or source distribution."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    with tarfile.open(path) as archive:
        return archive.getnames()


def open_points(project: Path) -> Iterator[str]:
    """Yield what only the owner can fill in. CONTRIBUTING.md has the list with the reasons."""
    for folder in (project, project / "client"):
        if "urls" not in settings_of(folder):
            yield f"{(folder / 'pyproject.toml').relative_to(project)}: add [project.urls]"
    if "(unreleased)" in (project / "CHANGELOG.md").read_text():
        yield "CHANGELOG.md: replace (unreleased) by the date of the release"
    if not re.search(r"^site_url:", (project / "mkdocs.yml").read_text(), re.MULTILINE):
        yield "mkdocs.yml: add site_url"


if __name__ == "__main__":
    sys.exit(main())
