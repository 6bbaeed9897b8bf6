"""The tensors of a plan, as they follow from the ONNX file and the arguments of ``trtexec``.

``trtexec`` keeps the names of inputs and outputs. What it may change is left out: sources are in
``compile_jobs.json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from constructs_triton_tools.building.plans.compile_jobs import data_type_in_plan
from constructs_triton_tools.building.plans.plan_build import PlanBuild
from triton_model_check.model_files.model_file import ModelTensor
from triton_model_check.model_files.plan_manifest import PlanManifest

_FORMATS = ("--inputIOFormats", "--outputIOFormats")


def with_tensors(manifest: PlanManifest, build: PlanBuild) -> PlanManifest:
    """Return the manifest of a plan with its inputs, their profiles, and its outputs."""
    # These arguments lead to other types, and to other orders of values.
    if any(argument.startswith(_FORMATS) for argument in build.arguments):
        return manifest

    tensorrt = manifest.tensorrt or build.image.tensorrt or ""
    file = build.model.described
    inputs = [_tensor(tensor, tensorrt) for tensor in file.inputs if not tensor.is_optional]
    outputs = [_tensor(tensor, tensorrt) for tensor in file.outputs]
    profiles = _profiles(build, inputs)
    return replace(
        manifest,
        inputs=tuple(replace(tensor, profile=profiles.get(tensor.name, ())) for tensor in inputs),
        outputs=tuple(outputs),
    )


def _profiles(
    build: PlanBuild, inputs: Sequence[ModelTensor]
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the smallest, the usual and the largest shape of each input, by its name."""
    profiles: dict[str, tuple[tuple[int, ...], ...]] = {}
    for tensor in inputs:
        # Without a range, the three shapes are the same.
        if tensor.shape is not None:
            profiles[tensor.name] = (tuple(tensor.shape),) * 3
    for shapes in build.ranges:
        profiles[shapes.name] = tuple(zip(*shapes.dims, strict=True))
    return profiles


def _tensor(tensor: ModelTensor, tensorrt: str) -> ModelTensor:
    """Leave out the shape of what may be a shape tensor:
    its profile has values in place of sizes.
    """
    shape = tensor.shape
    is_row = shape is not None and len(shape) == 1 and shape[0] >= 0
    if is_row and tensor.data_type in ("TYPE_INT32", "TYPE_INT64"):
        shape = None
    return ModelTensor(tensor.name, data_type_in_plan(tensor.data_type, tensorrt), shape)
