"""A serialized DALI pipeline on the CPU, in place of Triton's dali backend.

Source: dali_backend, src/dali_model.h and docs. A pipeline with operators for GPUs does not load.
"""

from __future__ import annotations

import os
from typing import Any, Sequence

import numpy as np

from .model_config import integer
from .stand_in import Array, Arrays, StandIn


class TritonPythonModel(StandIn):
    """The class that the Python backend looks for."""

    default_file = "model.dali"

    def load(self, model_file: str) -> None:
        if not os.path.exists(model_file):
            raise ValueError(f"Failed to load model file {model_file}")
        if not (self.config["input"] and self.config["output"]):
            raise ValueError(
                "write the inputs and outputs; the stand-in does not complete those of DALI"
            )
        self._size = max(1, self.config["max_batch_size"])
        self._pipeline = self._open(model_file)
        self._pipeline.build()

    def _open(self, path: str) -> Any:
        from nvidia.dali import pipeline

        threads = integer(self.config, "num_threads") or 1
        with open(path, "rb") as file:
            return pipeline.Pipeline.deserialize(
                serialized_pipeline=file.read(),
                batch_size=self._size,
                num_threads=threads,
                device_id=None,
            )

    def run(self, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        for name, array in inputs.items():
            self._pipeline.feed_input(name, list(array) if self.is_batched else [array])
        names = [tensor["name"] for tensor in self.config["output"]]
        found = dict(zip(names, self._pipeline.run()))
        return {name: self._array(found[name]) for name in outputs}

    def _array(self, samples: Any) -> Array:
        arrays = [np.array(samples[index]) for index in range(len(samples))]
        return np.stack(arrays) if self.is_batched else arrays[0]

    def message(self, error: Exception) -> str:
        return (
            f"{error}\nRun a Python model in its place with --stand-in {self.config['name']}=FOLDER"
        )
