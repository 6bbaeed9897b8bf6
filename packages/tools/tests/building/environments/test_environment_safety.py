"""Requirements, lock files and projects of others, which must run no code,
and the uv that reads them.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from handmade_wheels import write_wheel
from uv import find_uv_bin

from constructs_triton_core.errors import InvalidValueError, MissingDependencyError
from constructs_triton_tools.building.environments import building, uv
from constructs_triton_tools.building.environments.building import build, build_locked
from triton_model_check.artifacts.environments.lock import EnvironmentLock, read_lock
from triton_model_check.artifacts.environments.requirements import Requirements, read_requirements
from triton_model_check.artifacts.environments.target import image_target

PROJECT = Path(__file__).resolve().parents[5]
OFFLINE = "--no-index\n--find-links ./wheels\n"
HASH = f"--hash=sha256:{'0' * 64}"
FIRST_LINE = (
    "# constructs-triton environment lock 1; "
    "`constructs-triton env build` writes it, keep it in git\n"
)


@pytest.fixture
def project(tmp_path: Path, own_cache: Path) -> Path:
    """A folder with requirements and a wheel."""
    folder = tmp_path / "project"
    write_wheel(folder / "wheels", "helper")
    (folder / "requirements.txt").write_text(f"{OFFLINE}helper\n")
    return folder


def build_in(folder: Path, name: str = "requirements.txt") -> Path:
    return build(read_requirements(folder / name), image_target()).archive


# --- lines ----------------------------------------------------------------------------------------


ONLY_WHEELS = r"requirements\.txt: (editable|only a wheel).*`uv build --wheel`"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        *(
            (each, ONLY_WHEELS)
            for each in ("-e .", "-e./x", "--editable=x", "-e\t.", "./package", "x.zip")
        ),
        *(
            (each, ONLY_WHEELS)
            for each in ("package @ ./package", "package@file:///package", "a/b.tar.gz")
        ),
        *(
            (each, ONLY_WHEELS)
            for each in ("git+https://host/x", "x @ https://host/x.tar.gz#egg=x")
        ),
        ("/abs/package[extra]", ONLY_WHEELS),
        # No path and no argument of a command can contain it.
        ("-r a\0b", r"cannot be read \(it contains a NUL\)"),
    ],
)
def test_line_that_would_run_code(line: str, message: str, tmp_path: Path) -> None:
    """Only a wheel can be named by a path or URL."""
    path = tmp_path / "requirements.txt"
    path.write_text(f"helper\n{line}\n")
    with pytest.raises(InvalidValueError, match=message):
        read_requirements(path)


@pytest.mark.parametrize(
    "line",
    [
        "helper",
        "a[b,c]>=1,<2 ; python_version > '3'",
        "./x.whl",
        "x @ https://h/x.whl#sha256=0 ; os_name == 'a/b'",
        "x.whl[extra]",
        "helper==1 ; platform_version == 'a/b'",
        f"helper==1 {HASH}",
        "--find-links ./wheels",
    ],
)
def test_line_that_is_accepted(line: str, tmp_path: Path) -> None:
    """Versions, markers, hashes, options about indexes, and wheels by path or URL."""
    path = tmp_path / "requirements.txt"
    path.write_text(f"helper\n{line}\n")
    assert read_requirements(path).lines == ("helper", line)


def write_editable(project: Path, canary: Path, source: str) -> None:
    """Write a uv.lock with a local package, whose build program writes the canary."""
    package = project / "evil"
    package.mkdir()
    (package / "backend.py").write_text(f"open({str(canary)!r}, 'w')\n")
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "evil"\ndynamic = ["version", "dependencies"]\n'
    )
    (project / "pyproject.toml").write_text(
        '[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = '
        f'["evil"]\n[tool.uv.sources]\nevil = {source}\n'
    )
    key = "editable" if "editable" in source else "directory"
    (project / "uv.lock").write_text(
        'version = 1\nrevision = 3\nrequires-python = ">=3.11"\n\n[[package]]\nname = "app"\n'
        'version = "1"\nsource = { virtual = "." }\ndependencies = [\n    { name = "evil" },\n]\n\n'
        f'[package.metadata]\nrequires-dist = [{{ name = "evil", {key} = "evil" }}]\n\n'
        f'[[package]]\nname = "evil"\nsource = {{ {key} = "evil" }}\n'
    )


@pytest.mark.parametrize("source", ['{ path = "evil", editable = true }', '{ path = "evil" }'])
def test_local_package_of_uv_lock(source: str, project: Path, tmp_path: Path) -> None:
    """Its build program does not run, and following the message leads to an environment."""
    write_editable(project, tmp_path / "canary", source)
    with pytest.raises(
        InvalidValueError,
        match=r"uv\.lock: can contain only packages with a version, got '.*evil.*find-links of",
    ):
        build_in(project, "uv.lock")
    assert not (tmp_path / "canary").exists()
    write_wheel(project / "wheels", "evil")
    text = (project / "pyproject.toml").read_text().partition("[tool.uv.sources]")[0]
    (project / "pyproject.toml").write_text(
        f'{text}[tool.uv]\nno-index = true\nfind-links = ["wheels"]\n'
    )
    subprocess.run(
        [find_uv_bin(), "lock", "--quiet", "--python", sys.executable], cwd=project, check=True
    )
    assert build_in(project, "uv.lock").is_file()
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    "line",
    ["-e ./evil", "helper\n-e ./evil", "-r other.txt", "./evil", "-c x", "helper\u2028-e ./evil"],
)
@pytest.mark.parametrize("field", ["lines", "constraints"])
def test_lines_of_a_foreign_lock_file(
    field: str, line: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The requirements of a lock file in an archive are checked before uv is called."""
    monkeypatch.setattr(building, "resolve", lambda *_, **__: pytest.fail("uv was called"))
    given = {"lines": ("helper",), "constraints": (), field: (line,)}
    with pytest.raises(InvalidValueError, match=r"^env\.tar: "):
        build(Requirements(Path("env.tar"), digest="", base=project, **given), image_target())


@pytest.mark.parametrize(
    "pins",
    [
        f"helper==1 {HASH}\n-e ./evil",
        "-r other.txt",
        "--no-binary :all:",
        f"./evil {HASH}",
        "helper==1 --pre",
    ],
)
def test_pins_of_a_foreign_lock_file(
    pins: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv downloads what a lock file pins, so it may contain only versions
    and wheels with hashes.
    """
    monkeypatch.setattr(building, "install", lambda *_: pytest.fail("uv was called"))
    foreign = EnvironmentLock("3.12", "x", ("helper",), (), (), (), "", f"{pins}\n")
    with pytest.raises(InvalidValueError, match=r"requirements\.txt: "):
        build_locked(foreign, image_target(), project, "requirements.txt")


@pytest.mark.parametrize(
    "change",
    [
        {"options": ["--find-links"]},
        {"options": ["--no-index", "./evil"]},
        {"options": ["--index", "--find-links"]},
        {"options": ["--find-links", "a\0b"]},
        {"requirements": ["\ud800"]},
        "[" * 100_000,
        "1" * 5_000,
    ],
    ids=range(7),
)
def test_header_that_is_no_command(change: dict[str, list[str]] | str) -> None:
    """Options without values, further arguments, what none can contain;
    depth and digits are bounded.
    """
    header = {
        **dict.fromkeys(("python", "platform", "digest"), "x"),
        **{key: [] for key in ("requirements", "constraints", "options", "extras")},
    }
    good = {**header, "options": ["--no-index", "--find-links", "wheels", "--offline"]}
    assert (
        read_lock(f"{FIRST_LINE}# {json.dumps(good)}\n".encode(), "lock").options[1]
        == "--find-links"
    )
    bad = change if isinstance(change, str) else json.dumps({**header, **change})
    with pytest.raises(InvalidValueError, match="is not a lock file"):
        read_lock(f"{FIRST_LINE}# {bad}\n".encode(), "lock")


NAME = "must begin with the name of a package, got"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"x = {'1' * 5_001}", "is not valid TOML"),
        ("x = " + "[" * 100_000, "is not valid TOML"),
        ("[project]\ndynamic = 5\n", "dynamic must be a list of strings"),
        ('tool = 5\n[project]\ndependencies = ["-e ."]\n', f"{NAME} '-e .'"),
        ('[project]\ndependencies = ["-r x"]\n', f"{NAME} '-r x'"),
        ('[project]\noptional-dependencies = 5\ndependencies = ["a"]\n', 'has no extra "gpu"'),
        ("a\0b", "cannot be read (it contains a NUL)"),
    ],
    ids=range(7),
)
def test_project_of_another_form(text: str, message: str, tmp_path: Path) -> None:
    """A pyproject.toml of any content is one error, as is a uv.lock."""
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(InvalidValueError, match=re.escape(message)):
        read_requirements(tmp_path / "pyproject.toml", ["gpu"] if "optional" in text else [])
    (tmp_path / "uv.lock").write_text("a\0b")
    with pytest.raises(InvalidValueError, match="it contains a NUL"):
        read_requirements(tmp_path / "uv.lock")


# --- uv -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "got"),
    [("echo 'uv 0.12.9 (x86_64)'", r"uv 0\.12\.9 \(x86_64\)"), ("exit 3", "exit code 3")],
)
def test_uv_that_is_too_old(
    program: str, got: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of the uv that would run is compared,
    and the message has the command that replaces it.
    """
    (tmp_path / "uv").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "uv").chmod(0o755)
    monkeypatch.setattr("uv.find_uv_bin", lambda: str(tmp_path / "uv"))
    expected = rf"uv: must be uv 0\.13 or newer.*got {got}; run `pip install --upgrade"
    with pytest.raises(MissingDependencyError, match=expected):
        build_in(project)
    assert not list(project.glob("*.lock"))


def test_extra_requires_the_same_uv() -> None:
    """The extra ``env`` has the bound that the program checks."""
    text = (PROJECT / "pyproject.toml").read_text()
    assert re.findall(r'^env = \["uv>=(.+)"\]$', text, re.MULTILINE) == [
        ".".join(map(str, uv.OLDEST_UV))
    ]
    assert os.access(find_uv_bin(), os.X_OK)


# --- settings of uv -------------------------------------------------------------------------------


BUILD = """
open({marker!r}, "w")
def build_wheel(*_, **__):
    raise SystemExit(1)
"""


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("uv.toml", 'no-binary-package = ["helper"]\n', "uv.toml:1: no-binary-package"),
        ("uv.toml", '[pip]\nno-binary = ["helper"]\n', "uv.toml:2: pip.no-binary"),
        ("uv.toml", '[pip]\nonly-binary = [":none:"]\n', "uv.toml:2: pip.only-binary"),
        ("uv.toml", "no-binary = true\n", "uv.toml:1: no-binary"),
        (
            "pyproject.toml",
            '[tool.uv.pip]\nno-binary = ["helper"]\n',
            "pyproject.toml:2: tool.uv.pip.no-binary",
        ),
        ("../uv.toml", '[pip]\nno-binary = ["helper"]\n', "uv.toml:2: pip.no-binary"),
    ],
)
def test_setting_that_would_build_packages(project: Path, name: str, text: str, place: str) -> None:
    """uv would prefer it to the option of the command, and run the code of the package."""
    marker = project / "RAN"
    source = {
        "helper-1.0/PKG-INFO": "Metadata-Version: 2.1\nName: helper\nVersion: 1.0\n",
        "helper-1.0/backend.py": BUILD.format(marker=str(marker)),
        "helper-1.0/pyproject.toml": (
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        ),
    }
    with tarfile.open(project / "wheels" / "helper-1.0.tar.gz", "w:gz") as archive:
        for path, content in source.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))
    (project / name).write_text(text)
    with pytest.raises(InvalidValueError, match=f"{place}: lets uv build packages"):
        build_in(project)
    assert not marker.exists()


def test_settings_of_indexes_are_used(project: Path) -> None:
    """What only says where packages are, or what is not built, is left to uv."""
    (project / "requirements.txt").write_text("helper\n")
    (project / "pyproject.toml").write_text(
        "[tool.uv]\nno-binary = false\nno-build-isolation-package = ['x']\n"
        "[tool.uv.pip]\nno-index = true\nfind-links = ['wheels']\nonly-binary = ['helper']\n"
    )
    assert build_in(project).is_file()
