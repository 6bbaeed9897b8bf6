"""What a stranger sees first: the README, the start page and CONTRIBUTING."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from documentation.first_app import program, resource_types
from documentation.pages import menu
from members import PROJECT

README, START = PROJECT / "README.md", PROJECT / "docs" / "index.md"
FIRST = [README, START]
NARROW = [*FIRST, PROJECT / "CONTRIBUTING.md"]
#: The parts of the README in their order: constructs, commands that work today, an error ...
PARTS = (
    "AWS CDK constructs for Python",
    "TritonMultiModelEndpoint(",
    "first_app.svg",
    "`make demo`",
    "`make test`",
    "error[text-enum]",
    "<picture>",
    "## Constructs at a glance",
    "## Four doors",
    "## With the packages from PyPI",
    "$ pip install 'constructs-triton[local]'",
    "## What has not been tried",
    "Nothing here has run in AWS or on a GPU.",
    "make account-check",
)
DOORS = ("Constructs", "Checker", "Rehearsal", "Workbench")
#: Commands that have never run in AWS, and that few people ask for.
BETA = ("compile", "adopt", "recommender")
FIRST_SCREEN_LINES = 60
WIDEST = 84
#: GitHub shows a README this wide, in pixels; the picture should not fill the screen.
WIDTH_ON_GITHUB, MOST_HEIGHT = 838, 450


def name(page: Path) -> str:
    return page.name


def _seen(page: Path) -> str:
    """Return what a reader sees: the page without the commands that write its blocks."""
    return re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL)


def _blocks(text: str) -> list[str]:
    return re.findall(r"^```.*?^```$", text, flags=re.DOTALL | re.MULTILINE)


def test_parts_of_the_readme_are_in_order() -> None:
    """The constructs come first, then what works in a clone, and what has not been tried last."""
    text = _seen(README)
    places = [text.find(part) for part in PARTS]
    assert -1 not in places
    assert places == sorted(places)


def test_first_screen_has_the_construct_and_commands_that_work_today() -> None:
    """The first 60 lines have the main construct, its scaling and two commands; none needs PyPI."""
    screen = "\n".join(_seen(README).splitlines()[:FIRST_SCREEN_LINES])
    for part in (
        "TritonMultiModelEndpoint(",
        "auto_scale_instance_count(",
        "scale_on_gpu_utilization(",
    ):
        assert part in screen
    for command in ("make demo", "make test"):
        assert f"`{command}`" in screen
        assert re.search(
            rf"^{command.removeprefix('make ')}:", (PROJECT / "Makefile").read_text(), re.M
        )
    assert "pip install" not in screen


def test_readme_counts_the_resources_of_its_app() -> None:
    """The number is that of the template, which has the resources that the text names."""
    types = resource_types()
    assert f"These lines become {sum(types.values())} resources" in README.read_text()
    for wanted in (
        "AWS::SageMaker::Model",
        "AWS::SageMaker::EndpointConfig",
        "AWS::SageMaker::Endpoint",
        "AWS::S3::Bucket",
        "AWS::Lambda::Function",
        "AWS::ApplicationAutoScaling::ScalingPolicy",
    ):
        assert types[wanted] == 1


@pytest.mark.parametrize("page", NARROW, ids=name)
def test_blocks_are_narrow(page: Path) -> None:
    """No line of a block is cut at the right edge of the site."""
    lines = [line for block in _blocks(_seen(page)) for line in block.splitlines()]
    assert [line for line in lines if len(line) > WIDEST] == []


def test_start_page_has_the_app_of_the_readme() -> None:
    """Both begin with the same lines."""
    assert f"```python\n{program()}```" in START.read_text()


@pytest.mark.parametrize("page", FIRST, ids=name)
def test_doors_are_named(page: Path) -> None:
    """Each door has a row with its question, in the same words on both pages."""
    section = _seen(page).partition("\n## Four doors\n")[2].partition("\n## ")[0]
    assert (
        tuple(re.findall(r"^\| \*\*(\w+)\*\* \| [A-Z][^|]+\? \| ", section, re.MULTILINE)) == DOORS
    )


def test_doors_have_the_same_questions_everywhere() -> None:
    """The README and the start page ask the same question at each door."""
    rows = [
        dict(re.findall(r"^\| \*\*(\w+)\*\* \| ([^|]+) \|", _seen(page), re.M)) for page in FIRST
    ]
    assert rows[0] == rows[1]


def test_rooms_keep_their_subject() -> None:
    """The checker's pages never mention the CDK; those of the rehearsal never mention models."""
    checker = [PROJECT / "packages/check/README.md", *(PROJECT / "docs/checker").glob("*.md")]
    assert [page.name for page in checker if re.search(r"\bCDK\b", _seen(page))] == []
    assert re.search(r"\bmodels?\b", _seen(PROJECT / "packages/rehearse/README.md")) is None


@pytest.mark.parametrize("page", FIRST, ids=name)
def test_beta_is_on_no_first_screen(page: Path) -> None:
    """What never ran in AWS and few people ask for is in the workbench, marked as beta."""
    screen = "\n".join(_seen(page).splitlines()[:FIRST_SCREEN_LINES])
    assert [word for word in BETA if word in screen] == []
    beta = (PROJECT / "docs/workbench.md").read_text().partition("\n## Beta\n")[2]
    assert [word for word in BETA if word not in beta] == []
    assert "workbench.md" in menu()


@pytest.mark.parametrize("page", FIRST, ids=name)
def test_pictures_exist_for_light_and_dark(page: Path) -> None:
    """The picture of the page in the browser has a file for each mode, and a text."""
    picture = re.search(r"<picture>(.*?)</picture>", _seen(page), re.DOTALL)
    assert picture is not None
    files = re.findall(r'src(?:set)?="([^"]+)"', picture[1])
    assert [Path(file).name for file in files] == [
        "page_top_dark_1440.png",
        "page_top_light_1440.png",
    ]
    assert all((page.parent / file).is_file() for file in files)
    assert 'media="(prefers-color-scheme: dark)"' in picture[1]
    assert 'alt="' in picture[1]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_picture_leaves_room_for_text(mode: str) -> None:
    """At the width of a README on GitHub, the picture is at most 450 pixels high."""
    content = (PROJECT / "docs" / "images" / f"page_top_{mode}_1440.png").read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert height * WIDTH_ON_GITHUB / width <= MOST_HEIGHT


def test_readme_says_which_python_each_part_needs() -> None:
    """The local server has fewer versions of Python than the rest; pyproject.toml says the same."""
    rows = dict(
        re.findall(
            r"^\| `pip install '?([\w[\]-]+)'?` \| ([^|]+?) \|", README.read_text(), re.MULTILINE
        )
    )
    assert rows["constructs-triton[local]"] == "3.11 or newer"
    assert rows["constructs-triton"] == "3.11 or newer"
    project = (PROJECT / "pyproject.toml").read_text()
    assert (
        "nvidia-pytriton>=0.7,<0.8; sys_platform == 'linux' and python_version < '3.13'" in project
    )
    assert "on Linux with Python 3.11 or 3.12" in README.read_text()


@pytest.mark.parametrize("package", ["check", "client", "rehearse"])
def test_package_pages_say_what_works_before_the_first_release(package: str) -> None:
    """The command that needs PyPI is followed by one that works in a clone."""
    text = (PROJECT / "packages" / package / "README.md").read_text()
    assert "pip install ./packages/core " in text.partition("\n    pip install ")[2][:400]
