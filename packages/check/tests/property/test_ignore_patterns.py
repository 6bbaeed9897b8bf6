"""Patterns that are compiled without backtracking match what pathspec's own
regular expressions match.
"""

from __future__ import annotations

import pytest
from cpu_limit import cpu_limit
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from triton_model_check.untrusted.ignore_patterns import compile_patterns

PATTERN = st.text(alphabet="ab*?/[]!-.\\", min_size=1, max_size=12)
PATH = st.text(alphabet="ab/.[", min_size=1, max_size=16).filter(lambda text: text.strip("/"))


@pytest.mark.filterwarnings(
    "ignore:Possible:FutureWarning"
)  # of re in pathspec, about "[[]" and "[---]"
@settings(deadline=None, max_examples=500)
@given(pattern=PATTERN, path=PATH)
@example(pattern="*a*b", path="ab/aab")
@example(pattern="*a[a-b]*b*", path="xaab/b")
@example(pattern="**a**b*", path="aab")
@example(pattern=r"*\*a*b", path="*ab")
@example(pattern=r"\\*a*b", path=r"\ab")
def test_agrees_with_pathspec(pattern: str, path: str) -> None:
    """Both include, exclude or ignore a path."""
    try:
        compiled = compile_patterns([pattern])
    except ValueError:
        reject()
    assert (
        compiled.check_file(path).include
        == GitIgnoreSpec.from_lines([pattern]).check_file(path).include
    )


@pytest.mark.parametrize(
    "pattern",
    ["*a" * 20 + "b", "a*" * 100 + "b", "[a-z]*" * 20 + "!", "*" * 200 + "b", "*?" * 30 + "!"],
)
def test_hostile_pattern_takes_linear_time(pattern: str) -> None:
    """A pattern of a few bytes would take minutes for one long name."""
    with cpu_limit():
        assert compile_patterns([pattern]).check_file("/".join(["a" * 255] * 3)).include is None


@pytest.mark.parametrize("pattern", ["[[]", "*[---]*", "*[&&]*", "*[||]*", "*[~~]*"])
def test_set_of_another_syntax_gives_no_warning(pattern: str) -> None:
    """The tests turn warnings of ``re`` into errors; users would see them on their terminal."""
    compile_patterns([pattern])


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("[?[-?]", "bad character range"),
        ("\\", "Invalid git pattern"),
        ("a/**/a/**/a/**/b", r"more than 2 \*\* in a pattern"),  # each tries every folder of a path
    ],
)
def test_invalid_pattern_is_a_value_error(pattern: str, message: str) -> None:
    """The error of the regular expression that pathspec makes of it is not one."""
    with pytest.raises(ValueError, match=message):
        compile_patterns([pattern])
