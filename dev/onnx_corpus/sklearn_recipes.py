"""Models as skl2onnx writes them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

warnings.simplefilter("ignore")
NO_MAPS = {"zipmap": False}
OPSETS = (9, 12, 15, 18, 21)
ML_OPSETS = (1, 2, 3, 5)


def _data(rows: int, columns: int) -> tuple[Any, Any]:
    """Return samples that compress well, and their classes."""
    values = (np.arange(rows * columns).reshape(rows, columns) * 7 % 61 / 61).astype(np.float32)
    return values, (values.sum(axis=1) * 10).astype(np.int64) % 3


def _mixed(rows: int, columns: int) -> tuple[Any, Any]:
    """Return samples of which each is needed to tell the classes apart."""
    values, _ = _data(rows, columns)
    return values, np.arange(rows) % 3


def _estimators(is_large: bool) -> Iterator[tuple[str, Any]]:
    trees, rows = (120, 700) if is_large else (3, 60)
    yield "forest", RandomForestClassifier(trees, random_state=0).fit(*_data(rows, 8))
    yield (
        "boosting",
        GradientBoostingRegressor(n_estimators=trees * 10, max_depth=5).fit(*_data(rows, 8)),
    )
    yield "neighbors", KNeighborsClassifier(3).fit(*_data(rows * 2, 50))
    yield "svc", SVC(probability=True, gamma=9).fit(*_mixed(rows, 120))
    yield "gaussian", GaussianProcessRegressor().fit(*_data(rows, 100))
    width = 400 if is_large else 4
    steps = StandardScaler(), PCA(4), MLPClassifier((width, width), max_iter=1)
    yield "pipeline", _even(make_pipeline(*steps).fit(*_data(60, 8)))
    yield "kmeans", KMeans(rows // 2, n_init=1, max_iter=1).fit(_data(rows, 200)[0])
    yield "logistic", LogisticRegression(max_iter=1).fit(*_data(rows, 30_000 if is_large else 8))


def _even(pipeline: Any) -> Any:
    """Set the weights of a network so that they compress well."""
    network = pipeline[-1]
    network.coefs_ = [
        (np.arange(each.size) % 16 / 64).reshape(each.shape) for each in network.coefs_
    ]
    return pipeline


def _texts(is_large: bool) -> Any:
    words = [f"word{number * 7919 % 100_000:05}" for number in range(30_000 if is_large else 30)]
    texts = [" ".join(words[start : start + 10]) for start in range(0, len(words), 10)]
    samples = np.array(texts).reshape(-1, 1)
    return TfidfVectorizer(lowercase=False).fit(samples[:, 0])


def _categories(is_large: bool) -> Any:
    names = np.array([[f"category {number:06}"] for number in range(20_000 if is_large else 20)])
    return ColumnTransformer(
        [("one", OneHotEncoder(handle_unknown="ignore", sparse_output=False), [0])]
    ).fit(names)


def _write(folder: Path, name: str, estimator: Any, inputs: Any, **settings: Any) -> None:
    try:
        content = to_onnx(estimator, initial_types=[("x", inputs)], **settings).SerializeToString()
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
        return
    (folder / name).mkdir(parents=True)
    (folder / name / "model.onnx").write_bytes(content)


def main(folder: Path) -> None:
    """Write each model to a folder of its own."""
    for size in ("small", "large"):
        for name, estimator in _estimators(size == "large"):
            inputs = FloatTensorType([None, estimator.n_features_in_])
            options = NO_MAPS if hasattr(estimator, "predict_proba") else None
            _write(
                folder,
                f"sklearn_{name}_{size}",
                estimator,
                inputs,
                options=options,
                target_opset=15,
            )
            if name == "forest":
                _write(folder, f"sklearn_maps_{size}", estimator, inputs, target_opset=15)
                for ml_opset in ML_OPSETS:
                    versions = {"": 18, "ai.onnx.ml": ml_opset}
                    ml_name = f"sklearn_ml_opset_{ml_opset}_{size}"
                    _write(
                        folder, ml_name, estimator, inputs, options=options, target_opset=versions
                    )
            if name == "pipeline":
                for opset in OPSETS:
                    opset_name = f"sklearn_opset_{opset}_{size}"
                    _write(
                        folder, opset_name, estimator, inputs, options=options, target_opset=opset
                    )
        words = StringTensorType([None, 1])
        _write(folder, f"sklearn_texts_{size}", _texts(size == "large"), words, target_opset=15)
        _write(
            folder,
            f"sklearn_categories_{size}",
            _categories(size == "large"),
            words,
            target_opset=15,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
