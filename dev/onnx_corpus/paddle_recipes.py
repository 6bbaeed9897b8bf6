"""Models of Paddle as paddle2onnx writes them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddle2onnx
from paddle import nn


def _layers(is_large: bool) -> Iterator[tuple[str, Any, list[int | None]]]:
    width = 300 if is_large else 6
    yield (
        "dense",
        nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3)),
        [None, width],
    )
    width = 160 if is_large else 4
    images = [nn.Conv2D(3, width, 3, padding=1), nn.BatchNorm2D(width), nn.Hardswish()]
    images += [nn.Conv2DTranspose(width, width, 2, stride=2), nn.Sigmoid()]
    yield "images", nn.Sequential(*images), [None, 3, None, None]


def _even(layer: Any) -> Any:
    for each in layer.parameters():
        size = int(np.prod(each.shape))
        each.set_value((np.arange(size) % 16 / 64 + 0.01).reshape(each.shape).astype(np.float32))
    layer.eval()
    return layer


def _export(layer: Any, shape: list[int | None], opset: int, path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = [paddle.static.InputSpec(shape, "float32", "x")]
        paddle.jit.save(_even(layer), f"{folder}/model", spec)
        described = next(
            path for path in Path(folder).iterdir() if path.suffix in (".json", ".pdmodel")
        )
        paddle2onnx.export(
            str(described), f"{folder}/model.pdiparams", save_file=str(path), opset_version=opset
        )


def main(folder: Path) -> None:
    """Write each model to a folder of its own."""
    for size in ("small", "large"):
        for name, layer, shape in _layers(size == "large"):
            for opset in (11, 14, 17):
                to = folder / f"paddle_{name}_{opset}_{size}"
                to.mkdir(parents=True)
                try:
                    _export(layer, shape, opset, to / "model.onnx")
                except Exception as error:
                    print(f"{to.name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
