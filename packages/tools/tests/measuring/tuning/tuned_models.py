"""Model repositories whose best configuration is known by construction.

Locks on files in the repository are the device: they are shared by the processes of all instances.
"""

from __future__ import annotations

from pathlib import Path

#: ``device``: one device, with most of the time for the batch. ``slots``: two slots, with time for
#: each item, and ``short slots`` with less of it. ``threads``: two threads occupy both slots and
#: are hardly faster than one. ``mixing``: as ``device``, but the outputs depend on the other items
#: of the batch.
BODIES = {
    "device": "with self.slots(0, 1):\n            time.sleep(0.040 + 0.0025 * count)",
    "slots": (
        "for _ in range(count):\n"
        "            with self.slots(self.number % 2):\n"
        "                time.sleep(0.020)"
    ),
    "threads": (
        "for _ in range(count):\n"
        '            with self.slots(*([self.number % 2] if self.threads == "1" else [0, 1])):\n'
        '                time.sleep(0.040 if self.threads == "1" else 0.030)'
    ),
    "mixing": (
        "with self.slots(0, 1):\n            time.sleep(0.040 + 0.0025 * count)\n"
        "        arrays = [array - np.concatenate(arrays).mean() for array in arrays]"
    ),
    "quick": "time.sleep(0.001)",
}
BODIES["short slots"] = BODIES["slots"].replace("0.020", "0.005")
_MODEL = """import contextlib, fcntl, json, time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.number = int(args["model_instance_name"].rsplit("_", 1)[-1])
        parameters = json.loads(args["model_config"])["parameters"]
        self.threads = parameters.get("threads", {{"string_value": "2"}})["string_value"]
        self.files = [open("{locks}/slot%d" % number, "a") for number in (0, 1)]

    @contextlib.contextmanager
    def slots(self, *numbers):
        for number in numbers:
            fcntl.flock(self.files[number], fcntl.LOCK_EX)
        try:
            yield
        finally:
            for number in reversed(numbers):
                fcntl.flock(self.files[number], fcntl.LOCK_UN)

    def execute(self, requests):
        arrays = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        count = sum(map(len, arrays))
        {body}
        outputs = [pb_utils.Tensor("Y", (2 * array).astype(np.float32)) for array in arrays]
        return [pb_utils.InferenceResponse([output]) for output in outputs]
"""
_CONFIG = """backend: "python"
max_batch_size: 64
input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
_STEP = """{{ model_name: "{name}" model_version: -1
  input_map {{ key: "X" value: "{source}" }} output_map {{ key: "Y" value: "{target}" }} }}"""


def write_model(repository: Path, kind: str, name: str = "m", *, instances: int = 1) -> None:
    """Write a model of one of the kinds."""
    folder, locks = repository / name / "1", repository.parent / "locks"
    folder.mkdir(parents=True)
    locks.mkdir(exist_ok=True)
    (folder / "model.py").write_text(_MODEL.format(locks=locks.resolve(), body=BODIES[kind]))
    groups = (
        f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]\n" if instances > 1 else ""
    )
    (repository / name / "config.pbtxt").write_text(_CONFIG + groups)


def write_ensemble(repository: Path) -> None:
    """Write an ensemble of three steps, of which the second is slow."""
    names = ("first", "slow", "last")
    tensors = ("X", "a", "b", "Y")
    for name, kind in zip(names, ("quick", "device", "quick"), strict=True):
        write_model(repository, kind, name)
    steps = ",\n".join(
        _STEP.format(name=name, source=source, target=target)
        for name, source, target in zip(names, tensors, tensors[1:], strict=False)
    )
    (repository / "chain" / "1").mkdir(parents=True)
    config = _CONFIG.replace('backend: "python"', 'platform: "ensemble"')
    config += f"ensemble_scheduling {{ step [ {steps} ] }}\n"
    (repository / "chain" / "config.pbtxt").write_text(config)
