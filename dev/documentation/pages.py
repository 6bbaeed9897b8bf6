"""Collects the pages of the site: ``docs/``, files of the project,
and READMEs of packages and examples.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import yaml  # type: ignore[import-untyped]

PROJECT = Path(__file__).parents[2]
#: Files of the project that are pages of the site as well.
PROJECT_FILES = ("CHANGELOG.md", "SECURITY.md")
#: Packages that people install alone.
PACKAGES = ("check", "client", "rehearse")
#: The list of public names in a checkout. The site has a page for each of its headings.
API = "reference/api.md"
SHOWN_BYTES = 50_000
#: Folders of generated pages. The first page of each links to all of them.
FIRST_PAGES: Mapping[str, str] = {
    "reference/checks/": "reference/checks.md",
    "reference/api/": "reference/api/index.md",
    "troubleshooting/": "troubleshooting/index.md",
    "packages/": "packages/index.md",
}
#: Folders whose pages the other pages link to where they need them.
UNLISTED = ("examples/apps/", "source/")
#: A link to what is read in the repository. The site shows its text, without a page for it.
IN_REPOSITORY = re.compile(
    r"\[(?P<text>[^]]+)\]\((?:\.\./)*(?:dev/project/|packages/check/tests/|src/)[^)]*\)"
)
#: What a person did not write as a page: texts of the code, outputs, and files of the project.
GENERATED = (
    "reference/api",
    "reference/checks",
    "reference/commands.md",
    "reference/comparison.md",
    "reference/limits.md",
    "reference/rehearsal_problems.md",
    "troubleshooting/",
    "packages/index.md",
    "project/",
    *UNLISTED,
)
#: Guides that follow a task from its beginning to its end.
JOURNEYS = (
    "guides/adopt.md",
    "guides/cost.md",
    "guides/measure.md",
    "guides/rehearse.md",
    "guides/run_locally.md",
)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
#: How a page shows a file of the project to which another page links.
LANGUAGES = {
    ".py": "python",
    ".md": "markdown",
    ".json": "json",
    ".pbtxt": "text",
    ".sh": "bash",
    ".csv": "text",
}


def collect(target: Path) -> None:
    """Write the folder that Zensical reads."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(PROJECT / "docs", target)
    (target / "project").mkdir()
    for name in PROJECT_FILES:
        shutil.copy(PROJECT / name, target / "project" / name)
    (target / "packages").mkdir()
    for name in PACKAGES:
        readme = f"packages/{name}/README.md"
        shutil.copy(PROJECT / readme, target / page_of(readme))
    (target / "packages" / "index.md").write_text(packages_page(), encoding="utf-8")
    (target / "examples" / "apps").mkdir()
    for folder in example_folders():
        copy_example(folder, target / "examples" / "apps")
    (target / API).unlink()
    for page in list(target.rglob("*.md")):
        _rewrite(page, target)


def is_generated(page: str) -> bool:
    """Return whether a page of the site, such as ``reference/commands.md``, is generated."""
    return page.startswith(GENERATED)


def hand_written() -> dict[str, str]:
    """Return the text of each page of ``docs/`` that a person wrote, as readers see it:
    without comments.
    """
    docs = PROJECT / "docs"
    pages = {page.relative_to(docs).as_posix(): page for page in sorted(docs.rglob("*.md"))}
    return {
        name: COMMENT.sub("", page.read_text(encoding="utf-8"))
        for name, page in pages.items()
        if not is_generated(name)
    }


@cache
def menu() -> dict[str, list[str]]:
    """Return the pages of ``nav`` in mkdocs.yml, each with the titles that lead to it."""
    return dict(
        _listed(yaml.safe_load((PROJECT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"], [])
    )


def _listed(entries: Any, titles: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    if isinstance(entries, str):
        yield entries, [*titles]
        return
    for entry in entries:
        if isinstance(entry, str):
            yield entry, [*titles]
        else:
            [(title, below)] = entry.items()
            yield from _listed(below, [*titles, title])


def menu_of(page: str) -> list[str]:
    """Return the titles of the menu that lead to a page."""
    return menu().get(page, [])


def missing_in_nav(target: Path) -> list[str]:
    """Return the pages that ``nav`` in mkdocs.yml does not contain, and so have no menu."""
    pages = sorted(page.relative_to(target).as_posix() for page in target.rglob("*.md"))
    return [page for page in pages if page not in menu() and not page.startswith(UNLISTED)]


def example_folders() -> list[Path]:
    """Return the folder of each example."""
    return sorted(path.parent for path in (PROJECT / "examples").rglob("app.py"))


def page_of(path: str) -> PurePosixPath:
    """Return the page of the site that shows a file or an example of the project."""
    if re.fullmatch(r"packages/\w+/README\.md", path):
        return PurePosixPath("packages", f"{PurePosixPath(path).parent.name}.md")
    if path.startswith("examples/"):
        parts = PurePosixPath(path).parts
        folder = PurePosixPath(*parts[: 3 if parts[1] == "published_systems" else 2])
        has_page = (PROJECT / folder / "README.md").is_file() and not path.endswith("/app.py")
        return PurePosixPath("examples", "apps", f"{folder.name}{'.md' if has_page else '.py'}")
    if path in PROJECT_FILES:
        return PurePosixPath("project", path)
    if path.startswith("docs/"):
        return PurePosixPath(path).relative_to("docs")
    if (PROJECT / path).exists():
        return PurePosixPath("source", f"{path}.md")
    raise ValueError(f"{path}: does not exist; correct the link")


def source_page(path: str) -> str:
    """Return a page with the text of a file, or of the files of a folder."""
    place = PROJECT / path
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    shown = (
        file for file in files if file.suffix in LANGUAGES and file.stat().st_size <= SHOWN_BYTES
    )
    return "\n".join([f"# {path}\n", *(_listing(file) for file in shown)])


def _listing(file: Path) -> str:
    code = file.read_text(encoding="utf-8")
    return f"## {file.relative_to(PROJECT)}\n\n```{LANGUAGES[file.suffix]}\n{code}\n```\n"


def packages_page() -> str:
    """Return a page with the first paragraph of each package."""
    lines = ["# Packages\n"]
    for name in PACKAGES:
        title, about = (
            (PROJECT / "packages" / name / "README.md")
            .read_text(encoding="utf-8")
            .split("\n\n")[:2]
        )
        lines.append(f"[{title.removeprefix('# ')}](../{name}/README.md)\n:   {about}\n")
    return "\n".join(lines)


def copy_example(folder: Path, target: Path) -> None:
    """Write an example's README as a page.

    Its code is a plain file, which the search leaves out.
    """
    shutil.copy(folder / "app.py", target / f"{folder.name}.py")
    readme = folder / "README.md"
    if readme.is_file():
        text = f"{readme.read_text(encoding='utf-8').rstrip()}\n\n[The app](app.py)\n"
        (target / f"{folder.name}.md").write_text(text, encoding="utf-8")


def _rewrite(page: Path, target: Path) -> None:
    """Point links that leave ``docs/`` to the pages of the site."""
    place = page.relative_to(target)
    source = _source_of(place)
    text = IN_REPOSITORY.sub(r"\g<text>", page.read_text(encoding="utf-8"))
    page.write_text(LINK.sub(_rewriter(place, source, target), text), encoding="utf-8")


def _source_of(place: Path) -> PurePosixPath:
    """Return the file of the project to which a page's links are relative."""
    if place.parts[0] == "project":
        return PurePosixPath(place.name)
    if place.parts[0] == "packages":
        return PurePosixPath("packages", place.stem, "README.md")
    if place.parts[:2] == ("examples", "apps"):
        (folder,) = (each for each in example_folders() if each.name == place.stem)
        return PurePosixPath(folder.relative_to(PROJECT).as_posix(), "README.md")
    return PurePosixPath("docs", place.as_posix())


def _rewriter(place: Path, source: PurePosixPath, target: Path) -> Callable[[re.Match[str]], str]:
    def rewrite(link: re.Match[str]) -> str:
        path = os.path.normpath(source.parent / link["path"])
        if path == f"docs/{API}":
            page = PurePosixPath("reference", "api", f"{(link['anchor'] or '#index')[1:]}.md")
            return f"]({os.path.relpath(page, place.parent.as_posix())})"
        page = page_of(path)
        if page.parts[0] == "source" and not (target / page).exists():
            (target / page).parent.mkdir(parents=True, exist_ok=True)
            (target / page).write_text(source_page(path), encoding="utf-8")
        return f"]({os.path.relpath(page, place.parent.as_posix())}{link['anchor'] or ''})"

    return rewrite
