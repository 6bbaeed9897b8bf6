"""Describes models of decision trees: XGBoost, LightGBM and Treelite, for the FIL backend.

LightGBM writes the number of features and the objective at the beginning of its file, XGBoost at
the end. Only these parts are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from triton_model_check.model_files.model_file import ModelFile, ModelTensor
from triton_model_check.model_files.other_formats import describe_by_content

__all__ = ["FIRST_UNPUBLISHED_XGBOOST"]

_HEAD_BYTES, _TAIL_BYTES = 4096, 1 << 16
# Each has two forms: that of JSON, and that of UBJSON, where a length of eight bytes precedes each
# string.
_XGBOOST_FEATURES = re.compile(rb'num_feature(?:"\s*:\s*"|SL.{8})(\d{1,9})', re.DOTALL)
_XGBOOST_VERSION = re.compile(
    rb'version(?:"\s*:\s*\[\s*(?=\d)|\[#(?:i|L.{7})\x03i)(\d{1,3}|.)(?:\s*,\s*|i)(\d{1,3}|.)',
    re.DOTALL,
)
FIRST_UNPUBLISHED_XGBOOST = 3  # the table of the FIL backend is from 2024
_XGBOOST_OBJECTIVE = re.compile(
    rb'objective(?:"\s*:\s*\{\s*"name"\s*:\s*"|\{L.{8}nameSL.{8})([a-z]+):', re.DOTALL
)
_XGBOOST_CLASSIFIERS = frozenset({b"binary", b"multi"})
_LIGHTGBM_FEATURES = re.compile(rb"^max_feature_idx=(\d{1,9})\s*$", re.MULTILINE)
_LIGHTGBM_OBJECTIVE = re.compile(rb"^objective=(\w+)", re.MULTILINE)
_TREES = ("trees not checked",)
_LIGHTGBM_CLASSIFIERS = frozenset({b"binary", b"multiclass", b"multiclassova"})


def describe_tree(path: Path, file: BinaryIO) -> ModelFile:
    """Describe an open model of decision trees."""
    described = describe_by_content(path, file, "tree")
    if described.faults:
        return described
    file.seek(0)
    head = file.read(_HEAD_BYTES).lstrip()
    model_type = proven_model_type(head)
    if model_type == "lightgbm":
        features, is_classifier = _read_lightgbm(head)
    elif model_type:
        features, is_classifier = _read_xgboost(_tail(file))
    else:
        features, is_classifier = None, None
    version = _XGBOOST_VERSION.search(_tail(file)) if model_type.startswith("xgboost") else None
    versions = {"xgboost": f"{_number(version[1])}.{_number(version[2])}"} if version else {}
    inputs = () if features is None else (ModelTensor("input__0", "TYPE_FP32", (-1, features)),)
    return replace(
        described,
        model_type=model_type,
        inputs=inputs,
        is_classifier=is_classifier,
        versions=versions,
        not_checked=(
            *(described.not_checked if features is None else _TREES),
            *_unpublished(versions),
        ),
    )


def _number(text: bytes) -> int:
    """Return a number in decimal digits (JSON), or in one byte (UBJSON)."""
    return int(text) if text.isdigit() else text[0]


def _unpublished(versions: Mapping[str, str]) -> Iterator[str]:
    version = versions.get("xgboost", "")
    if int(version.partition(".")[0] or 0) >= FIRST_UNPUBLISHED_XGBOOST:
        yield f"written by XGBoost {version}: which images read it is not published"


def proven_model_type(head: bytes) -> str:
    """Return the model type if the beginning proves it, or "".

    XGBoost's old binary format has no signature.
    """
    head = head.lstrip()
    if head.startswith(b"{") and b'"learner"' in head[:64]:
        return "xgboost_json"
    if head.startswith(b"{L") and b"learner" in head[:64]:
        return "xgboost_ubj"
    return "lightgbm" if head.startswith((b"tree\n", b"tree\r\n")) else ""


def is_other_content(path: Path) -> bool:
    """Whether the content of a file with the name of a model of trees is something else.

    XGBoost's JSON is an object with the key ``learner`` near its beginning or its end. The other
    formats have signatures, apart from XGBoost's old binary format and Treelite's checkpoint.
    """
    if path.suffix not in (".json", ".ubj", ".txt"):
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        has_learner = b"learner" in head or b"learner" in _tail(file)
    if path.suffix == ".txt":
        return proven_model_type(head) == ""
    return not head.lstrip().startswith(b"{") or not has_learner


def _tail(file: BinaryIO) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    return file.read(_TAIL_BYTES)


def _read_lightgbm(head: bytes) -> tuple[int | None, bool | None]:
    features = _LIGHTGBM_FEATURES.search(head)
    objective = _LIGHTGBM_OBJECTIVE.search(head)
    return (
        int(features[1]) + 1 if features else None,
        objective[1] in _LIGHTGBM_CLASSIFIERS if objective else None,
    )


def _read_xgboost(tail: bytes) -> tuple[int | None, bool | None]:
    # Each tree has a num_feature too. That of the model comes after all trees.
    model = tail[tail.rfind(b"learner_model_param") :]
    features = _XGBOOST_FEATURES.search(model)
    objective = _XGBOOST_OBJECTIVE.search(model)
    return (
        int(features[1]) if features else None,
        objective[1] in _XGBOOST_CLASSIFIERS if objective else None,
    )
