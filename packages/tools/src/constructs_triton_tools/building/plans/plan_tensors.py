"""The tensors of a plan, as they follow from the ONNX file and the arguments of ``trtexec``.

``trtexec`` keeps the names of inputs and outputs. What it may change is left out: sources are in
``compile_jobs.json``.
"""

from __future__ import annotations

from dataclasses import replace

from constructs_triton_tools.building.plans.compile_jobs import data_type_in_plan
from constructs_triton_tools.building.plans.plan_build import PlanBuild
from triton_model_check.model_files.model_file import ModelTensor
from triton_model_check.model_files.plan_manifest import PlanManifest

_FORMATS = "--inputIOFormats", "--outputIOFormats"


def with_tensors(manifest: PlanManifest, build: PlanBuild) -> PlanManifest:
    """Return the manifest of a plan with its inputs, their profiles, and its outputs."""
    if any(
        each.startswith(_FORMATS) for each in build.arguments
    ):  # other types, and other orders of values
        return manifest
    tensorrt = manifest.tensorrt or build.image.tensorrt or ""
    profiles = {each.name: tuple(zip(*each.dims, strict=True)) for each in build.ranges}
    file = build.model.described
    inputs = [_tensor(each, tensorrt) for each in file.inputs if not each.is_optional]
    static = {
        each.name: (each.shape,) * 3 for each in inputs if each.shape is not None
    }  # one size each
    return replace(
        manifest,
        inputs=tuple(
            replace(each, profile={**static, **profiles}.get(each.name, ())) for each in inputs
        ),
        outputs=tuple(_tensor(each, tensorrt) for each in file.outputs),
    )


def _tensor(tensor: ModelTensor, tensorrt: str) -> ModelTensor:
    """Leave out the shape of what may be a shape tensor:
    its profile has values in place of sizes.
    """
    is_row = tensor.shape is not None and len(tensor.shape) == 1 and tensor.shape[0] >= 0
    shape = None if is_row and tensor.data_type in ("TYPE_INT32", "TYPE_INT64") else tensor.shape
    return ModelTensor(tensor.name, data_type_in_plan(tensor.data_type, tensorrt), shape)
