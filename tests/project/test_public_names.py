"""The public names, listed once in each package's ``__init__.pyi``."""

from __future__ import annotations

import importlib

import pytest

import constructs_triton

LAZY_PACKAGES = [
    "constructs_triton",
    "constructs_triton.local",
    "constructs_triton.model_config",
    "constructs_triton.model_repository",
    "constructs_triton.testing",
]
PUBLIC = [(package, name) for package in LAZY_PACKAGES for name in importlib.import_module(package).__all__]


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_public_name_resolves_and_is_documented(package: str, name: str) -> None:
    """Every public name resolves and has a docstring."""
    assert getattr(importlib.import_module(package), name).__doc__


def test_names_resolve_from_the_root_that_users_write() -> None:
    """The property types of the constructs can be imported from the root."""
    expected = {"AlarmThresholds", "EndpointOptions", "TritonEndpoint", "TritonVariant", "TritonEnvironment"}
    assert expected <= set(constructs_triton.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    """An unknown name raises AttributeError with the name."""
    with pytest.raises(AttributeError, match="TritonEndpint"):
        getattr(constructs_triton, "TritonEndpint")  # noqa: B009 - a typo is the subject
