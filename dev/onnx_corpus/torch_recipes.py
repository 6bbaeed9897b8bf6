"""Models as torch writes them, with both of its exporters."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

warnings.simplefilter("ignore")
Recipe = tuple[nn.Module, tuple[Tensor, ...], list[dict[int, str]]]
OPSETS_OF_TORCHSCRIPT = (9, 11, 13, 15, 17, 20)
OPSETS_OF_DYNAMO = (18, 20, 21, 23, 24)


def filled(module: nn.Module) -> nn.Module:
    """Set weights that compress well, so that files of real size can be stored."""
    with torch.no_grad():
        for each in (*module.parameters(), *module.buffers()):
            if each.is_floating_point():
                each.copy_((torch.arange(each.numel()) % 16 / 64 + 0.01).reshape(each.shape))
    return module.eval()


class Table(nn.Module):
    """Multiply by a table that forward creates, as for anchors and masks."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        anchors = torch.tensor([float(each) for each in range(self.width)])
        return self.linear(x) * anchors


class Positions(nn.Module):
    """Embed tokens and their positions, which are a list of integers."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.length = length
        self.tokens = nn.Embedding(100, width)
        self.positions = nn.Embedding(length, width)
        self.linear = nn.Linear(width, 2)

    def forward(self, ids: Tensor) -> Tensor:
        positions = torch.tensor(list(range(self.length)), dtype=torch.int64)
        mask = (ids != 0).unsqueeze(-1).float()
        embedded = (self.tokens(ids) + self.positions(positions).unsqueeze(0)) * mask
        return self.linear(embedded.mean(1))


class Shift(nn.Module):
    """Add a list of integers, which inference follows as if it were a shape."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.register_buffer("shift", torch.arange(length))
        self.linear = nn.Linear(length, width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        doubled = self.shift + self.shift
        return self.linear(x), (x.long() + doubled.unsqueeze(0)).float()


class Images(nn.Module):
    """Convolve, normalize, resize and reshape, as detectors do."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.deep = nn.Conv2d(width, width, 3, stride=2, padding=1, groups=1)
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        found = torch.relu(self.norm(self.first(x)))
        deep = nn.functional.interpolate(
            torch.relu(self.deep(found)), scale_factor=2.0, mode="nearest"
        )
        found = nn.functional.pad(self.last(found + deep), (1, 1, 0, 0))
        return found.flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            width, 4, width * 2, batch_first=True, activation="gelu", dropout=0
        )

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.full((16, 16), -1e9).triu(1)
        found: Tensor = self.layer(x, src_mask=mask)
        return found


class Recurrent(nn.Module):
    """A recurrent layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.LSTM(8, width, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layer(x)[0]
        return found[:, -1]


class Branches(nn.Module):
    """Choose between two layers by a value: the operator If,
    with weights that its branches read.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.left = nn.Linear(width, width)
        self.right = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = torch.cond(x.sum() > 0, self.left, self.right, (x,))
        return found


class ScriptedLoop(nn.Module):
    """Loop and choose: the operators Loop, If and those of sequences."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        found = []
        for step in range(int(steps)):
            if step > 2:  # noqa: SIM108 - TorchScript makes the operator If of a statement
                x = self.linear(x)
            else:
                x = x + torch.ones(self.width)
            found.append(x)
        return torch.stack(found, 1)


class FakeQuantized(nn.Module):
    """A layer after training that is aware of quantization: QuantizeLinear and DequantizeLinear."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.register_buffer("scale", torch.full((width,), 0.02))
        self.register_buffer("zero", torch.zeros(width, dtype=torch.int32))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.fake_quantize_per_tensor_affine(x, 0.05, 0, -128, 127)
        weight = torch.fake_quantize_per_channel_affine(
            self.linear.weight, self.scale, self.zero, 0, -128, 127
        )
        return nn.functional.linear(x, weight, self.linear.bias)


def _recipes(is_large: bool) -> dict[str, Recipe]:
    many = 300 if is_large else 6
    batch = [{0: "batch"}]
    wide = 128 if is_large else 8
    return {
        "table": (Table(many), (torch.ones(2, many),), batch),
        "positions": (
            Positions(600 if is_large else 6, 128 if is_large else 4),
            (torch.ones(2, 600 if is_large else 6, dtype=torch.int64),),
            batch,
        ),
        "shift": (Shift(many, many), (torch.ones(2, many),), batch),
        "images": (Images(96 if is_large else 4), (torch.ones(2, 3, 16, 16),), batch),
        "attention": (Attention(wide), (torch.ones(2, 16, wide),), batch),
        "lstm": (Recurrent(160 if is_large else 4), (torch.ones(2, 5, 8),), batch),
        "half": (Table(many * 2).half(), (torch.ones(2, many * 2).half(),), batch),
    }


def _with_torchscript(
    folder: Path, recipe: Recipe, opset: int, script: Callable[[nn.Module], Any] = lambda each: each
) -> None:
    module, inputs, axes = recipe
    names = [f"x{index}" for index in range(len(inputs))]
    torch.onnx.export(
        script(filled(module)),
        inputs,
        folder / "model.onnx",
        input_names=names,
        dynamic_axes=dict(zip(names, axes, strict=False)),
        opset_version=opset,
        dynamo=False,
    )


def _with_dynamo(folder: Path, recipe: Recipe, opset: int, *, is_external: bool = False) -> None:
    module, inputs, axes = recipe
    shapes = tuple({at: torch.export.Dim(name) for at, name in each.items()} for each in axes)
    program = torch.onnx.export(
        filled(module),
        inputs,
        dynamic_shapes=shapes,
        opset_version=opset,
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    program.save(folder / "model.onnx", external_data=is_external)


def _exports(size: str) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Yield what is exported: a name, and a function that writes it to a folder."""
    is_large = size == "large"
    many = 300 if is_large else 6
    for name, recipe in _recipes(is_large).items():
        script_opset = 15 if name == "attention" else 17
        yield (
            f"torchscript_{name}",
            lambda to, r=recipe, o=script_opset: _with_torchscript(to, r, o),
        )
        yield f"dynamo_{name}", lambda to, r=recipe: _with_dynamo(to, r, 20)
    table: Recipe = (Table(many), (torch.ones(2, many),), [{0: "batch"}])
    for opset in OPSETS_OF_TORCHSCRIPT:
        yield f"torchscript_opset_{opset}", lambda to, o=opset: _with_torchscript(to, table, o)
    for opset in OPSETS_OF_DYNAMO:
        yield f"dynamo_opset_{opset}", lambda to, o=opset: _with_dynamo(to, table, o)
    yield "dynamo_external", lambda to: _with_dynamo(to, table, 20, is_external=True)
    loop: Recipe = (ScriptedLoop(many), (torch.ones(2, many), torch.tensor(3)), [{0: "batch"}])
    quantized: Recipe = (FakeQuantized(many), (torch.ones(2, many),), [{0: "batch"}])
    yield "torchscript_fake_quantized", lambda to: _with_torchscript(to, quantized, 17)
    yield "torchscript_loop", lambda to: _with_torchscript(to, loop, 17, torch.jit.script)
    branches: Recipe = (Branches(many), (torch.ones(2, many),), [{0: "batch"}])
    yield "dynamo_if", lambda to: _with_dynamo(to, branches, 20)


def main(folder: Path) -> None:
    """Write each model to a folder of its own."""
    for size in ("small", "large"):
        for name, export in _exports(size):
            to = folder / f"{name}_{size}"
            to.mkdir(parents=True)
            try:
                export(to)
            except Exception as error:
                print(f"{to.name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
