"""The ONNX Runtime of each Triton release: what it can load, its operators, and their implementations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from constructs_triton_core.facts.versions import parse_version
from triton_model_check.facts.published import load

_Constraints = Mapping[str, frozenset[str]]
_FIRST_RELEASE = (1, 19)  # older ones were not asked; they have no kernels that it has not


@dataclass(frozen=True, slots=True)
class OnnxRuntime:
    """One ONNX Runtime.

    ``max_opset`` is of the domain ``ai.onnx``, ``max_ml_opset`` of ``ai.onnx.ml``. ``since`` is the first
    Triton release with it. ``external_data_outside_folder`` is whether weights may be in a file outside the
    model's folder.
    """

    since: str
    version: str
    max_opset: int
    max_ml_opset: int
    max_ir_version: int
    supports_bf16: bool
    external_data_outside_folder: bool


@cache
def onnx_runtime(image_version: str | None) -> OnnxRuntime:
    """Return the ONNX Runtime of an image; of the newest release for ``None``.

    Releases before the first that is known get its limits, which are the least.
    """
    rows = [OnnxRuntime(**row) for row in load("onnxruntime")["releases"]]
    if image_version is None:
        return rows[-1]
    wanted = parse_version(image_version)
    return next((row for row in reversed(rows) if parse_version(row.since) <= wanted), rows[0])


@cache
def operator_attributes(domain: str, operator: str, opset: int) -> frozenset[str] | None:
    """Return the attributes of an operator in an operator set, or ``None`` for an unknown operator.

    ``opset`` is the version of the domain that the model imports.
    """
    definitions: dict[str, list[str]] = (
        load("onnx_operators")["operators"].get(domain or "ai.onnx", {}).get(operator, {})
    )
    known = [int(since) for since in definitions if int(since) <= opset]
    return frozenset(definitions[str(max(known))]) if known else None


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
