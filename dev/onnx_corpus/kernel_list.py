"""Prints the kernels of ONNX Runtime for the CPU as JSON.

It runs in an environment that has ONNX Runtime and nothing of this project.
"""

from __future__ import annotations

import json

from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

if __name__ == "__main__":
    print(
        json.dumps(
            [
                (
                    kernel.domain or "ai.onnx",
                    kernel.op_name,
                    list(kernel.version_range),
                    kernel.type_constraints,
                )
                for kernel in get_all_opkernel_def()
                if kernel.provider == "CPUExecutionProvider"
            ]
        )
    )
