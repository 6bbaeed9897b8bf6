"""Regular expressions take linear time for the text that costs them the most."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator, Mapping
from importlib import import_module

import pytest
from parts import part
from pattern_attacks import attacks
from workspace import PACKAGES, PROJECT

from constructs_triton_core.facts.failures import known_failures

#: In characters, each four times as long as the one before. The longest costs four times as much as
#: the one before in linear time, and 16 times in quadratic time; the bound is between. Both are
#: longer than the gaps of the catalogue, within which the time is quadratic. Nearly all patterns
#: are linear from the first text to the second already, and need no longer one.
SIZES = (1_000, 4_000, 16_000)
FIRST_BOUND, BOUND = 6, 9
#: The first text is so short that exponential time shows in it, and does not stop the test.
SHORTEST, LONGEST_SECONDS = 22, 0.05
#: What costs less for the short text, in seconds of the processor, cannot be measured, nor hurt.
CHEAP = 0.0005
#: Methods that look for a match from each character on.
SEARCHING = ("search", "findall", "finditer", "sub", "subn", "split")
ANCHORED = ("match", "fullmatch")

#: Why a pattern may take more than linear time, by its module and name.
REASONS: Mapping[str, str] = {
    "constructs_triton_core/cloud_assembly/template.py:_SUBSTITUTION": (
        "it searches only up to the last closing brace, so that each beginning has an end"
    ),
    "triton_model_check/artifacts/environments/line_checks.py:_USER": (
        "it searches only up to the last @, so that each beginning has an end"
    ),
}


def cost(pattern: re.Pattern[str], method: str, text: str) -> float:
    """The processor time of one search, in seconds."""
    begun = time.process_time()
    getattr(pattern, method)(text)
    return time.process_time() - begun


def slow(
    pattern: re.Pattern[str], method: str = "search", sizes: tuple[int, int, int] = SIZES
) -> str:
    """The beginning of a text for which a pattern takes more than linear time; ``""`` if none."""
    for shortest in attacks(pattern, SHORTEST):
        if cost(pattern, method, shortest) > LONGEST_SECONDS:
            return f"exponential: {shortest!r}"
    texts = (attacks(pattern, size) for size in sizes)
    for first, short, long in zip(*texts, strict=True):
        before = cost(pattern, method, short)
        if before < CHEAP or before < FIRST_BOUND * cost(pattern, method, first):
            continue
        after = cost(pattern, method, long)
        if after > BOUND * before:
            # The least of several, because another process may take the processor in between.
            before = min(before, *(cost(pattern, method, short) for _ in range(3)))
            after = min(after, *(cost(pattern, method, long) for _ in range(3)))
        if after > BOUND * before:
            return f"{after / before:.0f} times: {long[:50]!r}"
    return ""


def _methods(code: str) -> Iterator[tuple[str, str]]:
    """The names of patterns with the methods by which they are used."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and node.attr in (*SEARCHING, *ANCHORED):
            owner = node.value
            if isinstance(owner, ast.Name):
                yield owner.id, node.attr
            elif isinstance(owner, ast.Attribute):
                yield owner.attr, node.attr


def _written(code: str) -> Iterator[tuple[str, str, str]]:
    """The name or line, the method and the text of each pattern that is written as one string."""
    tree = ast.parse(code)
    names = {
        node.value: node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        owner, text = node.func.value, node.args[0]
        is_pattern = isinstance(owner, ast.Name) and owner.id == "re"
        if is_pattern and isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield names.get(node, str(node.lineno)), node.func.attr, text.value


def _patterns() -> Iterator[tuple[str, str, re.Pattern[str]]]:
    """The place, the method and the pattern of all that the packages search with."""
    for package in PACKAGES.values():
        for path in package.modules:
            code = path.read_text()
            if "re." not in code:
                continue
            place = path.relative_to(PROJECT).as_posix().rpartition("src/")[2]
            used: dict[str, set[str]] = {}
            for name, method in _methods(code):
                used.setdefault(name, set()).add(method)
            compiled = _compiled(place) if "re.compile" in code else {}
            for name, pattern in compiled.items():
                for method in _strictest(used.get(name, set())):
                    yield f"{place}:{name}", method, pattern
            for name, method, text in _written(code):
                if method in (*SEARCHING, *ANCHORED):
                    for chosen in _strictest({method}):
                        yield f"{place}:{name}", chosen, re.compile(text)


def _compiled(place: str) -> dict[str, re.Pattern[str]]:
    try:
        module = import_module(
            place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        )
    except ModuleNotFoundError as error:
        if error.name != "triton_python_backend_utils":  # only Triton's stub process has it
            raise
        return {}
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    }


def _strictest(methods: set[str]) -> list[str]:
    """One that searches stands for all; a pattern that another module uses may be searched with."""
    if not methods or methods & {*SEARCHING}:
        return ["search"]
    return sorted(methods)


def test_each_pattern_takes_linear_time() -> None:
    """The text that dev/pattern_attacks.py writes for a pattern does not slow it down."""
    found = {
        f"{place} {method}": reason
        for place, method, pattern in _patterns()
        if place not in REASONS and (reason := slow(pattern, method))
    }
    assert found == {}


def test_catalogue_of_failures_takes_linear_time() -> None:
    """A log of another's container, or a message, does not stop ``diagnose``. One entry in three is
    measured, and all in the daily job.
    """
    found = {each.id: reason for each in part(known_failures()) if (reason := slow(each.pattern))}
    assert found == {}


@pytest.mark.parametrize(
    ("pattern", "sizes"),
    [
        # Each short text must cost more than CHEAP on a fast processor too, and no text seconds.
        (r"deregister\w*auto ?scaling", SIZES),
        (r"(?P<folder>\S+) does not appear to have a file", (250, 1_000, 4_000)),
        (r"\s*[+-]?[0-9]+", (250, 1_000, 4_000)),
        (r"a.*b.*c", (100, 400, 1_600)),
        (r"x(?:[a-z]+\s?)+y", SIZES),
    ],
)
def test_slow_patterns_are_found(pattern: str, sizes: tuple[int, int, int]) -> None:
    """The texts are hostile enough."""
    # Another process may slow the processor during the shorter text, which then seems as slow.
    assert any(slow(re.compile(pattern), sizes=sizes) for _ in range(3))
