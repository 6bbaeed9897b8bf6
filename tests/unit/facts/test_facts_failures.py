"""The catalogue of failures: its patterns, its words, and what its keywords name."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import string

import pytest

from constructs_triton import EndpointOptions, TritonEndpoint, TritonEnvironment, VariantOptions
from constructs_triton.cli import COMMANDS
from constructs_triton_core.facts.failures import (
    harmless_lines,
    known_failures,
    unknown_values,
)
from triton_model_check.checks.chapters import RULES
from triton_model_check.model_config.schema import new_model_config

FAILURES = known_failures()
PUBLIC = ("constructs_triton", "constructs_triton_client", "constructs_triton_core.errors")


def first_match(text: str) -> str | None:
    """The id of the first entry whose pattern matches."""
    lower_case = text.lower()
    candidates = (failure for failure in FAILURES if failure.may_match(lower_case))
    return next((failure.id for failure in candidates if failure.pattern.search(text)), None)


def test_the_first_entry_that_matches_an_example_is_its_own() -> None:
    """No earlier pattern matches a text of the entry in any release."""
    texts = {
        failure.id: (failure.example, *(other.text for other in failure.other_texts))
        for failure in FAILURES
    }
    found = {name: set(map(first_match, texts[name])) for name in texts}
    assert {name: first for name, first in found.items() if first != {name}} == {}


def test_no_pattern_matches_an_empty_line() -> None:
    """Such a pattern would explain every message."""
    assert [failure.id for failure in FAILURES if failure.pattern.search("")] == []


def test_every_entry_is_complete_and_has_its_own_id() -> None:
    """Each entry says where, why, what to do, and how that is known."""
    assert len({failure.id for failure in FAILURES}) == len(FAILURES)
    incomplete = [
        f.id
        for f in FAILURES
        if not (f.where and f.causes and all(f.causes) and f.fix and f.source)
    ]
    assert incomplete == []


def test_placeholders_are_groups_of_the_pattern() -> None:
    """Every ``{name}`` in a cause or a fix can be filled from a message,
    or has words for unknown values.
    """
    wrong = [
        (failure.id, name)
        for failure in FAILURES
        for text in (*failure.causes, failure.fix, failure.if_none_fits, failure.meaning)
        for _, name, _, _ in string.Formatter().parse(text)
        if name and name not in {*failure.pattern.groupindex, *unknown_values()}
    ]
    assert wrong == []


def test_every_harmless_line_explains_itself() -> None:
    """The parts of harmless lines are long enough not to hide other lines."""
    assert all(len(part) > 20 for part in harmless_lines())


@pytest.mark.parametrize(
    "keyword", sorted({keyword for failure in FAILURES for keyword in failure.keywords})
)
def test_every_keyword_names_something_that_exists(keyword: str) -> None:
    """A keyword is a check, a command, a field of ``config.pbtxt``, a property or a public name."""
    assert _exists(keyword)


def _exists(keyword: str) -> bool:
    first, _, rest = keyword.partition(" ")
    if first == "check":
        return rest in RULES
    if first == "constructs-triton":
        return rest.split()[0] in COMMANDS
    if first == "config.pbtxt":
        return rest in new_model_config().DESCRIPTOR.fields_by_name
    name, _, attribute = keyword.partition(".")
    if name[0].islower():
        return name in _properties()
    modules = [importlib.import_module(module) for module in PUBLIC]
    owners = [getattr(module, name) for module in modules if hasattr(module, name)]
    return any(not attribute or attribute in _attributes(owner) for owner in owners)


def _properties() -> set[str]:
    options = {*EndpointOptions.__annotations__, *VariantOptions.__annotations__}
    return options | set(inspect.signature(TritonEndpoint.__init__).parameters)


def _attributes(owner: type) -> set[str]:
    fields = (
        {field.name for field in dataclasses.fields(owner)} if owner is TritonEnvironment else set()
    )
    return fields | set(dir(owner))
