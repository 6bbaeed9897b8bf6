"""Models of LightGBM and XGBoost as onnxmltools writes them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import onnxmltools
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType

warnings.simplefilter("ignore")
FEATURES = 8


def _models(is_large: bool) -> Iterator[tuple[str, Any, Callable[..., Any]]]:
    rows, trees = (600, 250) if is_large else (60, 3)
    values = (np.arange(rows * FEATURES).reshape(rows, FEATURES) * 7 % 61 / 61).astype(np.float32)
    classes = (values.sum(axis=1) * 10).astype(np.int64) % 3
    few = {"n_estimators": trees, "n_jobs": 1}
    convert = onnxmltools.convert_lightgbm
    yield (
        "lightgbm_classes",
        lightgbm.LGBMClassifier(**few, verbose=-1).fit(values, classes),
        convert,
    )
    yield "lightgbm_value", lightgbm.LGBMRegressor(**few, verbose=-1).fit(values, classes), convert
    convert = onnxmltools.convert_xgboost
    yield "xgboost_classes", xgboost.XGBClassifier(**few).fit(values, classes), convert
    many = {**few, "n_estimators": trees * 8, "learning_rate": 0.01}
    yield "xgboost_value", xgboost.XGBRegressor(**many).fit(values, classes), convert


def main(folder: Path) -> None:
    """Write each model to a folder of its own."""
    for size in ("small", "large"):
        for name, model, convert in _models(size == "large"):
            inputs = [("x", FloatTensorType([None, FEATURES]))]
            settings = {"zipmap": False} if name == "lightgbm_classes" else {}
            try:
                converted = convert(model, initial_types=inputs, target_opset=15, **settings)
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
                continue
            (folder / f"{name}_{size}").mkdir(parents=True)
            (folder / f"{name}_{size}" / "model.onnx").write_bytes(converted.SerializeToString())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
