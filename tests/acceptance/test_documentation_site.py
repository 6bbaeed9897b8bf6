"""The documentation site builds without a warning, and the check of its links finds dead ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_page import browsing, needs_browser, opened_page, serious_findings
from documentation.links import dead_links
from parts import daily
from playwright.sync_api import Browser
from site_queries import BY_STRANGERS, QUERIES

BUDGET_MINUTES = 5

PROJECT = Path(__file__).resolve().parents[2]
SITE = PROJECT / "build" / "site"
MOST_WORDS = 92_000
#: A page of each kind.
KINDS = (
    "index",
    "start/tutorial",
    "guides/measure",
    "concepts/choosing",
    "reference/checks",
    "reference/checks/target",
    "reference/comparison",
    "reference/commands",
    "reference/api/endpoints",
    "troubleshooting/scaling",
    "examples/apps/bert_benchmark",
    "project/CHANGELOG",
    "packages/check",
)


@pytest.fixture(scope="module")
def build() -> subprocess.CompletedProcess[str]:
    """The end of ``make docs``."""
    command = [sys.executable, "-m", "documentation"]
    return subprocess.run(command, cwd=PROJECT / "dev", capture_output=True, text=True, check=False)


def test_site_builds_without_a_warning(build: subprocess.CompletedProcess[str]) -> None:
    """``make docs`` succeeds, and the search index contains the pages."""
    assert build.returncode == 0, build.stdout + build.stderr
    assert "guides/cost.html" in (SITE / "search.json").read_text()


def words_of_site() -> int:
    """Count the words of the pages that people read, and not only look something up in."""
    pages = {page.relative_to(SITE).as_posix(): page for page in SITE.rglob("*.html")}
    others = ("404.html", "reference/api/", "troubleshooting/")
    counted = (page for name, page in pages.items() if not name.startswith(others))
    return sum(_words(page.read_text(encoding="utf-8")) for page in counted)


def _words(page: str) -> int:
    article = page.partition("<article")[2].rpartition("</article>")[0]
    inline = re.sub(r"</?(a|code|em|span|strong)\b[^>]*>", "", article)  # inside words
    return len(re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", inline, flags=re.DOTALL).split())


@pytest.mark.usefixtures("build")
def test_site_has_few_words() -> None:
    """Without the reference of the API and the known failures, these are 92,000 words at most."""
    assert words_of_site() <= MOST_WORDS


@pytest.mark.usefixtures("build")
def test_pages_have_descriptions_of_their_own() -> None:
    """Pages with different texts have different descriptions, which search engines show."""
    found = [
        re.findall(
            r'<meta name="description" content="([^"]*)"', (SITE / f"{name}.html").read_text()
        )
        for name in KINDS
    ]
    assert len({"".join(each) for each in found}) == len(KINDS)


def not_found() -> dict[str, list[str]]:
    """Ask the site's own search each query; return those without a right page,
    and their first results.
    """
    (worker,) = (SITE / "assets" / "javascripts" / "workers").glob("search.*.min.js")
    script = Path(__file__).with_name("search_site.js")
    command = ["node", str(script), str(worker), str(SITE / "search.json")]
    asked = subprocess.run(
        command, input=json.dumps([*QUERIES]), capture_output=True, text=True, check=True
    )
    found = {
        query: [place.partition(".html")[0] for place in places]
        for query, places in json.loads(asked.stdout).items()
    }
    return {query: pages for query, pages in found.items() if not set(pages) & {*QUERIES[query]}}


@pytest.mark.usefixtures("build")
def test_search_finds_the_page_among_the_first_three() -> None:
    """The site's own search has the right page among its first three results for
    each query.
    """
    assert (len(BY_STRANGERS), len(QUERIES)) == (15, 49)
    assert not_found() == {}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        yield browser


@needs_browser
@pytest.mark.usefixtures("build")
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1440, "dark")])
def test_pages_are_accessible(browser: Browser, width: int, scheme: str) -> None:
    """Pages of each kind have no serious finding of axe-core, and do not scroll sideways."""
    problems: list[str] = []
    for name in KINDS:
        address = (SITE / f"{name}.html").as_uri()
        page = opened_page(browser, address, problems, width=width, scheme=scheme)
        problems += [f"{name}: {each}" for each in serious_findings(page)]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            problems.append(f"{name}: is wider than {width} pixels")
        page.context.close()
    assert problems == []


@pytest.mark.usefixtures("build")
def test_reference_begins_with_its_own_page() -> None:
    """The tab *Reference* opens the page that lists the reference."""
    page = (SITE / "index.html").read_text(encoding="utf-8")
    tabs = re.findall(r'<a href="([^"]+)" class="md-tabs__link">', page)
    assert "./reference/index.html" in tabs


@needs_browser
@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("name", ["reference/api/endpoints", "reference/checks/target"])
def test_generated_page_has_a_menu(browser: Browser, name: str) -> None:
    """A page of the API or the checks has the menu of the reference, and the header is as wide as
    the page.
    """
    address = (SITE / f"{name}.html").as_uri()
    page = opened_page(browser, address, [], width=1440, scheme="light")
    assert page.locator(".md-tabs__item--active").inner_text() == "Reference"
    assert page.locator(".md-sidebar--primary .md-nav__link--active:visible").count()

    search, contents = (
        page.locator(selector).bounding_box() for selector in (".md-search", ".md-main__inner")
    )
    assert search is not None
    assert contents is not None
    right = contents["x"] + contents["width"]
    assert right - (search["x"] + search["width"]) < 20


@needs_browser
@pytest.mark.usefixtures("build")
def test_copy_button_copies_the_command_alone(browser: Browser) -> None:
    """The button of a console block has the commands, without the prompt and what they printed."""
    address = (SITE / "start" / "tutorial.html").as_uri()
    page = opened_page(browser, address, [], width=1440, scheme="light")
    button = page.locator("pre:has(.gp) .md-code__button").first
    button.hover(force=True)
    assert button.get_attribute("data-clipboard-text") == "python train.py"


@daily
def test_shown_output_is_current() -> None:
    """Each block of a page shows what its command prints today; ``make docs-update`` writes it."""
    checked = subprocess.run(
        [sys.executable, "-m", "documentation.update", "--check"],
        cwd=PROJECT / "dev",
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_dead_links_are_found(tmp_path: Path) -> None:
    """A link to a missing page and one to a missing heading are dead; other sites are not asked."""
    (tmp_path / "a.html").write_text('<h2 id="there"></h2><a href="https://example.org">x</a>')
    (tmp_path / "b.html").write_text(
        '<a href="a.html#there">1</a><a href="a.html#not">2</a><img src="c.png">'
    )
    assert dead_links(tmp_path) == ["b.html: a.html#not", "b.html: c.png"]
