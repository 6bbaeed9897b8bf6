"""constructs-triton-client, the package of callers: its requirements, extras and exports."""

from __future__ import annotations

import importlib
import re

import pytest
from workspace import PACKAGES, PROJECT, project_of

import constructs_triton_client

CLIENT = PROJECT / "packages" / "client"
PAGES = "\n".join(
    path.read_text()
    for folder, pattern in (("docs", "*.md"), ("examples", "*.py"), ("docs", "*.py"))
    for path in sorted((PROJECT / folder).rglob(pattern))
)


def test_client_requires_numpy_and_core() -> None:
    """NumPy is the only requirement of another project, and no version of Python is too new."""
    client = project_of(CLIENT)
    assert client["dependencies"] == [f"constructs-triton-core=={client['version']}", "numpy>=1.26"]
    assert client["requires-python"] == ">=3.11"


def test_extras_of_the_client_are_named_where_they_are_missing() -> None:
    """An extra that a message or a page names exists, and each extra is named by one."""
    text = PAGES + "".join(path.read_text() for each in PACKAGES.values() for path in each.modules)
    found = {
        name
        for names in re.findall(r"constructs-triton-client\[([\w,]+)\]", text)
        for name in names.split(",")
    }
    assert found == set(project_of(CLIENT)["optional-dependencies"])


@pytest.mark.parametrize(
    ("module", "limit"), [("constructs_triton_client", 20), ("constructs_triton_client.wire", 8)]
)
def test_exported_names_are_few_documented_and_used(module: str, limit: int) -> None:
    """Each exported name has a docstring and occurs in a page or an example,
    and no package exports many.
    """
    package = importlib.import_module(module)
    assert len(package.__all__) <= limit
    assert [name for name in package.__all__ if not getattr(package, name).__doc__] == []
    assert [name for name in package.__all__ if not re.search(rf"\b{name}\b", PAGES)] == []


def test_unknown_name_of_the_client_is_an_attribute_error() -> None:
    """An unknown name raises AttributeError with the name, and ``dir`` lists the public ones."""
    with pytest.raises(AttributeError, match="TritonClint"):
        getattr(constructs_triton_client, "TritonClint")  # noqa: B009 - a typo is the subject
    assert dir(constructs_triton_client) == constructs_triton_client.__all__
