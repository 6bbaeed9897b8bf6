"""Opens pages of this project in the system's Chromium, and checks them with axe-core."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
#: Where the pictures of the documentation are written, if they are.
PICTURES = os.environ.get("PAGE_PICTURES")
AXE = Path(__file__).resolve().parents[2] / "node_modules" / "axe-core" / "axe.min.js"
LIMIT = 60_000
needs_browser = pytest.mark.skipif(
    not (CHROMIUM or os.environ.get("CONSTRUCTS_TRITON_REQUIRE_SERVER")),
    reason="needs a browser: apt-get install chromium",
)


@contextmanager
def browsing() -> Iterator[Browser]:
    """Run headless Chromium."""
    with sync_playwright() as playwright:
        # Chromium's sandbox does not start as root. The only pages are those of this project.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened_page(
    browser: Browser, address: str, problems: list[str], *, width: int, scheme: Any
) -> Page:
    """Open a page. ``problems`` gets errors of its scripts,
    blocked content and requests to other hosts.
    """
    size: Any = {"width": width, "height": 900 if width > 600 else 844}
    context = browser.new_context(
        viewport=size, color_scheme=scheme, locale="en-US", accept_downloads=True
    )
    page = context.new_page()
    page.set_default_timeout(LIMIT)
    expect.set_options(timeout=LIMIT)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda line: problems.append(line.text) if "Content Security" in line.text else None,
    )
    page.on("request", lambda request: _check_host(request.url, problems))
    page.goto(address)
    return page


def _check_host(url: str, problems: list[str]) -> None:
    if not url.startswith(("http://127.0.0.1:", "blob:http://127.0.0.1:", "file:")):
        problems.append(f"a request to {url}")


def serious_findings(page: Page) -> list[str]:
    """What axe-core finds that is serious or critical, each with the first element."""
    page.evaluate(AXE.read_text())
    found = page.evaluate(
        "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice'] })"
    )
    serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in serious]
