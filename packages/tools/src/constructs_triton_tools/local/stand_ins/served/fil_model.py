"""A forest of decision trees in XGBoost, LightGBM or Treelite, in place of Triton's fil backend.

Source: fil_backend, docs/model_config.md.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Sequence

import numpy as np

from .model_config import Config, boolean, parameter
from .stand_in import Array, Arrays, StandIn

_FILES = {
    "xgboost": "xgboost.model",
    "xgboost_json": "xgboost.json",
    "xgboost_ubj": "xgboost.ubj",
    "lightgbm": "model.txt",
    "treelite_checkpoint": "checkpoint.tl",
}
_INPUT = "input__0"
_OUTPUT = "output__0"


class TritonPythonModel(StandIn):
    """The class that the Python backend looks for."""

    def load(self, model_file: str) -> None:
        model_type = parameter(self.config, "model_type") or "xgboost"
        if model_type not in _FILES:
            raise ValueError(
                f"unknown model_type '{model_type}', must be one of {', '.join(_FILES)}"
            )
        if os.path.isdir(model_file):  # no default_model_filename
            model_file = os.path.join(model_file, _FILES[model_type])
        if not os.path.exists(model_file):
            raise ValueError(f"failed to open {model_file}")
        is_class = boolean(self.config, "output_class")
        if is_class is None:
            raise ValueError("parameter output_class is required")
        self._is_class = is_class
        self._has_probabilities = bool(boolean(self.config, "predict_proba"))
        self._threshold = _threshold(self.config) if is_class else 0.0
        self._scores = _LOADERS[model_type](model_file)

    def run(self, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        if _INPUT not in inputs or list(outputs) != [_OUTPUT]:
            raise ValueError(f"the model needs the input {_INPUT} and the output {_OUTPUT}")
        scores = np.asarray(self._scores(inputs[_INPUT].astype(np.float32)), dtype=np.float32)
        rows = len(inputs[_INPUT])
        scores = scores.reshape(rows, -1)
        if self._is_class:
            scores = self._classes(scores)
        dims = [int(size) for size in self.config["output"][0]["dims"]]
        return {
            _OUTPUT: np.ascontiguousarray(scores).reshape(
                [rows, *dims] if self.is_batched else dims
            )
        }

    def _classes(self, scores: Array) -> Array:
        """Return classes, or with ``predict_proba`` the probability of each class."""
        is_binary = scores.shape[1] == 1
        if self._has_probabilities:
            return np.hstack([1 - scores, scores]) if is_binary else scores
        chosen = scores[:, 0] > self._threshold if is_binary else scores.argmax(axis=1)
        return chosen.astype(np.float32)


def _threshold(config: Config) -> float:
    given = parameter(config, "threshold")
    if given is None:
        raise ValueError("parameter threshold is required when output_class is true")
    return float(given)


def _xgboost(path: str) -> Callable[[Array], Any]:
    import xgboost

    booster = xgboost.Booster()
    booster.load_model(path)
    is_softmax = '"multi:softmax"' in booster.save_config()

    def scores(rows: Array) -> Any:
        found = booster.predict(xgboost.DMatrix(rows), output_margin=is_softmax)
        return _softmax(found) if is_softmax else found

    return scores


def _softmax(margins: Array) -> Array:
    powers = np.exp(margins - margins.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _lightgbm(path: str) -> Callable[[Array], Any]:
    import lightgbm

    return lightgbm.Booster(model_file=path).predict  # type: ignore[no-any-return, unused-ignore]


def _treelite(read: str) -> Callable[[str], Callable[[Array], Any]]:
    """Return a loader that uses this function of Treelite."""

    def load(path: str) -> Callable[[Array], Any]:
        import treelite

        if read == "checkpoint":
            model = treelite.Model.deserialize(path)
        else:  # XGBoost itself does not read its old format any more
            model = treelite.frontend.load_xgboost_model_legacy_binary(path)
        return lambda rows: treelite.gtil.predict(model, rows)

    return load


_LOADERS = {
    "xgboost": _treelite("legacy"),
    "xgboost_json": _xgboost,
    "xgboost_ubj": _xgboost,
    "lightgbm": _lightgbm,
    "treelite_checkpoint": _treelite("checkpoint"),
}
