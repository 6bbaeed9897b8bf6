"""SageMaker's front end: the start script ``serve``, and the loader of multi-model archives.

Sources: triton server, docker/sagemaker/serve and SageMakerMMELoadModel in src/sagemaker_server.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.images import image_version
from triton_model_check.model_config.target import SAGEMAKER

_SERVE = "triton server docker/sagemaker/serve"
_LOADER = "triton server SageMakerMMELoadModel"
_NESTED = "use a single-model endpoint for nested ensembles"
_ENSEMBLE_TEXT = re.compile(r'platform:(\s)*"ensemble"')
_single_rule = partial(rule, platforms=("sagemaker",))
_multi_rule = partial(rule, platforms=("sagemaker-multi-model",))


@_single_rule(
    "sagemaker-config-at-root",
    "repository",
    source=_SERVE,
    hint="move the model into its own folder",
)
def config_at_root(context: RepositoryContext) -> Iterator[Problem]:
    """A single-model archive has no ``config.pbtxt`` at its root.

    The start script of the image rejects it, even if there is also a valid model.
    """
    if context.root is not None:
        message = (
            "Incorrect directory structure: config.pbtxt is at the root, not in a top level folder"
        )
        yield Problem(message, path="config.pbtxt")


@rule(
    "sagemaker-no-model",
    "repository",
    source=_SERVE,
    hint="add a folder for each model",
    platforms=SAGEMAKER,
)
def no_model(context: RepositoryContext) -> Iterator[Problem]:
    """The archive contains at least one folder.

    Both a single-model and a multi-model endpoint reject an empty archive.
    """
    folders = [name for name, is_link in context.directories.items() if not is_link]
    if folders or context.root is not None:
        return
    if context.directories and context.target.default_model in context.directories:
        return
    got = f", got only links {quoted(sorted(context.directories))}" if context.directories else ""
    yield Problem(f"No model found in model repository{got}")


@_single_rule("sagemaker-default-model", "repository", source=_SERVE)
def default_model(context: RepositoryContext) -> Iterator[Problem]:
    """A single-model archive with several folders needs ``SAGEMAKER_TRITON_DEFAULT_MODEL_NAME``.

    Every folder counts, also hidden folders and folders without a model. Links do not count.
    """
    folders = sorted(name for name, is_link in context.directories.items() if not is_link)
    if context.target.default_model is not None or len(folders) < 2:
        return
    models = [name for name in folders if name in context.folders] or folders
    ensembles = [name for name, folder in context.folders.items() if folder.is_ensemble]
    hint = f'set SAGEMAKER_TRITON_DEFAULT_MODEL_NAME, for example to "{(ensembles or models)[0]}"'
    yield Problem(
        f"More than 1 model directory found in model repository: {quoted(folders)}", hint=hint
    )


@_single_rule("sagemaker-default-model-absent", "repository", source=_SERVE)
def default_model_absent(context: RepositoryContext) -> Iterator[Problem]:
    """The default model has a folder.

    The start script of the image rejects a name without a folder.
    """
    name = context.target.default_model
    if name is None or name.rstrip("/") in context.directories:
        return
    hint = did_you_mean(name, context.folders, f"set it to one of {quoted(context.folders)}")
    message = "Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME does not exist"
    yield Problem(f'{message}, got "{name}"', hint=hint)


@_single_rule(
    "sagemaker-name-blank", "model", source=_SERVE, hint="rename the folder without spaces"
)
def name_blank(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a served model contains no spaces.

    The start script of the image does not quote the name, so a space splits the server's command
    line.
    """
    if model.is_served and re.search(r"\s", model.name):
        message = f'the name of the model contains a space, got "{model.name}"'
        yield Problem(message, path=model.folder.path)


# --- multi-model archives -------------------------------------------------------------------------


@_multi_rule(
    "sagemaker-target-model",
    "model",
    rejects=False,
    source="botocore sagemaker-runtime service model: TargetModelHeader",
    hint="rename the folder with ASCII characters",
)
def target_model_characters(model: ModelUnderCheck) -> Iterator[Problem]:
    """A request can name the archive of a served model: its name is of printable ASCII characters.

    SageMaker refuses a ``TargetModel`` with other characters, such as umlauts.
    """
    if model.is_served and re.search(r"[^ -~]", model.name):
        message = "TargetModel has printable ASCII characters only"
        yield Problem(f'{message}, got "{model.name}"', path=model.folder.path)


@_multi_rule("sagemaker-archive-order", "repository", rejects=False, source=_LOADER)
def archive_order(context: RepositoryContext) -> Iterator[Problem]:
    """The model that a multi-model archive serves does not depend on the order of its folders on
    disk.

    Of several folders, the loader serves the last one whose ``config.pbtxt`` contains the text
    ``platform: "ensemble"``, or else the last one that the file system lists. The same archive can
    therefore serve another model on another file system.
    """
    if context.root is not None:
        return
    for archive in context.archives:
        has_callers = not context.calls.keys().isdisjoint(archive.folders)
        if has_callers:
            continue  # python-calls-on-multi-model-endpoint reports it

        ensembles = [name for name in archive.folders if _reads_as_ensemble(context, name)]
        path = f"{archive.model}/config.pbtxt" if archive.model in context.folders else "."
        if len(ensembles) > 1:
            message = (
                "the loader recognizes several folders as the ensemble to serve, "
                f"got {quoted(ensembles)}"
            )
            yield Problem(message, path=path, hint=_NESTED)
        elif len(archive.folders) > 1 and not ensembles:
            message = (
                "the loader recognizes no folder as the ensemble to serve, "
                f"got {quoted(archive.folders)}"
            )
            yield Problem(message, path=path, hint=_order_hint(context, archive.model))
        elif ensembles and ensembles[0] != archive.model and not archive.is_given:
            message = f'the archive of "{archive.model}" would serve "{ensembles[0]}"'
            yield Problem(message, path=path, hint=_NESTED)


def _order_hint(context: RepositoryContext, name: str) -> str:
    folder = context.folders.get(name)
    if folder is not None and folder.is_ensemble:
        return 'write platform: "ensemble" with double quotes and no space before the colon'
    return "keep only one folder, or add an ensemble that uses the other models as steps"


def _reads_as_ensemble(context: RepositoryContext, name: str) -> bool:
    folder = context.folders.get(name)
    text = folder.config_text if folder is not None else None
    return bool(text and _ENSEMBLE_TEXT.search(text))


@_multi_rule(
    "sagemaker-archive-link",
    "repository",
    source=_LOADER,
    hint="replace the link by a copy of the folder",
)
def archive_link(context: RepositoryContext) -> Iterator[Problem]:
    """The folder that a multi-model archive serves is not a symbolic link.

    The loader ignores links.
    """
    if not context.is_packed:
        for name in context.served:
            if context.directories.get(name):
                yield Problem(f'the folder of model "{name}" is a symbolic link', path=name)


_OUT_OF_MEMORY = (
    *(
        "CUDA out of memory",
        "CUDA_OUT_OF_MEMORY",
        "Out of memory",
        "Out Of Memory",
        "out of memory",
    ),
    *("MemoryError", "OutOfMemory", "OOM"),
)


@warning(
    "sagemaker-name-out-of-memory",
    "model",
    source="triton server SagemakerAPIServer::CheckOutOfMemory",
    hint="rename the folder so that it does not contain this text",
    platforms=("sagemaker-multi-model",),
)
def name_out_of_memory(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a model on a multi-model endpoint does not look like an out-of-memory error.

    The front end searches each error message, which includes the name of the model, for text such
    as ``OOM``. If it finds one it returns status 507, and SageMaker unloads other models.
    """
    phrase = next((phrase for phrase in _OUT_OF_MEMORY if phrase in model.name), None)
    if phrase:
        message = (
            f'the name of the model contains "{phrase}", which turns every error into status 507'
        )
        yield Problem(message, path=model.folder.path)


# --- decoupled models --------------------------------------------------------------------------


@rule(
    "sagemaker-decoupled",
    "config",
    when=("model_transaction_policy", "ensemble_scheduling"),
    rejects=False,
    source="triton server SagemakerAPIServer::HandleInfer",
    platforms=SAGEMAKER,
)
def decoupled(model: ModelUnderCheck) -> Iterator[Problem]:
    """The served model is not decoupled, and no step of it is.

    For a decoupled model ``/invocations`` returns status 501, and the loader of a multi-model
    endpoint returns 400.
    """
    if _served_decoupled(model) and not _can_stream(model):
        hint = (
            "remove decoupled, or use a single-model endpoint "
            "with image 25.04 or newer, which can stream"
        )
        yield Problem(_decoupled_message(model), _decoupled_place(model), hint)


@warning(
    "sagemaker-decoupled-stream",
    when=("model_transaction_policy", "ensemble_scheduling"),
    source="triton server docker/sagemaker/serve, SAGEMAKER_TRITON_INFERENCE_TYPE",
    hint="set SAGEMAKER_TRITON_INFERENCE_TYPE=generate_stream, which needs image 25.04 or newer",
    platforms=("sagemaker",),
)
def decoupled_stream(model: ModelUnderCheck) -> Iterator[Problem]:
    """A decoupled model needs the inference type ``generate`` or ``generate_stream``.

    With the default, ``infer``, SageMaker returns status 501.
    """
    is_set = model.target.inference_type in ("generate", "generate_stream")
    if _served_decoupled(model) and _can_stream(model) and not is_set:
        yield Problem(_decoupled_message(model), _decoupled_place(model))


def _served_decoupled(model: ModelUnderCheck) -> bool:
    return model.is_served and model.name in model.context.decoupled


def _can_stream(model: ModelUnderCheck) -> bool:
    version = model.target.image_version
    return model.target.mode == "single" and (
        version is None or image_version(version).has_inference_type
    )


def _decoupled_message(model: ModelUnderCheck) -> str:
    if model.config.model_transaction_policy.decoupled:
        return "a decoupled model cannot respond on SageMaker"
    steps = [name for name in model.folder.step_models if name in model.context.decoupled]
    return f"an ensemble with decoupled steps cannot respond on SageMaker, got {quoted(steps)}"


def _decoupled_place(model: ModelUnderCheck) -> tuple[str | int, ...]:
    is_own = model.config.model_transaction_policy.decoupled
    return ("model_transaction_policy", "decoupled") if is_own else ("ensemble_scheduling",)
