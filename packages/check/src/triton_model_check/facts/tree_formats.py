"""Which files of XGBoost the FIL backend of each Triton release reads, as far as NVIDIA has published it."""

from __future__ import annotations

from constructs_triton_core.facts.versions import parse_version
from triton_model_check.facts.published import load

__all__ = ["unsupported_xgboost"]


def unsupported_xgboost(image_version: str, model_type: str, xgboost: tuple[int, int]) -> str:
    """Return what the release reads in place of a file, or ``""`` if it reads the file or may do so.

    Args:
        image_version: Version of the Triton image.
        model_type: ``"xgboost_json"`` or ``"xgboost_ubj"``.
        xgboost: Major and minor version of the XGBoost that wrote the file.

    Raises:
        InvalidValueError: the image version is not ``YY.MM``.
    """
    wanted = parse_version(image_version)
    rows = [row for row in load("tree_formats")["xgboost_releases"] if parse_version(row["since"]) <= wanted]
    if not rows:
        return ""
    first, before = rows[-1]["ubjson_since"], rows[-1]["json_before"]
    if model_type == "xgboost_ubj":
        if first is None:
            return "no UBJSON before image 24.10"
        return f"UBJSON of XGBoost {_dotted(first)} and newer" if xgboost < tuple(first) else ""
    return f"JSON of XGBoost before {_dotted(before)}" if before and xgboost >= tuple(before) else ""


def _dotted(version: list[int]) -> str:
    return ".".join(str(number) for number in version)
