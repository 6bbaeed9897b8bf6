"""Attributes of operators that ONNX Runtime refuses although it has a kernel for the operator.

Asked of seven releases from 1.15 to 1.28 with the models of ``dev/onnx_corpus/backend_models.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from onnx import onnx_ml_pb2 as proto

__all__ = ["Missing", "refused_attribute"]

_FIRST_WITH_INVERSE_ONE_SIDED_DFT = (1, 27)
_LAST_RELEASE_WITHOUT_IT = (1, 24)
_FIRST_OPSET_WITH_LINEAR = 20
_FIRST_OPSET_WITH_WRAP = 19
_FIRST_WITH_WRAP = (1, 17)
_ELEMENTS_OF_8_BITS = frozenset(
    {
        proto.TensorProto.FLOAT8E4M3FN,
        proto.TensorProto.FLOAT8E4M3FNUZ,
        proto.TensorProto.FLOAT8E5M2,
        proto.TensorProto.FLOAT8E5M2FNUZ,
    }
)


class Missing(NamedTuple):
    """An operator that the runtime does not implement, or may not implement."""

    message: str
    is_certain: bool


def refused_attribute(node: Any, opset: int, release: str) -> Missing | None:
    """Return which attribute of a standard operator ONNX Runtime ``release`` refuses, or may
    refuse; ``None`` if there is none.
    """
    rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    return None if rule is None else rule(node, opset, release)


def _batch_first(node: Any, _opset: int, _release: str) -> Missing | None:
    """Source: onnxruntime core/providers/cpu/rnn, "layout_ == 0" in the three constructors."""
    if not _integer(node, "layout", 0):
        return None
    message = f"{node.op_type}: Batchwise recurrent operations (layout == 1) are not supported"
    return Missing(message, is_certain=True)


def _inverse_one_sided(node: Any, _opset: int, release: str) -> Missing | None:
    """Source: the inference function of DFT in the onnx of each runtime."""
    if not (_integer(node, "inverse", 0) and _integer(node, "onesided", 0)):
        return None
    number = _minor(release)
    if number >= _FIRST_WITH_INVERSE_ONE_SIDED_DFT:
        return None
    message = "DFT: is_onesided and inverse attributes cannot be enabled at the same time"
    return Missing(message, is_certain=number <= _LAST_RELEASE_WITHOUT_IT)


def _mode(node: Any, opset: int, _release: str) -> Missing | None:
    """Operator set 20 renamed the modes "bilinear" and "bicubic" of GridSample."""
    mode = next((each.s for each in node.attribute if each.name == "mode"), b"")
    if opset >= _FIRST_OPSET_WITH_LINEAR or mode not in (b"linear", b"cubic"):
        return None
    message = f'GridSample: mode "{mode.decode()}" not supported, expect bi{mode.decode()}'
    return Missing(message, is_certain=True)


def _wrap(node: Any, opset: int, release: str) -> Missing | None:
    """Operator set 19 added the mode "wrap" of Pad; later releases accept it before, too."""
    mode = next((each.s for each in node.attribute if each.name == "mode"), b"")
    if mode != b"wrap" or opset >= _FIRST_OPSET_WITH_WRAP or _minor(release) >= _FIRST_WITH_WRAP:
        return None
    return Missing('Pad: Invalid mode attribute value "wrap"', is_certain=False)


def _minor(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".")[:2])


def _saturation(node: Any, _opset: int, _release: str) -> Missing | None:
    """Some releases refuse ``saturate: 0`` for a type without 8 bits, and others ignore it."""
    if _integer(node, "saturate", 1) or _integer(node, "to", 0) in _ELEMENTS_OF_8_BITS:
        return None
    message = "Cast: Attribute saturate is only used for cast to float 8 types"
    return Missing(message, is_certain=False)


def _integer(node: Any, name: str, default: int) -> int:
    return next((each.i for each in node.attribute if each.name == name), default)


def _locale(_node: Any, _opset: int, _release: str) -> Missing | None:
    """The kernel constructs the locale, in some releases even if it changes no case."""
    message = "StringNormalizer needs a locale, en_US by default, which the image may not have"
    return Missing(message, is_certain=False)


_RULES: Mapping[str, Callable[[Any, int, str], Missing | None]] = {
    "Cast": _saturation,
    "DFT": _inverse_one_sided,
    "GRU": _batch_first,
    "GridSample": _mode,
    "LSTM": _batch_first,
    "Pad": _wrap,
    "RNN": _batch_first,
    "StringNormalizer": _locale,
}
