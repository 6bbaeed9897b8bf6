"""The pages of the documentation that findings lead to."""

from __future__ import annotations

from email.message import Message

import pytest
from workspace import PROJECT

from triton_model_check.checks.chapters import RULES
from triton_model_check.editor.pages import page_of, site

SITE = "https://example.com/docs/"


@pytest.mark.parametrize("code", ["text-enum", "ensemble-no-step", "python-execute"])
def test_page_of_a_check_exists(code: str) -> None:
    """The address is that of the page, with the heading of the check."""
    assert code in RULES
    page = page_of(code, SITE)
    assert page is not None
    place, _, heading = page.removeprefix(SITE).partition("#")
    text = (PROJECT / "docs" / place).with_suffix(".md").read_text("utf-8")
    assert f"## {heading}\n" in text


def test_unknown_code_and_unknown_site_have_no_page() -> None:
    """No address is better than a wrong one."""
    assert page_of("no-such-code", SITE) is None
    assert page_of("text-enum", None) is None


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        (
            ["Source, https://example.com/source", "Documentation, https://example.com/docs"],
            "https://example.com/docs",
        ),
        (["Source, https://example.com/source"], None),
        ([], None),
    ],
)
def test_site_is_that_of_the_installed_package(
    urls: list[str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the documentation of ``[project.urls]``, which an unpublished package lacks."""
    metadata = Message()
    for url in urls:
        metadata["Project-URL"] = url
    monkeypatch.setattr("importlib.metadata.metadata", lambda _: metadata)
    site.cache_clear()
    try:
        assert site() == expected
    finally:
        site.cache_clear()
