"""The operators that ONNX Runtime implements on the CPU: for which operator sets and types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from triton_model_check.facts.published import load

_Constraints = Mapping[str, frozenset[str]]
_FIRST_RELEASE = (1, 19)  # older ones were not asked; they have no kernels that it has not


def has_kernel(domain: str, operator: str, since: int, types: Mapping[str, str], release: str) -> bool:
    """Return whether ONNX Runtime ``release`` implements an operator on the CPU.

    ``since`` is the operator set with the definition that the model uses. ``types`` are the known types, such
    as ``"float"``, by type constraint and by argument.
    """
    return any(
        all(name not in types or types[name] in allowed for name, allowed in constraints.items())
        for constraints in _kernels(domain, operator, since, release)
    )


@cache
def _kernels(domain: str, operator: str, since: int, release: str) -> tuple[_Constraints, ...]:
    return tuple(_read(domain, operator, since, max(_number(release), _FIRST_RELEASE)))


def _read(domain: str, operator: str, since: int, release: tuple[int, ...]) -> Iterator[_Constraints]:
    rows = load("onnx_kernels")["kernels"].get(domain, {}).get(operator, ())
    for first, last, added, removed, constraints in rows:
        is_in_release = _number(added) <= release and (removed is None or release < _number(removed))
        # A kernel without a last operator set is only for the definition that it was written for.
        if is_in_release and (since == first or (last is not None and first < since <= last)):
            yield {name: frozenset(types.split()) for name, types in constraints.items()}


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".")[:2])
