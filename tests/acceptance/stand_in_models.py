"""Writes models with a framework, and what the framework answers. Runs in the environment of the
framework.

python stand_in_models.py FRAMEWORK FOLDER: FOLDER/models is the repository, FOLDER/MODEL.npz the
inputs and the expected outputs of one request.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

RANDOM = np.random.default_rng(7)
BATCHING = "max_batch_size: 16\ndynamic_batching { }\n"


def tensor(side: str, name: str, data_type: str, *dims: int) -> str:
    """One line of ``config.pbtxt``."""
    sizes = ", ".join(str(size) for size in dims)
    return f'{side} [ {{ name: "{name}" data_type: TYPE_{data_type} dims: [ {sizes} ] }} ]\n'


def write(folder: Path, name: str, config: str, values: dict[str, Any]) -> Path:
    """Write the configuration and the expected values; return the version folder."""
    version = folder / "models" / name / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(config)
    np.savez(folder / f"{name}.npz", **values)
    return version


def pytorch(folder: Path) -> None:
    """A traced network, and a script with named arguments in another order
    than the configuration.
    """
    import torch

    torch.manual_seed(1)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten()
    ).eval()
    pixels = RANDOM.random((2, 3, 8, 8), dtype=np.float32)
    with torch.no_grad():
        scores = network(torch.from_numpy(pixels)).numpy()
    config = f'platform: "pytorch_libtorch"\n{BATCHING}instance_group [ {{ kind: KIND_GPU }} ]\n'
    config += tensor("input", "INPUT__0", "FP32", 3, 8, 8) + tensor(
        "output", "OUTPUT__0", "FP32", 144
    )
    version = write(folder, "traced", config, {"in:INPUT__0": pixels, "out:OUTPUT__0": scores})
    torch.jit.trace(network, torch.from_numpy(pixels)).save(str(version / "model.pt"))

    class Difference(torch.nn.Module):
        def forward(
            self, left: torch.Tensor, right: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            return left - right, (left > right).to(torch.int64)

    config = 'backend: "pytorch"\nmax_batch_size: 0\ndefault_model_filename: "difference.pt"\n'
    config += tensor("input", "right", "FP32", -1) + tensor("input", "left", "FP32", -1)
    config += tensor("output", "difference", "FP32", -1) + tensor("output", "greater", "INT64", -1)
    config += 'parameters { key: "INTRA_OP_THREAD_COUNT" value { string_value: "1" } }\n'
    left, right = np.array([5, 1], np.float32), np.array([2, 3], np.float32)
    values = {
        "in:left": left,
        "in:right": right,
        "out:difference": left - right,
        "out:greater": [1, 0],
    }
    version = write(folder, "scripted", config, values)
    torch.jit.script(Difference()).save(str(version / "difference.pt"))


def fil(folder: Path) -> None:
    """Digits by XGBoost, a binary class and a number by LightGBM, and a checkpoint of Treelite."""
    import lightgbm
    import treelite
    import xgboost
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier

    rows, digits = load_digits(return_X_y=True)
    rows, some = rows.astype(np.float32), rows[:5].astype(np.float32)

    def config(model_type: str, outputs: int, **parameters: str) -> str:
        written = f'backend: "fil"\n{BATCHING}'
        written += tensor("input", "input__0", "FP32", 64) + tensor(
            "output", "output__0", "FP32", outputs
        )
        for key, value in {"model_type": model_type, "storage_type": "AUTO", **parameters}.items():
            written += f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        return written

    def values(scores: Any) -> dict[str, Any]:
        return {"in:input__0": some, "out:output__0": np.asarray(scores, np.float32)}

    many = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(rows, digits)
    chosen = {"output_class": "true", "predict_proba": "true", "threshold": "0.5"}
    version = write(
        folder, "digits", config("xgboost_json", 10, **chosen), values(many.predict_proba(some))
    )
    many.save_model(version / "xgboost.json")

    is_odd = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(rows, digits % 2)
    chosen = {"output_class": "true", "predict_proba": "false", "threshold": "0.5"}
    odd = np.asarray(is_odd.predict(some)).reshape(-1, 1)
    version = write(folder, "odd", config("lightgbm", 1, **chosen), values(odd))
    is_odd.booster_.save_model(version / "model.txt")

    value = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1).fit(rows, digits)
    found = np.asarray(value.predict(some)).reshape(-1, 1)
    version = write(folder, "value", config("lightgbm", 1, output_class="false"), values(found))
    value.booster_.save_model(version / "model.txt")

    forest = RandomForestClassifier(n_estimators=5, max_depth=4, random_state=1).fit(rows, digits)
    chosen = {"output_class": "true", "predict_proba": "true", "threshold": "0.5"}
    model = config("treelite_checkpoint", 10, **chosen)
    version = write(folder, "forest", model, values(forest.predict_proba(some)))
    treelite.sklearn.import_model(forest).serialize(version / "checkpoint.tl")


def openvino(folder: Path) -> None:
    """A small network, with a configuration that OpenVINO completes."""
    import openvino

    ops = openvino.opset13
    rows = ops.parameter([-1, 4], np.float32, name="rows")
    rows.output(0).get_tensor().set_names({"rows"})
    product = ops.matmul(
        rows, ops.constant(np.arange(12, dtype=np.float32).reshape(4, 3)), False, False
    )
    scores = ops.relu(product)
    scores.output(0).get_tensor().set_names({"scores"})
    model = openvino.Model([ops.result(scores)], [rows], "small")
    values = RANDOM.random((2, 4), dtype=np.float32)
    expected = openvino.compile_model(model, "CPU")({"rows": values})["scores"]
    version = write(
        folder, "small", 'backend: "openvino"\n', {"in:rows": values, "out:scores": expected}
    )
    openvino.save_model(model, version / "model.xml", compress_to_fp16=False)
    config = f'backend: "openvino"\n{BATCHING}' + tensor("input", "rows", "FP32", 4)
    config += tensor("output", "scores", "FP32", 3)
    config += 'parameters { key: "NUM_STREAMS" value { string_value: "1" } }\n'
    version = write(folder, "batched", config, {"in:rows": values, "out:scores": expected})
    openvino.save_model(model, version / "model.xml", compress_to_fp16=False)


def dali(folder: Path) -> None:
    """A pipeline that scales and transposes images on the CPU."""
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=16, num_threads=1, device_id=None)
    def scaled() -> Any:
        pixels = fn.external_source(name="PIXELS", device="cpu")
        return fn.transpose(fn.cast(pixels, dtype=types.FLOAT) / 255.0, perm=[2, 0, 1])

    pixels = RANDOM.integers(0, 255, (2, 4, 5, 3), dtype=np.uint8)
    expected = (pixels.astype(np.float32) / np.float32(255)).transpose(0, 3, 1, 2)
    config = f'backend: "dali"\n{BATCHING}' + tensor("input", "PIXELS", "UINT8", -1, -1, 3)
    config += tensor("output", "SCALED", "FP32", 3, -1, -1)
    config += 'parameters { key: "num_threads" value { string_value: "1" } }\n'
    version = write(folder, "scaled", config, {"in:PIXELS": pixels, "out:SCALED": expected})
    scaled().serialize(filename=str(version / "model.dali"))


if __name__ == "__main__":
    {"pytorch": pytorch, "fil": fil, "openvino": openvino, "dali": dali}[sys.argv[1]](
        Path(sys.argv[2])
    )
