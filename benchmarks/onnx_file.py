"""Prints time and memory of describing an ONNX file of 1.9 GB, with its weights inside and beside
it.

    python benchmarks/onnx_file.py [--layers 100] [--without-load]

The limits are 0.2 s and 50 MB. The alternative is `onnx.load`, which reads the weights. Each
measurement runs in its own process, and counts the import of what it needs, as a command does. The
files are sparse: weights that are not read take no space on the disk.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from triton_model_check.model_files.varint import encode_varint

if TYPE_CHECKING:
    import onnx

SIZE = 2_200  # each layer has SIZE * SIZE weights of 4 bytes
WEIGHTS_BYTES = SIZE * SIZE * 4
MODEL_GRAPH, GRAPH_INITIALIZER, TENSOR_RAW_DATA = 7, 5, 9


def field_head(number: int, length: int) -> bytes:
    """Return what comes before the bytes of a length-delimited field."""
    return encode_varint(number << 3 | 2) + encode_varint(length)


def model_without_weights(layers: int) -> onnx.ModelProto:
    """Return a model of many matrix products whose initializers have no data."""
    from onnx import TensorProto, helper  # noqa: PLC0415 - not when describing

    names = [f"x{number}" for number in range(layers + 1)]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(layers)]
    first = helper.make_tensor_value_info(names[0], TensorProto.FLOAT, ["batch", SIZE])
    last = helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, ["batch", SIZE])
    weights = [
        TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[SIZE, SIZE])
        for i in range(layers)
    ]
    graph = helper.make_graph(nodes, "products", [first], [last], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def write_with_weights(path: Path, layers: int) -> None:
    """Write a model whose weights, all zero, are in the file."""
    model = model_without_weights(layers)
    tensors = [each.SerializeToString() for each in model.graph.initializer]
    del model.graph.initializer[:]
    raw_head = field_head(TENSOR_RAW_DATA, WEIGHTS_BYTES)
    heads = []
    for tensor in tensors:
        length = len(tensor) + len(raw_head) + WEIGHTS_BYTES
        heads.append(field_head(GRAPH_INITIALIZER, length) + tensor + raw_head)
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    length = len(graph) + sum(map(len, heads)) + layers * WEIGHTS_BYTES
    with path.open("wb") as file:
        file.write(model.SerializeToString() + field_head(MODEL_GRAPH, length) + graph)
        for head in heads:
            file.write(head)
            file.seek(WEIGHTS_BYTES, 1)
        file.truncate(file.tell())


def write_with_external_data(path: Path, layers: int) -> None:
    """Write a model whose weights, all zero, are in another file."""
    from onnx import TensorProto, external_data_helper  # noqa: PLC0415 - not when describing

    model = model_without_weights(layers)
    for number, tensor in enumerate(model.graph.initializer):
        tensor.raw_data = b"\0"  # a tensor becomes external only if it has data
        offset = number * WEIGHTS_BYTES
        external_data_helper.set_external_data(tensor, f"{path.name}.data", offset, WEIGHTS_BYTES)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
    path.write_bytes(model.SerializeToString())
    with path.with_name(f"{path.name}.data").open("wb") as file:
        file.truncate(layers * WEIGHTS_BYTES)


def peak_megabytes() -> float:
    """Return the most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(action: str, path: Path) -> None:
    """Run one action in this process, and print its seconds and megabytes."""
    before, start = peak_megabytes(), time.perf_counter()
    if action == "describe":
        from triton_model_check.model_files import describe  # noqa: PLC0415 - the clock counts it

        described = describe(path)
        assert not described.faults, described.faults
        assert described.outputs[0].shape == (-1, SIZE)
    else:
        import onnx  # noqa: PLC0415 - the clock counts it

        onnx.load(path)
    print(time.perf_counter() - start, peak_megabytes() - before)


def measured(action: str, path: Path) -> tuple[float, float]:
    """Run one action in a process of its own; return its seconds and megabytes."""
    command = [sys.executable, __file__, "--measure", action, str(path)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, megabytes = map(float, result.stdout.split())
    return seconds, megabytes


def compare(title: str, path: Path, *, with_load: bool) -> None:
    """Print time and memory of both."""
    seconds, megabytes = min(measured("describe", path) for _ in range(3))
    print(f"{title}\n  describe   {seconds:7.3f} s {megabytes:7.0f} MB")
    if with_load:
        load_seconds, load_megabytes = measured("load", path)
        ratio = f"{load_seconds / seconds:.0f} times as long"
        print(f"  onnx.load  {load_seconds:7.3f} s {load_megabytes:7.0f} MB, {ratio}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=100, help="each has 19.4 MB of weights")
    parser.add_argument(
        "--without-load", action="store_true", help="onnx.load needs twice the file's size"
    )
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure[0], Path(arguments.measure[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        inside, beside = Path(folder) / "inside.onnx", Path(folder) / "beside.onnx"
        write_with_weights(inside, arguments.layers)
        write_with_external_data(beside, arguments.layers)
        gigabytes = arguments.layers * WEIGHTS_BYTES / 1e9
        with_load = not arguments.without_load
        compare(f"{gigabytes:.1f} GB of weights in the file", inside, with_load=with_load)
        compare(f"{gigabytes:.1f} GB of weights in another file", beside, with_load=with_load)


if __name__ == "__main__":
    main()
