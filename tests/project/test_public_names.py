"""The public list, and its two spellings."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import constructs_triton

INIT = Path(constructs_triton.__file__)


def _names_for_type_checkers() -> dict[str, str]:
    """Name to module, as imported below ``if TYPE_CHECKING``."""
    block = next(
        node
        for node in ast.parse(INIT.read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_type_checkers_see_what_python_resolves() -> None:
    """The names that resolve lazily are those that type checkers see, from the same modules."""
    assert _names_for_type_checkers() == constructs_triton._MODULE_OF


@pytest.mark.parametrize("name", constructs_triton.__all__)
def test_public_name_resolves_and_is_documented(name: str) -> None:
    """Every public name exists and says what it is."""
    value = getattr(constructs_triton, name)
    assert value.__doc__


def test_unknown_name_is_an_attribute_error() -> None:
    """A name that does not exist fails as Python's own modules do."""
    with pytest.raises(AttributeError, match="has no attribute 'TritonEndpint'"):
        getattr(constructs_triton, "TritonEndpint")  # noqa: B009 - a typo is the subject
