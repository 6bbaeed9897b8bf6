"""The page of the documentation that explains a check."""

from __future__ import annotations

from functools import cache

from triton_model_check.checks.chapters import RULES

_DISTRIBUTION = "triton-model-check"
_LABEL = "documentation"


def page_of(code: str, site: str | None) -> str | None:
    """Return the address of the paragraph of a check, or ``None`` if there is none.

    Args:
        code: The code of a finding.
        site: Address of the documentation, or ``None`` if it has none.
    """
    rule = RULES.get(code)
    if rule is None or site is None:
        return None
    return f"{site.rstrip('/')}/reference/checks/{rule.group}.html#{code}"


@cache
def site() -> str | None:
    """Return the address of the documentation by ``[project.urls]`` of the installed package."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata(_DISTRIBUTION).get_all("Project-URL") or []
    except PackageNotFoundError:  # a source folder on PYTHONPATH
        return None
    for url in urls:
        label, _, address = str(url).partition(",")
        if label.strip().lower() == _LABEL:
            return address.strip()
    return None
