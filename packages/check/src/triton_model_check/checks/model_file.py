"""The model files of the versions to load. Each rule reports the faults of one code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.onnx import dims_problem, type_problems, unexpected
from triton_model_check.checks.onnx_dims import Pair, different, pairs
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.steps import put, unsafe
from triton_model_check.model.backends import fix_of_wrong_backend
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model.misplaced_files import hint_of_misplaced, is_autoserialized
from triton_model_check.model_files.model_file import ModelFile
from triton_model_check.model_files.plan_manifest import PlanManifest, manifest_of, read_manifest

_ONNX_RUNTIME = "ONNX Runtime"
_LOAD = "onnxruntime_backend ModelState::LoadModel"
_PLAN = "NVIDIA TensorRT printPlanVersion"
_INSTANCE = "tensorrt_backend ModelInstanceState"
_BATCH = "tensorrt_backend ModelState::AutoCompleteConfigHelper"
_PLANS_AND_GPUS = "NVIDIA TensorRT developer guide: compatibility of engines"


def _problems(model: ModelUnderCheck, code: str) -> Iterator[Problem]:
    for file in model.model_files:
        for fault in file.faults:
            if fault.code == code:
                path = model.place_of(file.path.parent / (fault.file or file.path.name))
                yield Problem(fault.message, hint=fault.hint, path=path)


@rule("model-file-missing", "file", needs_files=True, source=_LOAD)
def missing(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every loaded version contains its model file, such as ``model.onnx``, or
    ``default_model_filename``.

    Case matters, and a link must lead to a file. ``python-model-file`` checks models of the Python
    backend.
    """
    is_named = model.config is not None and bool(model.config.default_model_filename)
    chosen = {} if model.config is None else dict(model.config.cc_model_filenames)
    capability = model.target.compute_capability
    for problem in _problems(model, "model-file-missing"):
        if chosen and capability is not None and capability not in chosen:
            gpu = f"the {_host(model)}'s GPU ({_gpu(model.target.gpu_model, capability)})"
            hint = f"compile the model for {gpu}, and add its plan to cc_model_filenames"
            yield problem._replace(field=("cc_model_filenames",), path=None, hint=hint)
            continue
        place = (
            problem._replace(field=("default_model_filename",), path=None) if is_named else problem
        )
        if chosen:
            yield place
        else:
            yield place._replace(hint=_elsewhere(model, is_named, problem.hint or ""))


def _elsewhere(model: ModelUnderCheck, is_named: bool, otherwise: str) -> str:
    """Return the hint about an absent file that has another name, or is at another place."""
    folder = model.folder
    versions = [version for version in model.versions_to_load if version.isdigit()]
    for version in versions:
        hint = hint_of_misplaced(folder, model.completed, version)
        if model.backend == "dali":
            hint = _pipeline(folder, version) or hint
        if hint is None and not is_named:
            hint = fix_of_wrong_backend(folder, version, model.backend)
            if hint is not None and hint.startswith('"model.py"'):
                hint = f"{otherwise}; or, since {hint}"
        if hint is not None:
            return hint
    return otherwise


def _pipeline(folder: ModelFolder, version: str) -> str | None:
    """Source: dali_backend README, Autoserialization: dali.py, or default_model_filename."""
    files = [name for name in sorted(folder.list(version)) if name.endswith(".py")]
    found = [name for name in files if is_autoserialized(folder.read(version, name))]
    if len(found) != 1:
        return None
    return f'rename "{found[0]}" to "dali.py", or set default_model_filename: "{found[0]}"'


@rule(
    "model-file-format",
    "file",
    needs_files=True,
    source="openvino, fil, dali and tensorflow backends",
)
def model_file_format(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file has the format that its backend reads: OpenVINO, trees, DALI, SavedModel or
    GraphDef.

    A Git LFS pointer, a web page, a compressed or an empty file is not a model. An OpenVINO model
    needs the ``.bin`` file with its weights, and a SavedModel is a folder with ``saved_model.pb``
    directly in it.
    """
    return _problems(model, "model-file-format")


@rule(
    "onnx-not-a-model",
    "onnxruntime",
    needs_files=True,
    source="onnxruntime_backend ModelState::LoadModel, ONNX Runtime",
)
def onnx_not_a_model(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file is a complete ONNX model.

    A Git LFS pointer, a web page, a compressed file or an incomplete download is not.
    """
    return _problems(model, "onnx-not-a-model")


@rule("onnx-version", "onnxruntime", needs_files=True, source=_ONNX_RUNTIME)
def onnx_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """The ONNX Runtime of the image supports the model's IR version and operator sets.

    An exporter that is newer than the image writes newer versions.
    """
    return _problems(model, "onnx-version")


@rule("onnx-operator", "onnxruntime", needs_files=True, source=_ONNX_RUNTIME)
def onnx_operator(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every operator is built into ONNX Runtime or is a function of the model.

    Other operators need a library, which ``model_operations`` names. Where the model runs on the
    CPU only, the runtime must also implement the operator there, for its types and operator set.
    The ``onnx`` package is needed to check this.
    """
    return _problems(model, "onnx-operator")


@rule("onnx-invalid-graph", "onnxruntime", needs_files=True, source=_ONNX_RUNTIME)
def onnx_invalid_graph(model: ModelUnderCheck) -> Iterator[Problem]:
    """The graph is valid: every name is produced once, and operators accept their inputs.

    The ``onnx`` package is needed to check the types of inputs and the attributes of operators.
    """
    return _problems(model, "onnx-invalid-graph")


@rule(
    "onnx-not-a-tensor",
    "onnxruntime",
    needs_files=True,
    source="onnxruntime_backend InputOutputInfos",
)
def onnx_not_a_tensor(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input and output of the model is a tensor, also those that the configuration omits.

    Converted scikit-learn classifiers return a sequence of maps by default.
    """
    return _problems(model, "onnx-not-a-tensor")


@rule("onnx-external-data", "onnxruntime", needs_files=True, source=_ONNX_RUNTIME)
def onnx_external_data(model: ModelUnderCheck) -> Iterator[Problem]:
    """The files with the weights of a large model exist, and are complete.

    ONNX Runtime looks for them in the folder of the model file. From image 26.02 on, they must not
    be outside that folder.
    """
    return _problems(model, "onnx-external-data")


@rule("plan-not-a-plan", "tensorrt", needs_files=True, source=_PLAN)
def plan_not_a_plan(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file is a TensorRT plan.

    An ONNX model must be converted first, with ``trtexec``.
    """
    return _problems(model, "plan-not-a-plan")


@rule("plan-version", "tensorrt", needs_files=True, source=_PLAN)
def plan_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """The TensorRT that built the plan has the version of the image's TensorRT.

    TensorRT loads plans of other versions only if they were built with ``--versionCompatible``, and
    the server runs with ``--backend-config=tensorrt,version-compatible=true``. The header of a plan
    does not say how it was built: acknowledge ``plan-version`` for such an endpoint.
    """
    for each in _problems(model, "plan-version"):
        yield each._replace(
            hint=(each.hint or "").replace("the endpoint's", f"the {_host(model)}'s")
        )


@rule("plan-gpu", "tensorrt", needs_files=True, source=_PLANS_AND_GPUS)
def plan_gpu(model: ModelUnderCheck) -> Iterator[Problem]:
    """The plan was built on a GPU with the compute capability of the endpoint's GPU.

    ``constructs-triton compile`` writes ``plan.json`` beside a plan; without it the GPU is not
    known. Plans that are built with ``--hardwareCompatibilityLevel`` run on other GPUs.
    """
    try:
        read_manifest(model.folder.directory / manifest_of(_plan(model)))
    except InvalidValueError as error:
        _, _, rest = str(error).partition(": ")
        message, _, hint = rest.partition("; ")
        yield Problem(message, hint=hint, path=model.folder.relative(manifest_of(_plan(model))))
        return
    wanted = model.target.compute_capability
    manifest = _manifest(model)
    if manifest is None or wanted in (None, manifest.compute_capability):
        return
    if any(each.startswith("--hardwareCompatibilityLevel") for each in manifest.arguments):
        return
    yield _gpu_problem(
        model, manifest, f"the {_host(model)} has {_gpu(model.target.gpu_model, wanted)}"
    )


@warning("plan-gpu-model", "tensorrt", needs_files=True, source=_PLANS_AND_GPUS)
def plan_gpu_model(model: ModelUnderCheck) -> Iterator[Problem]:
    """The plan was built on the same type of GPU as the endpoint has.

    An L4 and an L40S have the same compute capability. TensorRT loads the plan of one on the other,
    and warns that it may be slow or fail.
    """
    manifest, target = _manifest(model), model.target
    if manifest is None or target.gpu_model in (None, manifest.gpu_model):
        return
    if manifest.compute_capability == target.compute_capability:
        yield _gpu_problem(
            model, manifest, f"the {_host(model)} has {target.gpu_model}, another model"
        )


def _manifest(model: ModelUnderCheck) -> PlanManifest | None:
    """The manifest of the plan to load; ``None`` without one,
    or if the plan was replaced by another.
    """
    is_known = any(each.has_manifest for each in model.model_files)
    return read_manifest(model.folder.directory / manifest_of(_plan(model))) if is_known else None


def _plan(model: ModelUnderCheck) -> str:
    """The plan that the GPU of the endpoint loads: that of ``cc_model_filenames``,
    or the default one.
    """
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


# --- the tensors of plans, which `constructs-triton compile` writes into plan.json ----------------


def _plans(model: ModelUnderCheck) -> Iterator[tuple[ModelFile, Any]]:
    """Yield the configuration with each plan of known tensors.

    Plans of several GPUs have the same ones.
    """
    known = {(each.inputs, each.outputs): each for each in model.model_files if each.has_manifest}
    return (
        (file, model.config) for file in known.values() if file.inputs and model.config is not None
    )


def _has_batches(pairs: Sequence[Pair]) -> bool:
    """Whether dims leave out the batch dimension.

    Without any dims, the backend assumes that they do.
    """
    known = [
        (each, each.found.shape) for each in pairs if each.dims and each.found.shape is not None
    ]
    return not known or any(
        _is_ragged(each) or len(each.dims) + 1 == len(shape) for each, shape in known
    )


def _is_ragged(pair: Pair) -> bool:
    return pair.field == "input" and pair.tensor.allow_ragged_batch


@rule(
    "plan-tensor",
    "tensorrt",
    needs_files=True,
    source=f"{_INSTANCE}::ValidateIO, InitIOBindingBuffers",
)
def plan_tensor(model: ModelUnderCheck) -> Iterator[Problem]:
    """Inputs and outputs have the names and data types of the plan, and none is left out.

    A side without any tensor is completed by the backend. The tensors of a plan are known if
    ``plan.json`` has them.
    """
    for file, config in _plans(model):
        yield from type_problems(file, config)
        has_others = bool(
            config.batch_input or config.batch_output or config.HasField("sequence_batching")
        )
        for side, tensors in (("input", file.inputs), ("output", file.outputs)):
            listed = {each.name for each in getattr(config, side)}
            wrong = list(unexpected(config, side, [each.name for each in tensors]))
            yield from wrong
            for name in [each.name for each in tensors if each.name not in listed and listed]:
                if not (wrong or has_others):
                    message = f'expected configuration for {side} "{name}"'
                    yield Problem(message, (side,), f'add the {side} "{name}"')


@rule(
    "plan-dims", "tensorrt", needs_files=True, source=f"{_INSTANCE}::InitializeExecuteInputBinding"
)
def plan_dims(model: ModelUnderCheck) -> Iterator[Problem]:
    """The dims of each tensor fit its shape in the plan, and those of inputs the optimization
    profile.

    Shapes and profiles are known if ``plan.json`` has them.
    """
    for file, config in _plans(model):
        found = list(pairs(file, config))
        is_batched = _has_batches(found)
        if config.max_batch_size and not is_batched:
            continue  # plan-max-batch-size reports it
        for pair in found:
            dims = [-1, *pair.dims] if is_batched else pair.dims
            if pair.dims and pair.found.shape is not None and not _is_ragged(pair):
                yield from _dims_problems(pair, dims, pair.found.shape, is_batched)


def _dims_problems(
    pair: Pair, dims: list[int], shape: tuple[int, ...], is_batched: bool
) -> Iterator[Problem]:
    """Yield what is wrong with dims beside the shape and the profile of the plan."""
    if not _agree(dims, shape):
        yield dims_problem(pair, *different(pair, dims, shape, is_batched))
        return

    least, _, most = pair.found.profile or (dims, dims, dims)
    for index, size in enumerate(dims):
        if size == -1 or least[index] <= size <= most[index]:
            continue
        name = pair.tensor.name
        between = f"between {least[index]} and {most[index]}"
        message = (
            f'input "{name}": model expected the shape of dimension {index} to be {between}, '
            f"got {size}"
        )
        hint = f"write -1 or a size {between}, or compile the model again with --input {name}=DIMS"
        yield dims_problem(pair, message, hint)


def _agree(dims: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether two shapes can be the same; -1 is any size."""
    if len(dims) != len(shape):
        return False
    for size, other in zip(dims, shape, strict=True):
        if size != other and -1 not in (size, other):
            return False
    return True


@rule("plan-max-batch-size", "tensorrt", needs_files=True, source=_BATCH)
def plan_max_batch_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """``max_batch_size`` is at most the largest batch of the plan's optimization profile.

    A plan of an ONNX model with a fixed first dimension has one batch size. The profile is known if
    ``plan.json`` has it.
    """
    for file, config in _plans(model):
        size = config.max_batch_size
        is_batched = _has_batches(list(pairs(file, config)))
        allowed = _largest_batch(file) if is_batched else 0
        if allowed is None or size <= allowed:
            continue

        message = (
            f"configuration specified max-batch {size} but "
            f"TensorRT engine only supports max-batch {allowed}"
        )
        is_fixed = not all(tensor.is_batched for tensor in file.inputs if tensor.shape)
        export = "export the model with a batch dimension, and " if is_fixed else ""
        hint = (
            f"set max_batch_size: {allowed}, or {export}"
            f"compile the model again with --max-batch-size {size}"
        )
        if not is_batched:
            hint = "write dims without the batch dimension, or set max_batch_size: 0"
        yield Problem(message, ("max_batch_size",), hint, fix=unsafe(put(str(allowed))))


def _largest_batch(file: ModelFile) -> int | None:
    """Return the largest batch that all inputs of a plan take, or ``None`` if it is not known."""
    batches = []
    for tensor in file.inputs:
        if not tensor.profile:
            continue
        _, _, most = tensor.profile
        if most:
            batches.append(most[0])
    return min(batches, default=None)


@rule(
    "torchscript-not-a-model",
    "pytorch",
    needs_files=True,
    source="pytorch_backend, torch::jit::load",
)
def torchscript_not_a_model(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file is a TorchScript archive, which ``torch.jit.save`` writes.

    The backend cannot load a state_dict, a pickled module or an exported program.
    """
    return _problems(model, "torchscript-not-a-model")


@rule("torchscript-arguments", "pytorch", needs_files=True, source="pytorch_backend ValidateInputs")
def torchscript_arguments(model: ModelUnderCheck) -> Iterator[Problem]:
    """The arguments of ``forward`` are tensors, lists, or one dictionary of tensors.

    The backend cannot pass numbers, optional tensors or tuples, even if they have default values.
    """
    return _problems(model, "torchscript-arguments")
