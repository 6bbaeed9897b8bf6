"""The public list, and its two spellings."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import constructs_triton
from constructs_triton import model_config
from constructs_triton.model_config import builder

INIT = Path(constructs_triton.__file__)


def _names_for_type_checkers(init: Path) -> dict[str, str]:
    """Name to module, as imported below ``if TYPE_CHECKING``."""
    block = next(
        node
        for node in ast.parse(init.read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_type_checkers_see_what_python_resolves() -> None:
    """The names that resolve lazily are those that type checkers see, from the same modules."""
    assert _names_for_type_checkers(INIT) == constructs_triton._MODULE_OF


@pytest.mark.parametrize("name", constructs_triton.__all__)
def test_public_name_resolves_and_is_documented(name: str) -> None:
    """Every public name exists and says what it is."""
    value = getattr(constructs_triton, name)
    assert value.__doc__


def test_unknown_name_is_an_attribute_error() -> None:
    """A name that does not exist fails as Python's own modules do."""
    with pytest.raises(AttributeError, match="has no attribute 'TritonEndpint'"):
        getattr(constructs_triton, "TritonEndpint")  # noqa: B009 - a typo is the subject


def test_model_config_offers_every_name_of_the_builder() -> None:
    """The builder's list stands once: the package above has the same objects, and type checkers see them."""
    names = set(builder.__all__)
    assert names == set(builder._HOMES) == set(_names_for_type_checkers(Path(builder.__file__)))
    assert names <= set(model_config.__all__) == set(model_config._HOMES)
    assert all(getattr(model_config, name) is getattr(builder, name) for name in names)
