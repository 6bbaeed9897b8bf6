"""Prints how many model directories per second are checked, on one core, with the files in the page
cache.

    python benchmarks/check.py [--models 1000]

The first ratio compares the reader of plain configurations with protobuf's own parser of the text
format.

The second ratio compares what a synth asks of an unchanged repository (its findings, archives and
digests) with and without the reports that an earlier synth has cached. Digests of unchanged files
are cached in both.

The third ratio compares the whole command `triton-model-check` on a new and on an unchanged
repository, by the processor time of its process and of those that it starts.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from google.protobuf import text_format
from onnx import TensorProto, helper

from triton_model_check.model_config.schema import new_model_config, read_plain
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.cached_repository import CachedRepository
from triton_model_check.untrusted.cache_location import CACHE_DIRECTORY_VARIABLE

SETTLING_SECONDS = 2.5  # nothing is cached of files that are younger

PYTHON_MODEL = '''"""A model of the Python backend."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.config = json.loads(args["model_config"])

    def execute(self, requests):
        responses = []
        for request in requests:
            image = pb_utils.get_input_tensor_by_name(request, "image").as_numpy()
            scaled = (image.astype(np.float32) / 255.0 - 0.5) / 0.25
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("pixels", scaled)]))
        return responses
'''
PREPROCESS = """name: "{name}"
backend: "python"
max_batch_size: 8
input [
  {{
    name: "image"
    data_type: TYPE_UINT8
    dims: [ 224, 224, 3 ]
  }}
]
output [
  {{
    name: "pixels"
    data_type: TYPE_FP32
    dims: [ 3, 224, 224 ]
  }}
]
instance_group [ {{ kind: KIND_CPU count: 2 }} ]
"""
CLASSIFIER = """name: "{name}"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [ {{ name: "pixels" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }} ]
output [ {{ name: "scores" data_type: TYPE_FP32 dims: [ 1000 ] }} ]
dynamic_batching {{ max_queue_delay_microseconds: 100 }}
instance_group [ {{ kind: KIND_GPU count: 1 }} ]
"""
ENSEMBLE = """name: "{name}"
platform: "ensemble"
max_batch_size: 8
input [ {{ name: "IMAGE" data_type: TYPE_UINT8 dims: [ 224, 224, 3 ] }} ]
output [ {{ name: "SCORES" data_type: TYPE_FP32 dims: [ 1000 ] }} ]
ensemble_scheduling {{
  step [
    {{
      model_name: "{preprocess}"
      model_version: -1
      input_map {{ key: "image" value: "IMAGE" }}
      output_map {{ key: "pixels" value: "pixels" }}
    }},
    {{
      model_name: "{classifier}"
      model_version: -1
      input_map {{ key: "pixels" value: "pixels" }}
      output_map {{ key: "scores" value: "SCORES" }}
    }}
  ]
}}
"""


def onnx_model() -> bytes:
    """Return a model with the tensors of CLASSIFIER: the mean of each image, 1,000 times."""
    pixels = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, 224, 224])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 1000])
    weights = helper.make_tensor("weights", TensorProto.FLOAT, [1, 1000], [1.0] * 1000)
    nodes = [
        helper.make_node("ReduceMean", ["pixels"], ["mean"], axes=[2, 3], keepdims=0),
        helper.make_node("ReduceMean", ["mean"], ["score"], axes=[1], keepdims=1),
        helper.make_node("MatMul", ["score", "weights"], ["scores"]),
    ]
    graph = helper.make_graph(nodes, "classifier", [pixels], [scores], [weights])
    opsets = [helper.make_opsetid("", 13)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


ONNX_MODEL = onnx_model()
KINDS = {
    "ensemble": (ENSEMBLE, "", b""),
    "preprocess": (PREPROCESS, "model.py", PYTHON_MODEL.encode()),
    "postprocess": (PREPROCESS, "model.py", PYTHON_MODEL.encode()),
    "classifier": (CLASSIFIER, "model.onnx", ONNX_MODEL),
    "detector": (CLASSIFIER, "model.onnx", ONNX_MODEL),
    "segmenter": (CLASSIFIER, "model.onnx", ONNX_MODEL),
    "embedder": (CLASSIFIER, "model.onnx", ONNX_MODEL),
}


def write_repository(directory: Path, models: int) -> list[str]:
    """Write models of which one in seven is an ensemble and two use the Python backend."""
    texts = []
    for number in range(models // len(KINDS)):
        names = {kind: f"{kind}_{number:04}" for kind in KINDS}
        for kind, (template, file, content) in KINDS.items():
            version = directory / names[kind] / "1"
            version.mkdir(parents=True)
            text = template.format(name=names[kind], **names)
            (version.parent / "config.pbtxt").write_text(text, encoding="utf-8")
            texts.append(text)
            if file:
                (version / file).write_bytes(content)
    return texts


def best_of(runs: int, function: Callable[[], object]) -> float:
    """Return the shortest processor time of several runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def parse_all(texts: list[str]) -> None:
    """Run only protobuf's parser."""
    for text in texts:
        text_format.Parse(text, new_model_config())


def read_all(texts: list[str]) -> None:
    """Run only the reader of plain configurations."""
    for text in texts:
        assert read_plain(text) is not None


def check_all(directory: Path, count: int) -> None:
    """Run the whole check, from the folder to the findings, without a cache."""
    report = ModelRepository.from_directory(directory).check()
    assert report.verdict == "loads", report.findings[:3]
    assert count


def synthesize(directory: Path) -> None:
    """What a synth asks of a repository."""
    repository = CachedRepository(ModelRepository.from_directory(directory))
    assert not repository.check(Target("sagemaker-multi-model")).errors
    assert repository.identities.keys() == repository.top_level.keys()


def synthesize_without_reports(directory: Path, cache: Path) -> None:
    """The same, with the digests of files as the only cache."""
    shutil.rmtree(cache / "reports")
    synthesize(directory)


def compare_reports(directory: Path, cache: Path, count: int) -> None:
    """Measure and print the second ratio."""
    os.environ[CACHE_DIRECTORY_VARIABLE] = str(cache)
    time.sleep(SETTLING_SECONDS)
    synthesize(directory)
    without = best_of(3, lambda: synthesize_without_reports(directory, cache))
    cached = best_of(3, lambda: synthesize(directory))
    print(f"  synth             {count / without:8.0f} a second")
    print(
        f"  with its reports  {count / cached:8.0f} a second, {without / cached:.1f} times as fast"
    )


def command_seconds(directory: Path) -> float:
    """Run the command, and return its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "triton_model_check", "check", str(directory)]
    # As installed packages, those of a checkout are compiled once.
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare_commands(directory: Path, cache: Path, count: int) -> None:
    """Measure and print the third ratio."""
    new, unchanged = [], []
    for _ in range(3):
        shutil.rmtree(cache, ignore_errors=True)
        new.append(command_seconds(directory))
        unchanged.append(command_seconds(directory))
    print(f"  command           {min(new):8.2f} s, {count / min(new):.0f} models a second")
    print(
        f"  unchanged         {min(unchanged):8.2f} s, "
        f"{min(new) / min(unchanged):.1f} times as fast"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1001)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "models"
        texts = write_repository(directory, arguments.models)
        check_all(directory, len(texts))
        checking = best_of(3, lambda: check_all(directory, len(texts)))
        parsing = best_of(3, lambda: parse_all(texts))
        reading = best_of(3, lambda: read_all(texts))
        print(f"{len(texts)} model directories, one in seven an ensemble, one core")
        print(f"  check             {len(texts) / checking:8.0f} a second")
        print(f"  protobuf's parser {len(texts) / parsing:8.0f} a second")
        print(
            f"  its reader        {len(texts) / reading:8.0f} a second, "
            f"{parsing / reading:.1f} times as fast"
        )
        compare_reports(directory, Path(folder) / "cache", len(texts))
        compare_commands(directory, Path(folder) / "cache", len(texts))


if __name__ == "__main__":
    main()
