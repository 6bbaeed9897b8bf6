"""What the backends of each Triton release load: ONNX Runtime, models of trees, and vLLM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from constructs_triton_core.facts.versions import parse_version
from triton_model_check.facts.published import load
from triton_model_check.facts.releases import newest_known_release, release, releases

__all__ = ["engine_arguments", "unsupported_xgboost"]

_Constraints = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class OnnxRuntime:
    """The ONNX Runtime of one Triton release.

    ``max_opset`` is of the domain ``ai.onnx``, ``max_ml_opset`` of ``ai.onnx.ml``.
    ``supports_bf16`` is whether Triton's backend has this type; ``None`` if it is not known.
    ``external_data_outside_folder`` is whether weights may be in a file outside the model's folder.
    """

    version: str
    max_opset: int
    max_ml_opset: int
    max_ir_version: int
    supports_bf16: bool | None
    external_data_outside_folder: bool


@cache
def onnx_runtime(image_version: str | None) -> OnnxRuntime | None:
    """Return the ONNX Runtime of an image; of the newest known release for ``None``.

    ``None`` if it is not known: limits of other releases would refuse models that it loads, or
    accept models that it refuses.
    """
    row = newest_known_release() if image_version is None else release(image_version)
    if row is None or row.onnxruntime is None:
        return None
    limits = load("releases")["onnxruntimes"].get(row.onnxruntime)
    if limits is None:
        return None
    return OnnxRuntime(
        version=row.onnxruntime,
        max_opset=limits["max_opset"],
        max_ml_opset=limits["max_ml_opset"],
        max_ir_version=limits["max_ir_version"],
        supports_bf16=row.supports_bf16,
        external_data_outside_folder=limits["external_data_outside_folder"],
    )


def first_release_with_bf16() -> str:
    """Return the first release whose ONNX Runtime backend has the data type BF16."""
    return next(row.version for row in releases() if row.supports_bf16)


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


def has_kernel(
    domain: str, operator: str, since: int, types: Mapping[str, str], release: str
) -> bool | None:
    """Return whether ONNX Runtime ``release`` implements an operator on the CPU.

    ``None`` if only a later release was found to implement it, and none in between was asked.
    ``since`` is the operator set with the definition that the model uses. ``types`` are the known
    types, such as ``"float"``, by type constraint and by argument.
    """
    answers = {
        is_certain
        for constraints, is_certain in _kernels(domain, operator, since, release)
        if all(name not in types or types[name] in allowed for name, allowed in constraints.items())
    }
    if True in answers:
        return True
    return None if answers else False


@cache
def _kernels(
    domain: str, operator: str, since: int, release: str
) -> tuple[tuple[_Constraints, bool], ...]:
    return tuple(_read(domain, operator, since, _number(release)))


def _read(
    domain: str, operator: str, since: int, release: tuple[int, ...]
) -> Iterator[tuple[_Constraints, bool]]:
    """Yield the kernels that a release has or may have, and whether it certainly has them."""
    kernels = load("onnx_kernels")
    asked = [_number(each) for each in kernels["asked"]]
    for first, last, added, removed, constraints in kernels["kernels"][domain].get(operator, ()):
        # A kernel without a last operator set is only for the definition that it was written for.
        is_for = since == first or (last is not None and first < since <= last)
        is_removed = removed is not None and release >= _number(removed)
        found_in = _number(added)
        is_certain = found_in <= release
        is_absent = not is_certain and any(release[:2] <= each < found_in for each in asked)
        if is_for and not is_removed and not is_absent:
            named = {name: frozenset(types.split()) for name, types in constraints.items()}
            yield named, is_certain


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def unsupported_xgboost(image_version: str, model_type: str, xgboost: tuple[int, int]) -> str:
    """Return what the release reads in place of a file, or ``""`` if it reads the file or may do
    so.

    ``model_type`` is ``"xgboost_json"`` or ``"xgboost_ubj"``, and ``xgboost`` the major and minor
    version of the XGBoost that wrote the file.

    Raises:
        InvalidValueError: the image version is not ``YY.MM``.
    """
    wanted = parse_version(image_version)
    rows = [
        row
        for row in load("tree_formats")["xgboost_releases"]
        if parse_version(row["since"]) <= wanted
    ]
    if not rows:
        return ""
    first = rows[-1]["ubjson_since"]
    before = rows[-1]["json_before"]
    if model_type == "xgboost_ubj":
        if first is None:
            return "no UBJSON before image 24.10"
        return f"UBJSON of XGBoost {_dotted(first)} and newer" if xgboost < tuple(first) else ""
    return (
        f"JSON of XGBoost before {_dotted(before)}" if before and xgboost >= tuple(before) else ""
    )


def _dotted(version: list[int]) -> str:
    return ".".join(str(number) for number in version)


@cache
def engine_arguments(table: str = "engine_arguments") -> frozenset[str]:
    """Return the names that at least one of two releases accepts;
    the other table has those of older ones.
    """
    return frozenset(load("vllm")[table])


def lacks_former_engine_arguments(image_version: str | None) -> bool:
    """Whether the vLLM of an image is one of those whose arguments are known, or a newer one."""
    return image_version is None or image_version >= load("vllm")["engine_arguments_since"]


def knows_engine_arguments(image_version: str | None) -> bool:
    """Whether the tables have all engine arguments of the vLLM of an image; an image that is not
    named is taken for one of theirs.
    """
    if image_version is None:
        return True
    oldest = str(load("vllm")["engine_arguments_since"])
    return oldest <= image_version <= newest_known_release().version


def default_gpu_memory_utilization() -> float:
    """Return the fraction of a GPU's memory that vLLM uses by default:
    the larger one of the two releases.
    """
    return float(load("vllm")["gpu_memory_utilization"])
