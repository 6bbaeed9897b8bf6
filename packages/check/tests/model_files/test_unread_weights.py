"""Weights are never read, whether they are in the model's file or in another one."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path

import pytest
from check_examples.onnx_models import model, node, tensor
from onnx import TensorProto, external_data_helper

from triton_model_check.model_files import describe, onnx_shapes
from triton_model_check.model_files.varint import encode_varint

LAYERS, SIZE = 100, 2_200
WEIGHTS_BYTES = SIZE * SIZE * 4
MODEL_GRAPH, GRAPH_INITIALIZER, TENSOR_RAW_DATA = 7, 5, 9
MOST_BYTES_OF_A_TENSOR = 2 * 4096  # one block after each jump, in each of two walks
MOST_OTHER_BYTES = 256 << 10


def _model(initializers: list[TensorProto]) -> bytes:
    nodes = [node("MatMul", [f"X{at}", f"W{at}"], [f"X{at + 1}"]) for at in range(LAYERS)]
    values = [tensor("X0", dims=("batch", SIZE))], [tensor(f"X{LAYERS}", dims=("batch", SIZE))]
    return model("", nodes, *values, initializers=initializers)


def _initializers() -> list[TensorProto]:
    return [
        TensorProto(name=f"W{at}", data_type=TensorProto.FLOAT, dims=[SIZE, SIZE])
        for at in range(LAYERS)
    ]


def _head(number: int, length: int) -> bytes:
    return encode_varint(number << 3 | 2) + encode_varint(length)


def _write_inside(path: Path) -> None:
    """Write a model with weights of 1.9 GB, as a sparse file that takes little space on the disk.

    Its graph is in as many parts as it has tensors, which protobuf merges.
    """
    with path.open("wb") as file:
        file.write(_model([]))
        for each in _initializers():
            start = each.SerializeToString() + _head(TENSOR_RAW_DATA, WEIGHTS_BYTES)
            field = _head(GRAPH_INITIALIZER, len(start) + WEIGHTS_BYTES) + start
            file.write(_head(MODEL_GRAPH, len(field) + WEIGHTS_BYTES) + field)
            file.truncate(file.seek(WEIGHTS_BYTES, 1))


def _write_beside(path: Path) -> None:
    """Write a model whose weights of 1.9 GB are in another file."""
    tensors = _initializers()
    for at, each in enumerate(tensors):
        each.raw_data = b"\0"  # a tensor becomes external only if it has data
        external_data_helper.set_external_data(
            each, "weights.bin", at * WEIGHTS_BYTES, WEIGHTS_BYTES
        )
        each.ClearField("raw_data")
        each.data_location = TensorProto.EXTERNAL
    path.write_bytes(_model(tensors))
    with path.with_name("weights.bin").open("wb") as file:
        file.truncate(LAYERS * WEIGHTS_BYTES)


def _bytes_moved(process: int | str = "self") -> int:
    """Return what a process has read and written so far with any system call,
    also with those of C code.
    """
    lines = Path(f"/proc/{process}/io").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("rchar", "wchar")))


def _bytes_of_both() -> int:
    process = onnx_shapes._process()._process
    assert process is not None
    return _bytes_moved() + _bytes_moved(process.pid)


@pytest.mark.parametrize("write", [_write_inside, _write_beside])
def test_weights_are_not_read(
    write: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Describing 1.9 GB reads and passes on at most 8 KiB of each tensor,
    in both processes together.
    """
    path = tmp_path / "model.onnx"
    small = tmp_path / "small.onnx"
    small.write_bytes(model("", [node("Relu", ["X"], ["Y"])], [tensor("X")], [tensor("Y")]))
    describe(small)  # starts the other process, which reads its modules

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("bytes that are read through a map are not counted")

    monkeypatch.setattr(mmap, "mmap", refuse)
    write(path)
    before = _bytes_of_both()
    described = describe(path)
    moved = _bytes_of_both() - before
    assert described.has_inferred_shapes
    assert [each.shape for each in described.outputs] == [(-1, SIZE)]
    assert moved < LAYERS * MOST_BYTES_OF_A_TENSOR + MOST_OTHER_BYTES


def test_read_weights_would_be_counted(tmp_path: Path) -> None:
    """The measure of the test above counts a file that is read as a whole."""
    path = tmp_path / "weights.bin"
    with path.open("wb") as file:
        file.truncate(1 << 20)
    before = _bytes_moved()
    path.read_bytes()
    assert 1 << 20 <= _bytes_moved() - before < (1 << 20) + MOST_OTHER_BYTES
