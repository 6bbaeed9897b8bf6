"""Collects the pages of the site: ``docs/``, files of the project, and a page for each example."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

PROJECT = Path(__file__).parents[2]
#: Files of the project that are pages of the site as well.
PROJECT_FILES = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
#: The list of public names in a checkout. The site has a page for each of its headings.
API = "reference/api.md"
#: How a page shows a file of the project to which another page links.
LANGUAGES = {".py": "python", ".json": "json", ".pbtxt": "text", ".csv": "text", ".txt": "text"}
SHOWN_BYTES = 50_000
#: Pages that need no entry in the navigation.
UNLISTED = ("examples/apps/", "source/")
#: A link to what only contributors and maintainers read. The site shows its text, without a page for it.
FOR_MAINTAINERS = re.compile(r"\[(?P<text>[^]]+)\]\((?:\.\./)*dev/project/[^)]*\)")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
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
    for name in PROJECT_FILES:
        (target / "project").mkdir(exist_ok=True)
        shutil.copy(PROJECT / name, target / "project" / name)
    for readme in (PROJECT / "packages").glob("*/README.md"):
        page = target / page_of(readme.relative_to(PROJECT).as_posix())
        page.parent.mkdir(exist_ok=True)
        shutil.copy(readme, page)
    for folder in example_folders():
        page = target / page_of(folder.relative_to(PROJECT).as_posix())
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(example_page(folder), encoding="utf-8")
    (target / API).unlink()
    for page in list(target.rglob("*.md")):
        _rewrite(page, target)


def missing_in_nav(target: Path) -> list[str]:
    """Return the pages that ``nav`` in mkdocs.yml does not list; those of single examples need no entry."""
    nav = (PROJECT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = (page.relative_to(target).as_posix() for page in sorted(target.rglob("*.md")))
    return [page for page in pages if f" {page}\n" not in nav and not page.startswith(UNLISTED)]


def example_folders() -> list[Path]:
    """Return the folder of each example."""
    return sorted(path.parent for path in (PROJECT / "examples").rglob("app.py"))


def page_of(path: str) -> PurePosixPath:
    """Return the page of the site that shows a file or an example of the project."""
    if path in PROJECT_FILES:
        return PurePosixPath("project", path)
    if re.fullmatch(r"packages/\w+/README\.md", path):
        return PurePosixPath("packages", f"{PurePosixPath(path).parent.name}.md")
    if path.startswith("examples/"):
        parts = PurePosixPath(path).parts
        return PurePosixPath("examples", "apps", f"{parts[2 if parts[1] == 'published_systems' else 1]}.md")
    if path.startswith("docs/"):
        return PurePosixPath(path).relative_to("docs")
    if (PROJECT / path).exists():
        return PurePosixPath("source", f"{path}.md")
    raise ValueError(f"{path}: does not exist; correct the link")


def source_page(path: str) -> str:
    """Return a page with the text of a file, or of the files of a folder."""
    place = PROJECT / path
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    shown = (file for file in files if file.suffix in LANGUAGES and file.stat().st_size <= SHOWN_BYTES)
    return "\n".join([f"# {path}\n", *(_listing(file) for file in shown)])


def _listing(file: Path) -> str:
    code = file.read_text(encoding="utf-8")
    return f"## {file.relative_to(PROJECT)}\n\n```{LANGUAGES[file.suffix]}\n{code}\n```\n"


def example_page(folder: Path) -> str:
    """Return an example's README and code."""
    name = folder.relative_to(PROJECT).as_posix()
    readme = folder / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.is_file() else f"# {name}\n"
    code = (folder / "app.py").read_text(encoding="utf-8")
    return f"{text.rstrip()}\n\n## The app\n\n`{name}/app.py`:\n\n```python\n{code}```\n"


def _rewrite(page: Path, target: Path) -> None:
    """Point links that leave ``docs/`` to the pages of the site."""
    place = page.relative_to(target)
    source = _source_of(place)
    text = FOR_MAINTAINERS.sub(r"\g<text>", page.read_text(encoding="utf-8"))
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
