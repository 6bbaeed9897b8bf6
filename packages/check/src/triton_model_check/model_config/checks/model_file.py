"""The model files of the versions to load. Each rule reports the faults of one code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_config.backends import fix_of_wrong_backend
from triton_model_check.model_config.model_under_check import ModelUnderCheck
from triton_model_check.model_config.rules import Problem, rule, warning
from triton_model_check.model_files.model_file import FaultCode
from triton_model_check.model_files.plan_manifest import PlanManifest, manifest_of, read_manifest

_LOAD = "onnxruntime_backend ModelState::LoadModel"
_RUNTIME = "ONNX Runtime"
_PLAN = "NVIDIA TensorRT printPlanVersion"
_PLANS_AND_GPUS = "NVIDIA TensorRT developer guide: compatibility of engines"


def _problems(model: ModelUnderCheck, code: FaultCode) -> Iterator[Problem]:
    for file in model.model_files:
        for fault in file.faults:
            if fault.code == code:
                path = model.place_of(file.path.parent / (fault.file or file.path.name))
                yield Problem(fault.message, hint=fault.hint, path=path)


@rule("model-file-missing", "model", needs_files=True, source=_LOAD)
def missing(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every loaded version contains its model file, such as ``model.onnx``, or ``default_model_filename``.

    Case matters, and a link must lead to a file. ``python-model-file`` checks models of the Python backend.
    """
    is_named = model.config is not None and bool(model.config.default_model_filename)
    chosen = {} if model.config is None else dict(model.config.cc_model_filenames)
    capability = model.target.compute_capability
    for problem in _problems(model, "model-file-missing"):
        if chosen and capability is not None and capability not in chosen:
            gpu = f"the {_host(model)}'s GPU ({_gpu(model.target.gpu_model, capability)})"
            hint = f"compile the model for {gpu}, and add its plan to cc_model_filenames"
            yield problem._replace(field=("cc_model_filenames",), path=None, hint=hint)
        elif not is_named and (fix := _of_another_backend(model)):
            yield problem._replace(hint=fix)
        else:
            yield problem._replace(field=("default_model_filename",), path=None) if is_named else problem


def _of_another_backend(model: ModelUnderCheck) -> str | None:
    versions = (fix_of_wrong_backend(model.folder, each, model.backend) for each in model.versions_to_load)
    return next(filter(None, versions), None)


@rule("model-file-format", "model", needs_files=True, source="openvino, fil, dali and tensorflow backends")
def wrong_format(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file has the format that its backend reads: OpenVINO, trees, DALI, SavedModel or GraphDef.

    A Git LFS pointer, a web page, a compressed or an empty file is not a model. An OpenVINO model needs the
    ``.bin`` file with its weights, and a SavedModel is a folder with ``saved_model.pb`` directly in it.
    """
    yield from _problems(model, "model-file-format")


@rule("onnx-not-a-model", "onnxruntime", needs_files=True, source=f"{_LOAD}, {_RUNTIME}")
def not_a_model(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file is a complete ONNX model.

    A Git LFS pointer, a web page, a compressed file or an incomplete download is not.
    """
    yield from _problems(model, "onnx-not-a-model")


@rule("onnx-version", "onnxruntime", needs_files=True, source=_RUNTIME)
def version(model: ModelUnderCheck) -> Iterator[Problem]:
    """The ONNX Runtime of the image supports the model's IR version and operator sets.

    An exporter that is newer than the image writes newer versions.
    """
    yield from _problems(model, "onnx-version")


@rule("onnx-operator", "onnxruntime", needs_files=True, source=_RUNTIME)
def operator(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every operator is built into ONNX Runtime or is a function of the model.

    Other operators need a library, which ``model_operations`` names. Where the model runs on the CPU only,
    the runtime must also implement the operator there, for its types and operator set. The ``onnx`` package
    is needed to check this.
    """
    yield from _problems(model, "onnx-operator")


@rule("onnx-invalid-graph", "onnxruntime", needs_files=True, source=_RUNTIME)
def invalid_graph(model: ModelUnderCheck) -> Iterator[Problem]:
    """The graph is valid: every name is produced once, and operators accept their inputs.

    The ``onnx`` package is needed to check the types of inputs and the attributes of operators.
    """
    yield from _problems(model, "onnx-invalid-graph")


@rule("onnx-not-a-tensor", "onnxruntime", needs_files=True, source="onnxruntime_backend InputOutputInfos")
def not_a_tensor(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input and output of the model is a tensor, also those that the configuration omits.

    Converted scikit-learn classifiers return a sequence of maps by default.
    """
    yield from _problems(model, "onnx-not-a-tensor")


@rule("onnx-external-data", "onnxruntime", needs_files=True, source=_RUNTIME)
def external_data(model: ModelUnderCheck) -> Iterator[Problem]:
    """The files with the weights of a large model exist, and are complete.

    ONNX Runtime looks for them in the folder of the model file. From image 26.02 on, they must not be outside
    that folder.
    """
    yield from _problems(model, "onnx-external-data")


@rule("plan-not-a-plan", "tensorrt", needs_files=True, source=_PLAN)
def not_a_plan(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file is a TensorRT plan.

    An ONNX model must be converted first, with ``trtexec``.
    """
    yield from _problems(model, "plan-not-a-plan")


@rule("plan-version", "tensorrt", needs_files=True, source=_PLAN)
def plan_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """The TensorRT that built the plan has the version of the image's TensorRT.

    TensorRT loads plans of other versions only if they were built with ``--versionCompatible``, and the
    server runs with ``--backend-config=tensorrt,version-compatible=true``. The header of a plan does not say
    how it was built: acknowledge ``plan-version`` for such an endpoint.
    """
    for each in _problems(model, "plan-version"):
        yield each._replace(hint=(each.hint or "").replace("the endpoint's", f"the {_host(model)}'s"))


@rule("plan-gpu", "tensorrt", needs_files=True, source=_PLANS_AND_GPUS)
def plan_gpu(model: ModelUnderCheck) -> Iterator[Problem]:
    """The plan was built on a GPU with the compute capability of the endpoint's GPU.

    ``constructs-triton compile`` writes ``plan.json`` beside a plan; without it the GPU is not known. Plans
    that are built with ``--hardwareCompatibilityLevel`` run on other GPUs.
    """
    try:
        manifest = _manifest(model)
    except InvalidValueError as error:
        _, _, rest = str(error).partition(": ")
        message, _, hint = rest.partition("; ")
        yield Problem(message, hint=hint, path=model.folder.relative(manifest_of(_plan(model))))
        return
    wanted = model.target.compute_capability
    if manifest is None or wanted in (None, manifest.compute_capability):
        return
    if any(each.startswith("--hardwareCompatibilityLevel") for each in manifest.arguments):
        return
    yield _gpu_problem(model, manifest, f"the {_host(model)} has {_gpu(model.target.gpu_model, wanted)}")


@warning("plan-gpu-model", "tensorrt", needs_files=True, source=_PLANS_AND_GPUS)
def plan_gpu_model(model: ModelUnderCheck) -> Iterator[Problem]:
    """The plan was built on the same type of GPU as the endpoint has.

    An L4 and an L40S have the same compute capability. TensorRT loads the plan of one on the other, and warns
    that it may be slow or fail.
    """
    with suppress(InvalidValueError):  # plan-gpu reports it
        manifest, target = _manifest(model), model.target
        if manifest is None or target.gpu_model is None or target.compute_capability is None:
            return
        if (
            manifest.gpu_model != target.gpu_model
            and manifest.compute_capability == target.compute_capability
        ):
            yield _gpu_problem(model, manifest, f"the {_host(model)} has {target.gpu_model}, another model")


def _manifest(model: ModelUnderCheck) -> PlanManifest | None:
    """The manifest of the plan to load; ``None`` without one, or if the plan was replaced by another."""
    plan = _plan(model)
    manifest = read_manifest(model.folder.directory / manifest_of(plan))
    if manifest is None:
        return None
    sizes = {model.folder.size_of(version, plan) for version in model.versions_to_load}
    return manifest if manifest.plan_bytes in sizes else None


def _plan(model: ModelUnderCheck) -> str:
    """The plan that the GPU of the endpoint loads: that of ``cc_model_filenames``, or the default one."""
    by_capability = {} if model.config is None else dict(model.config.cc_model_filenames)
    return str(by_capability.get(model.target.compute_capability, "model.plan"))


def _gpu_problem(model: ModelUnderCheck, manifest: PlanManifest, found: str) -> Problem:
    built = _gpu(manifest.gpu_model, manifest.compute_capability)
    return Problem(
        f"the plan was built for {built}, but {found}",
        hint=f"compile it again with --instance-type and the type of the {_host(model)}",
        path=model.folder.relative(manifest_of(_plan(model))),
    )


def _host(model: ModelUnderCheck) -> str:
    return "endpoint" if model.target.is_sagemaker else "machine"


def _gpu(gpu_model: str | None, compute_capability: str) -> str:
    return f"{gpu_model or 'a GPU'} (compute capability {compute_capability})"


@rule("torchscript-not-a-model", "pytorch", needs_files=True, source="pytorch_backend, torch::jit::load")
def not_torchscript(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file is a TorchScript archive, which ``torch.jit.save`` writes.

    The backend cannot load a state_dict, a pickled module or an exported program.
    """
    yield from _problems(model, "torchscript-not-a-model")


@rule("torchscript-arguments", "pytorch", needs_files=True, source="pytorch_backend ValidateInputs")
def torchscript_arguments(model: ModelUnderCheck) -> Iterator[Problem]:
    """The arguments of ``forward`` are tensors, lists, or one dictionary of tensors.

    The backend cannot pass numbers, optional tensors or tuples, even if they have default values.
    """
    yield from _problems(model, "torchscript-arguments")
