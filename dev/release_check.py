"""``make release-check``: a dry run of a release from a clean clone of the commit. Nothing is
published.

Builds the wheels and source distributions of all packages, and the documentation. Checks versions,
contents and metadata. Then installs each wheel alone, on each Python version that the package
allows and this machine has, and runs its smallest use. Installs them over the wheels from before
there were several packages.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path

from installed_wheels import PYTHON_VERSIONS, CommandError, build, find_interpreter, install
from members import PROJECT, members_of, own_requirements, written_versions
from smallest_uses import MOST_MEGABYTES, USES
from upgrade_check import upgrade_problems

# The version that was tried. `uv tool run` installs it in an environment of its own.
TWINE = "twine==6.2.0"
FOREIGN = re.compile(
    r"(^|/)(tests|test_[^/]*\.py|conftest\.py|__pycache__|node_modules|\.mypy_cache|cdk\.out)(/|$)"
)
# These tests belong to the projects that `project new` writes.
TEMPLATES = "constructs_triton_tools/cli/project/"
REQUIREMENTS = f"packages/tools/src/{TEMPLATES}template/requirements.txt"
#: What installs the checker elsewhere: the mirror for pre-commit, the GitHub Action, and the page
#: about both.
INSTALLERS = (
    "packages/check/mirror/pyproject.toml",
    "packages/check/action/action.yml",
    "docs/checker/automation.md",
)
#: The digests of the deploy-time functions of each release.
RELEASED_FUNCTIONS = "constructs_triton/testing/released_functions.json"
_CHECKER = re.compile(r"\btriton-model-check==([\w.+!-]+)")


def main() -> int:
    """Run every step, print its problems, and return 1 if there are any."""
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        clone, dist = Path(folder, "clone"), Path(folder, "dist")
        run("git", "clone", "--quiet", PROJECT, clone)
        problems = list(version_problems(clone))
        built = build(dist, clone)
        problems += [problem for each in built for problem in distribution_problems(each)]
        problems += missing_distributions(clone, [each.name for each in built])
        print(*(f"built {each.name} ({each.stat().st_size:,} bytes)" for each in built), sep="\n")
        run(sys.executable, "-m", "uv", "tool", "run", TWINE, "check", "--strict", *built)
        problems += installation_problems(clone, dist, Path(folder))
        problems += upgrade_problems(clone, Path(folder))
        sources = (
            clone / member.folder / "src" for member in members_of(clone) if member.folder != "."
        )
        others = (clone / "packages" / name / "src" for name in ("functions", "tools"))
        path = os.pathsep.join(map(str, (clone / "dev", clone, *sources, *others)))
        run(sys.executable, "-m", "documentation", cwd=clone, PYTHONPATH=path)
    lines = [f"problem: {each}" for each in problems] + [
        f"owner: {each}" for each in open_points(PROJECT)
    ]
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


def version_problems(project: Path) -> Iterator[str]:
    """Yield each place whose version is not that of the root's pyproject.toml."""
    members = members_of(project)
    version = members[-1].version
    names = {member.name for member in members}
    for member in members:
        if member.version != version:
            yield f"{member.file}: version is {member.version}, not {version}"
        for requirement, required in own_requirements(member, names):
            if required != f"=={version}":
                yield f"{member.file}: must require version {version}, got {requirement}"
    for file, written in written_versions(project).items():
        if written != version:
            yield f"{file}: __version__ is {written}, not {version}"
    template = (project / REQUIREMENTS).read_text()
    if f"constructs-triton[local,rehearse,testing]=={version}" not in template.splitlines():
        yield f"requirements.txt of the project template: must require constructs-triton {version}"
    for file in INSTALLERS:
        if set(_CHECKER.findall((project / file).read_text())) != {version}:
            yield f"{file}: must install triton-model-check=={version}"
    released, _, development = version.partition(".dev")
    wanted = "(unreleased)" if development else "with the date of the release"
    changelog = (project / "CHANGELOG.md").read_text()
    recorded = json.loads((project / RELEASED_FUNCTIONS).read_text())
    for earlier in re.findall(r"^## (\S+) (?!\(unreleased\))", changelog, re.MULTILINE):
        if earlier not in (version, *recorded):
            fix = f"run python dev/record_release.py {earlier}"
            yield f"{RELEASED_FUNCTIONS}: must have release {earlier}; {fix}"
    heading = re.search(r"^## (\S+)(.*)", changelog, re.MULTILINE)
    if (
        heading is None
        or heading[1] != released
        or bool(development) != ("(unreleased)" in heading[2])
    ):
        found = repr(heading[0]) if heading else "none"
        yield f"CHANGELOG.md: the first version must be {released} {wanted}, got {found}"
    yield from comparison_problems(project, version)


def comparison_problems(project: Path, version: str) -> Iterator[str]:
    """Yield a problem if a release was not compared with the one before it,
    unless it is the first.
    """
    if ".dev" in version:
        return
    describe = [
        "git",
        "-C",
        str(project),
        "describe",
        "--tags",
        "--abbrev=0",
        "--match=v*",
        f"--exclude=v{version}",
    ]
    last = subprocess.run(describe, check=False, capture_output=True, text=True).stdout.strip()
    if last:
        # The name that the comparison gives the commit of the tag.
        command = ["git", "-C", str(project), "rev-parse", "--short=8", f"{last}^{{commit}}"]
        name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        if (
            f"## compared with {name}\n"
            not in (project / "dev" / "project" / "benchmarks.md").read_text()
        ):
            yield (
                f"dev/project/benchmarks.md: must compare with {last}; "
                f"run `make bench AGAINST={last}`"
            )


def missing_distributions(project: Path, built: list[str]) -> Iterator[str]:
    """Yield each wheel and source distribution that was not built with the
    version of its package.
    """
    for member in members_of(project):
        stem = f"{member.module}-{member.version}"
        for name in (f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"):
            if name not in built:
                yield f"{name}: was not built"


def distribution_problems(path: Path) -> Iterator[str]:
    """Yield what is missing in a wheel or source distribution, and what does not belong there."""
    names = names_in(path)
    package = path.name.partition("-")[0]
    required = [
        "LICENSE",
        "METADATA" if path.suffix == ".whl" else "PKG-INFO",
        f"{package}/py.typed",
    ]
    if path.suffix == ".whl":
        folders = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
        required += sorted(f"{folder}/py.typed" for folder in folders - {package})
        required += license_files(path)
    for each in required:
        if not any(name == each or name.endswith(f"/{each}") for name in names):
            yield f"{path.name}: {each} is missing"
    for name in names:
        if FOREIGN.search(name) and TEMPLATES not in name:
            yield f"{path.name}: {name} does not belong in a release"


def license_files(wheel: Path) -> list[str]:
    """Return the license files that a wheel's metadata names."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = message_from_string(archive.read(name).decode())
    return [f"licenses/{each}" for each in metadata.get_all("License-File", [])]


def names_in(path: Path) -> list[str]:
    """Return the names of the files in a wheel or source distribution."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    with tarfile.open(path) as archive:
        return archive.getnames()


def installation_problems(project: Path, dist: Path, folder: Path) -> Iterator[str]:
    """Install each wheel alone, run its smallest use, and yield what fails."""
    found = {version: find_interpreter(version) for version in PYTHON_VERSIONS}
    missing = [version for version, interpreter in found.items() if interpreter is None]
    print(*(f"Python {version} is not installed; left out" for version in missing), sep="\n")
    for member in members_of(project):
        for version, interpreter in found.items():
            if interpreter is None or not member.allows(version):
                continue
            where = f"{member.name} on Python {version}"
            started = time.monotonic()
            try:
                place, requirement = (
                    folder / f"{member.name}-{version}",
                    f"{member.name}=={member.version}",
                )
                environment = install(interpreter, place, requirement, dist=dist)
                megabytes, installed = environment.megabytes, time.monotonic()
                USES[member.name](environment)
            except CommandError as error:
                yield f"{where}: {error}"
                continue
            seconds = (
                f"{installed - started:.1f} s to install, "
                f"{time.monotonic() - installed:.1f} s to use"
            )
            print(f"installed {where}: {megabytes:.1f} MB, {seconds}", flush=True)
            if megabytes > MOST_MEGABYTES.get(member.name, megabytes):
                yield (
                    f"{where}: installs {megabytes:.1f} MB, more than {MOST_MEGABYTES[member.name]}"
                )


def open_points(project: Path) -> Iterator[str]:
    """Yield what only the owner can fill in. dev/project/maintaining.md has
    the list with the reasons.
    """
    for member in members_of(project):
        if "urls" not in member.settings:
            yield f"{member.file}: add [project.urls]"
    if "(unreleased)" in (project / "CHANGELOG.md").read_text():
        yield "CHANGELOG.md: replace (unreleased) by the date of the release"
    if not re.search(r"^site_url:", (project / "mkdocs.yml").read_text(), re.MULTILINE):
        yield "mkdocs.yml: add site_url"


if __name__ == "__main__":
    sys.exit(main())
