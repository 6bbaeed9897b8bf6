"""What ``make release-check`` checks of versions and distributions,
and the program that sets the version.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import set_version
from members import members_of, own_requirements, written_versions
from record_release import Record, unexplained
from release_check import (
    INSTALLERS,
    RELEASED_FUNCTIONS,
    REQUIREMENTS,
    comparison_problems,
    distribution_problems,
    missing_distributions,
    open_points,
    version_problems,
)
from smallest_uses import USES

PROJECT = Path(__file__).parents[2]
MEMBERS = members_of()
VERSION = MEMBERS[-1].version
WRITTEN = (*(member.file for member in MEMBERS), *written_versions(), REQUIREMENTS, *INSTALLERS)
FILES = (*WRITTEN, "CHANGELOG.md")
CONTENT = (
    "p/py.typed",
    "p/__init__.py",
    "p-1.dist-info/METADATA",
    "p-1.dist-info/licenses/LICENSE",
)
METADATA = (
    "Metadata-Version: 2.4\nName: p\nVersion: 1\nLicense-File: LICENSE\nLicense-File: b/C.txt\n"
)


def copy_to(folder: Path) -> Path:
    for name in (*FILES, RELEASED_FUNCTIONS):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, folder / name)
    return folder


def test_versions_are_equal() -> None:
    """All packages, their requirements of each other,
    the project template and the changelog agree.
    """
    assert list(version_problems(PROJECT)) == []


@pytest.mark.parametrize("name", FILES)
def test_other_version_is_a_problem(name: str, tmp_path: Path) -> None:
    """A version that was changed in one file only is found."""
    project = copy_to(tmp_path)
    path = project / name
    path.write_text(path.read_text().replace(VERSION.partition(".dev")[0], "99.1"))
    assert list(version_problems(project))


@pytest.mark.parametrize("written", ["", ">=0", "~=0.1"])
def test_requirement_of_another_package_without_its_version_is_a_problem(
    written: str, tmp_path: Path
) -> None:
    """uv does not compare the versions of a workspace's packages, so this does."""
    project = copy_to(tmp_path)
    path = project / "packages/client/pyproject.toml"
    path.write_text(path.read_text().replace(f"core=={VERSION}", f"core{written}"))
    (problem,) = version_problems(project)
    assert problem.startswith(
        f"packages/client/pyproject.toml: must require version {VERSION}, got"
    )


@pytest.mark.parametrize("version", ["0.2.0", "1.0.0rc1", "0.2.0.dev0"])
def test_one_command_sets_every_version(version: str, tmp_path: Path) -> None:
    """All versions are equal then; a person writes the changelog.

    The rest of each file is unchanged.
    """
    project = copy_to(tmp_path)
    assert set_version.main([version], project) == 0
    members = members_of(project)
    assert {member.version for member in members} == {version}
    names = {member.name for member in members}
    pins = [pin for member in members for _, pin in own_requirements(member, names)]
    assert len(pins) >= len(names)
    assert {*pins} == {f"=={version}"}
    heading = version.partition(".dev")[0]
    assert [each.partition(":")[0] for each in version_problems(project)] == ["CHANGELOG.md"]
    changelog = project / "CHANGELOG.md"
    mark = "(unreleased)" if heading != version else "(2027-01-31)"
    changelog.write_text(
        re.sub(r"^## .*", f"## {heading} {mark}", changelog.read_text(), count=1, flags=re.M)
    )
    assert list(version_problems(project)) == []
    set_version.set_version(project, VERSION)
    for name in WRITTEN:
        assert (project / name).read_text() == (PROJECT / name).read_text()


def test_set_version_prints_what_changed_and_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list has each file once."""
    set_version.main(["99.0.0"], copy_to(tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == [f"changed {name}" for name in WRITTEN]
    assert lines[-1].startswith(
        "left: CHANGELOG.md: the first version must be 99.0.0 with the date"
    )


def test_changelog_of_a_release_has_its_date(tmp_path: Path) -> None:
    """The heading of a development version says that it is unreleased;
    that of its release has the date.
    """
    project = copy_to(tmp_path)
    released = VERSION.partition(".dev")[0]
    assert set_version.main([f"{released}.dev1"], project) == 0
    assert list(version_problems(project)) == []
    assert set_version.main([released], project) == 0
    (problem,) = version_problems(project)
    assert problem.startswith(f"CHANGELOG.md: the first version must be {released} with the date")


@pytest.mark.parametrize("version", ["v0.2.0", "0.2.0-dev0", "next", ""])
def test_set_version_refuses_other_forms(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Packages would write these in another way, so they would not be equal."""
    with pytest.raises(SystemExit):
        set_version.main([version])
    assert "version" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("added", "left_out", "problems"),
    [
        ("", "", []),
        ("", "p/py.typed", ["p/py.typed is missing"]),
        (
            "",
            "p-1.dist-info/licenses/LICENSE",
            ["LICENSE is missing", "licenses/LICENSE is missing"],
        ),
        ("", "p-1.dist-info/licenses/b/C.txt", ["licenses/b/C.txt is missing"]),
        ("p/test_a.py", "", ["p/test_a.py does not belong in a release"]),
        ("p/tests/data.txt", "", ["p/tests/data.txt does not belong in a release"]),
        ("p/__pycache__/a.pyc", "", ["p/__pycache__/a.pyc does not belong in a release"]),
        ("q/__init__.py", "", ["q/py.typed is missing"]),
        ("p/constructs_triton_tools/cli/project/template/tests/test_stack.py", "", []),
    ],
)
def test_content_of_a_wheel(added: str, left_out: str, problems: list[str], tmp_path: Path) -> None:
    """A wheel has its licenses and type markers, no caches,
    and no tests but those of new projects.
    """
    wheel = tmp_path / "p-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (*CONTENT, "p-1.dist-info/licenses/b/C.txt", *filter(None, [added])):
            if name != left_out:
                archive.writestr(name, METADATA if name.endswith("METADATA") else "")
    assert list(distribution_problems(wheel)) == [f"{wheel.name}: {each}" for each in problems]


def test_distribution_that_was_not_built_is_a_problem() -> None:
    """Each package has a wheel and a source distribution of its version."""
    names = [
        f"{member.module}-{VERSION}{end}"
        for member in MEMBERS
        for end in ("-py3-none-any.whl", ".tar.gz")
    ]
    assert list(missing_distributions(PROJECT, names)) == []
    assert list(missing_distributions(PROJECT, names[1:])) == [f"{names[0]}: was not built"]


def test_every_package_has_a_smallest_use() -> None:
    """The release check installs each package alone and runs it."""
    assert list(USES) == [member.name for member in MEMBERS]


def test_open_points_are_in_the_list_of_the_owner() -> None:
    """Each point that is still open names a file that the section Release has in its table."""
    page = (PROJECT / "dev" / "project" / "maintaining.md").read_text()
    section = page.partition("\n## Release\n")[2].partition("\n## ")[0]
    for point in open_points(PROJECT):
        file = point.partition(":")[0].rpartition("/")[2]
        assert f"`{file}`" in section


def test_earlier_release_must_be_recorded(tmp_path: Path) -> None:
    """Without its functions, a release could not be rehearsed as OLD."""
    project = copy_to(tmp_path)
    path = project / "CHANGELOG.md"
    path.write_text(path.read_text() + "\n## 0.0.9 (2026-10-01)\n")
    assert any("must have release 0.0.9" in each for each in version_problems(project))


def test_release_must_be_compared_with_the_one_before(tmp_path: Path) -> None:
    """Its figures are in dev/project/benchmarks.md;
    a development version and the first release need none.
    """
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b")
    page = tmp_path / "dev" / "project" / "benchmarks.md"
    page.parent.mkdir(parents=True)
    page.write_text("## check\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        subprocess.run([*git, *words], check=True)
    assert list(comparison_problems(tmp_path, "0.1.0")) == []
    subprocess.run([*git, "tag", "v0.1.0"], check=True)
    assert list(comparison_problems(tmp_path, "0.2.0.dev0")) == []
    (problem,) = comparison_problems(tmp_path, "0.2.0")
    assert problem.endswith("run `make bench AGAINST=v0.1.0`")
    name = subprocess.run(
        [*git, "rev-parse", "--short=8", "HEAD"], check=True, capture_output=True, text=True
    )
    page.write_text(f"## compared with {name.stdout.strip()}\n")
    assert list(comparison_problems(tmp_path, "0.2.0")) == []


def app_record(*resources: str, model: str = "1", upload: str = "a", sources: str = "s") -> Record:
    """The record of an app with these log groups and a model."""
    types = {"AWS::Logs::LogGroup": list(resources), "AWS::SageMaker::Model": ["S/Model"]}
    properties = {"S/Model": model}
    return {"sources": sources, "resources": types, "properties": properties, "uploads": [upload]}


@pytest.mark.parametrize(
    ("after", "numbers"),
    [
        (app_record("S/A"), ""),
        (app_record("S/A", "S/B"), "1 logical id created"),
        (app_record("S/B"), "1 logical id created, 1 logical id deleted"),
        (app_record("S/A", model="2", upload="b"), "1 model changed, 1 file uploaded again"),
        (None, "removed"),
    ],
)
def test_change_since_a_release_needs_a_line_with_its_numbers_and_a_reason(
    after: Record | None, numbers: str
) -> None:
    """Neither other numbers, nor another app, nor a line without a reason explains a change."""
    record = {"release": "0.1.0", "edited": {}, "apps": {"kms": app_record("S/A")}}
    line = f"- `kms` since 0.1.0: {numbers}."
    lines = (
        "",
        line,
        f"{line} Why.",
        f"{line.replace('kms', 'vpc')} Why.",
        "- `kms` since 0.1.0: 3 files. Why.",
    )
    explained = [each for each in lines if not unexplained(record, "kms", after, each)]
    assert explained == ([f"{line} Why."] if numbers else [lines[0], lines[1], lines[3]])


def test_edit_of_an_app_explains_its_own_changes_only() -> None:
    """An entry of the record counts only if the app's Python files changed and
    the numbers are right.
    """
    entry = {"differences": "1 model changed", "reason": "It has another model."}
    record = {"release": "0.1.0", "edited": {"kms": entry}, "apps": {"kms": app_record("S/A")}}
    edited = app_record("S/A", model="2", sources="t")
    assert unexplained(record, "kms", edited, "") == ""
    assert unexplained(record, "kms", app_record("S/A", model="2"), "") != ""
    assert unexplained(record, "kms", app_record("S/A", "S/B", model="2", sources="t"), "") != ""
