"""The tool that changes the package at random (``make mutants``)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from mutants.mutations import statements
from mutants.sample import draw, find
from mutants.score import read_equivalents

PROJECT = Path(__file__).resolve().parents[2]
WIRE = "packages/client/src/constructs_triton_client/wire"


def mutated(source: str) -> set[str]:
    """Every mutation of a source, applied."""
    found = [mutation for statement in statements(source) for mutation in statement.mutations]
    return {mutation.apply(source.encode()).decode() for mutation in found}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", {"x = (a <= b)", "x = (a >= b)"}),
        ("x = a and b", {"x = (a or b)"}),
        ("x = not a", {"x = (a)"}),
        ("x = 3", {"x = (4)", "x = (2)"}),
        ("x = True", {"x = False"}),
        ("x = 'é', min(a)", {"x = ((min(a),))", "x = (('é',))", "x = 'émutant', min(a)", "x = 'é', max(a)"}),
        ("x = ['s3:Get', 's3:Put']", {"x = (['s3:Put'])", "x = (['s3:Get'])"}),
        ("f(a, b=c)", {"pass", "(f(a))"}),
        ("if a:\n    raise b", {"if (not (a)):\n    raise b", "if a:\n    pass"}),
        ("def f() -> None:\n    return x", {"def f() -> None:\n    return None"}),
    ],
)
def test_mutations(source: str, expected: set[str]) -> None:
    """Each kind of code has its mutations."""
    assert expected <= mutated(source)


@pytest.mark.parametrize(
    "source",
    ["'''Says what f does.'''", "x: Literal['a']", "import a", "x = f'{a < b}'", "raise_ = 'two words'"],
)
def test_what_cannot_be_noticed_is_not_mutated(source: str) -> None:
    """Docstrings, annotations, imports and sentences stay as they are."""
    assert not mutated(source)


def test_every_mutation_of_the_sample_compiles(tmp_path: Path) -> None:
    """The mutants of a sample are valid Python, can be found by their ids, and are the same in every run."""
    shutil.copytree(PROJECT / WIRE, tmp_path / WIRE)  # finding a mutant reads all files of a project
    sample = draw(tmp_path, 40, seed=7, packages=["wire"])
    for mutant in sample:
        compile(mutant.mutated(tmp_path), mutant.path, "exec")
    assert [str(mutant) for mutant in draw(tmp_path, 10, seed=7, packages=["wire"])] == [
        str(mutant) for mutant in sample[:10]
    ]
    assert find(tmp_path, sample[0].id).diff(tmp_path) == sample[0].diff(tmp_path)


def test_equivalent_mutants_have_a_reason(tmp_path: Path) -> None:
    """A line without a reason is an error."""
    read_equivalents(PROJECT / "dev" / "mutants" / "equivalent.txt")
    listed = tmp_path / "equivalent.txt"
    listed.write_text("# heading\n12345678  the order does not matter\n")
    assert read_equivalents(listed) == {"12345678"}
    listed.write_text("12345678\n")
    with pytest.raises(SystemExit, match="has no reason"):
        read_equivalents(listed)
