"""Checks every link of the rendered site: the files and the anchors that they name exist."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors = {""}
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Collect the links and the anchors of a tag."""
        for name, value in attrs:
            if value is not None and name in ("href", "src"):
                self.links.append(value)
            elif value is not None and name in ("id", "name"):
                self.anchors.add(value)


_read = cache(_Page)


def dead_links(site: Path) -> list[str]:
    """Return one line for each link to a file or an anchor that does not exist."""
    return [
        f"{page.relative_to(site)}: {link}"
        for page in sorted(site.rglob("*.html"))
        if page.name != "404.html"
        for link in _read(page).links
        if _is_dead(page, link)
    ]


def _is_dead(page: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if file.is_dir():
        file /= "index.html"
    if not file.is_file():
        return True
    return file.suffix == ".html" and unquote(parts.fragment) not in _read(file).anchors
