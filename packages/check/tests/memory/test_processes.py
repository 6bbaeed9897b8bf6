"""What the processes of Python models and of the server take, and how many instances there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines import memory, sparse

from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

MIB = 2**20
GPU_0, GPU_1, HOST = "GPU 0", "GPU 1", "the host"
TORCH_ON_GPU = 'import torch\ndevice = "cuda" if torch.cuda.is_available() else "cpu"\n'
OWN_GPU = (
    "import torch\ndef initialize(args):\n  return f\"cuda:{args['model_instance_device_id']}\"\n"
)


def _python(folder: Path, code: str, groups: str = "") -> None:
    (folder / "1").mkdir(parents=True)
    model = "class TritonPythonModel:\n    def execute(self, requests): ...\n"
    (folder / "1" / "model.py").write_text(code + model)
    (folder / "config.pbtxt").write_text(f'backend: "python"\n{groups}')


def _mebibytes(folder: Path, gpus: int = 1, image: str | None = None) -> dict[str, int]:
    """Return the MiB of the models at each place."""
    found: dict[str, int] = {}
    for part in memory(folder, gpus=gpus, image=image).parts:
        if part.model and part.place in (GPU_0, GPU_1, HOST):
            found[part.place] = found.get(part.place, 0) + part.size // MIB
    return found


@pytest.mark.parametrize(
    ("code", "mebibytes"),
    [
        (TORCH_ON_GPU, 368),
        ("from torch import nn\nnet = nn.Linear(1, 1).cuda()\n", 368),
        ('import onnxruntime as rt\nP = ["CUDAExecutionProvider"]\n', 368),
        ("import cupy as cp\nzeros = cp.zeros(3)\n", 368),
        ('import tensorflow as tf\nd = tf.device("/GPU:0")\n', 368),
        ("import torch\nx = torch.zeros(3)\n", None),
        ("import onnxruntime\n", None),
        ("import cupy\n", None),
        (
            "try:\n    import cupy\nexcept ImportError:\n    cupy = None\n"
            "def to_gpu(x):\n    return cupy.asarray(x)\n",
            None,
        ),
        ("import tensorflow as tf\nx = tf.zeros(3)\n", None),
        ('device = "cuda"\n', None),
        ('import os\nos.environ["CUDA_VISIBLE_DEVICES"] = ""\n' + TORCH_ON_GPU, None),
    ],
)
def test_a_process_has_a_context_if_its_code_uses_a_gpu(
    code: str, mebibytes: int | None, tmp_path: Path
) -> None:
    """The import of a framework alone creates no CUDA context."""
    _python(tmp_path / "m", code)
    assert _mebibytes(tmp_path, image="24.10").get(GPU_0) == mebibytes


@pytest.mark.parametrize(
    ("groups", "image", "mebibytes"),
    [
        ("", "24.10", {GPU_0: 368, HOST: 16}),
        ("", "22.08", {GPU_0: 1000, HOST: 16}),
        ("instance_group { count: 3 kind: KIND_GPU }", "24.10", {GPU_0: 1104, HOST: 49}),
        ("instance_group { count: 3 kind: KIND_CPU }", "24.10", {HOST: 49}),
    ],
)
def test_each_instance_is_a_process(
    groups: str, image: str, mebibytes: dict[str, int], tmp_path: Path
) -> None:
    """Each has its own memory of the host, and on a GPU its own context, by release."""
    _python(tmp_path / "m", TORCH_ON_GPU, groups)
    assert _mebibytes(tmp_path, image=image) == mebibytes


@pytest.mark.parametrize(
    ("code", "places"), [(TORCH_ON_GPU, {HOST}), (OWN_GPU, {HOST, GPU_0, GPU_1})]
)
def test_of_several_gpus_the_code_chooses(code: str, places: set[str], tmp_path: Path) -> None:
    """A framework takes GPU 0 unless the code asks for the GPU of its instance."""
    _python(tmp_path / "m", code)
    found = memory(tmp_path, gpus=2)
    used = {part.place for part in found.parts if part.model}
    assert used & {GPU_0, GPU_1, HOST} == places
    named = any("its code does not show on which GPU" in line for line in found.not_counted)
    assert named == (GPU_0 not in places)


@pytest.mark.parametrize(
    ("backend", "image", "groups", "instances"),
    [
        ("onnxruntime", "22.07", "", 2),
        ("onnxruntime", "22.06", "", 1),
        ("onnxruntime", "24.10", "instance_group { kind: KIND_CPU }", 2),
        ("onnxruntime", "24.10", "instance_group { count: 1 kind: KIND_CPU }", 1),
        ("pytorch", "24.10", "", 1),
    ],
)
def test_instances_on_the_cpu_by_default(
    backend: str, image: str, groups: str, instances: int, tmp_path: Path
) -> None:
    """Triton starts two instances of some backends on the CPU since 22.07."""
    name = {"onnxruntime": "model.onnx", "pytorch": "model.pt"}[backend]
    if backend == "onnxruntime":
        _onnx(tmp_path / "m" / "1" / name)
    else:
        sparse(tmp_path / "m" / "1" / name, 1)
    (tmp_path / "m" / "config.pbtxt").write_text(f'backend: "{backend}"\n{groups}')
    assert _mebibytes(tmp_path, gpus=0, image=image) == {HOST: instances * 1024}


def _onnx(path: Path) -> None:
    """Write a model that multiplies with 1 GiB of external data."""
    from onnx import TensorProto, helper

    weights = TensorProto(name="W", data_type=TensorProto.FLOAT, dims=[256 * 1024, 1024])
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="weights.bin")
    x = helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 256 * 1024])
    y = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [1, 1024])
    product = helper.make_node("MatMul", ["X", "W"], ["Y"])
    graph = helper.make_graph([product], "g", [x], [y], [weights])
    sparse(path.parent / "weights.bin", 1)
    opsets = [helper.make_opsetid("", 13)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())


@pytest.mark.parametrize(("gpus", "mebibytes"), [(0, 29), (1, 412)])
def test_a_server_with_a_gpu_has_a_pinned_pool(gpus: int, mebibytes: int, tmp_path: Path) -> None:
    """Without a GPU it is not allocated."""
    _python(tmp_path / "m", "")
    parts = memory(tmp_path, gpus=gpus).parts
    assert [part.size // MIB for part in parts if part.place == HOST and not part.model] == [
        mebibytes
    ]


@pytest.mark.parametrize(
    ("arguments", "gpu_mib", "host_mib"),
    [
        ("", 164, 412),
        ("--pinned-memory-pool-byte-size=0", 164, 156),
        ("--pinned-memory-pool-byte-size 536870912", 164, 668),
        ("--cuda-memory-pool-byte-size=0:0 --log-verbose=1", 100, 412),
        ("--cuda-memory-pool-byte-size=1:0", 164, 412),
        ("--cache-config=local,size=1073741824", 164, 412 + 1024),
        ("--pinned-memory-pool-byte-size=many", 164, 412),
    ],
)
def test_arguments_of_the_server_change_its_pools(
    arguments: str, gpu_mib: int, host_mib: int, tmp_path: Path
) -> None:
    """The pools and the response cache have the sizes that the server is started with."""
    _python(tmp_path / "m", "")
    target = Target.named("sagemaker", gpu_count=1, server_arguments=arguments)
    (found,) = ModelRepository.from_directory(tmp_path).memory(target)
    sizes = dict.fromkeys((GPU_0, HOST), 0)
    for part in found.parts:
        if not part.model:
            sizes[part.place] += part.size // MIB
    assert sizes == {GPU_0: gpu_mib, HOST: host_mib}


def test_a_gpu_of_unknown_size_has_no_limit(tmp_path: Path) -> None:
    """Nothing is too large for it, and the sum is still known."""
    sparse(tmp_path / "m" / "1" / "model.plan", 100)
    (tmp_path / "m" / "config.pbtxt").write_text('backend: "tensorrt"\n')
    found = memory(tmp_path, gpu_mib=None)
    assert GPU_0 not in found.limits
    assert found.exceeded == ()
    assert found.total(GPU_0) > 100 * 1024 * MIB
