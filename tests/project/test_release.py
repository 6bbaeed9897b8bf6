"""What ``make release-check`` checks of versions and distributions."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest
from release_check import distribution_problems, open_points, version_problems

PROJECT = Path(__file__).parents[2]
TEMPLATE = "packages/tools/src/constructs_triton_tools/cli/project/template/requirements.txt"
FILES = ("pyproject.toml", "client/pyproject.toml", "CHANGELOG.md", TEMPLATE)
CONTENT = ("p/py.typed", "p/__init__.py", "p-1.dist-info/METADATA", "p-1.dist-info/licenses/LICENSE")


def copy_to(folder: Path) -> Path:
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, folder / name)
    return folder


def test_versions_are_equal() -> None:
    """Both packages, the requirement of the client, the project template and the changelog agree."""
    assert list(version_problems(PROJECT)) == []


@pytest.mark.parametrize("name", FILES)
def test_other_version_is_a_problem(name: str, tmp_path: Path) -> None:
    """A version that was changed in one file only is found."""
    project = copy_to(tmp_path)
    path = project / name
    path.write_text(path.read_text().replace("0.1.0", "0.1.1"))
    assert list(version_problems(project))


@pytest.mark.parametrize(
    ("added", "left_out", "problems"),
    [
        ("", "", []),
        ("", "p/py.typed", ["p/py.typed is missing"]),
        ("", "p-1.dist-info/licenses/LICENSE", ["LICENSE is missing"]),
        ("p/test_a.py", "", ["p/test_a.py does not belong in a release"]),
        ("p/__pycache__/a.pyc", "", ["p/__pycache__/a.pyc does not belong in a release"]),
        ("packages/tools/src/constructs_triton_tools/cli/project/template/tests/test_stack.py", "", []),
    ],
)
def test_content_of_a_wheel(added: str, left_out: str, problems: list[str], tmp_path: Path) -> None:
    """A wheel has its license and type marker, no caches, and no tests but those of new projects."""
    wheel = tmp_path / "p-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (*CONTENT, *filter(None, [added])):
            if name != left_out:
                archive.writestr(name, "")
    assert list(distribution_problems(wheel)) == [f"{wheel.name}: {each}" for each in problems]


def test_open_points_are_in_the_list_of_the_owner() -> None:
    """Each point that is still open names a file that the section Release has in its table."""
    section = (PROJECT / "CONTRIBUTING.md").read_text().partition("\n## Release\n")[2].partition("\n## ")[0]
    for point in open_points(PROJECT):
        file = point.partition(":")[0].rpartition("/")[2]
        assert f"`{file}`" in section
