"""SageMaker's front end: what ``serve`` refuses, and what the multi-model loader makes of an archive.

Sources: triton server, docker/sagemaker/serve and SageMakerMMELoadModel in src/sagemaker_server.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from constructs_triton.facts.images import image_version
from constructs_triton.findings import Severity
from constructs_triton.model_config.model_under_check import ModelUnderCheck, RepositoryContext
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.spelling import did_you_mean, quoted

__all__: list[str] = []

_SERVE = "triton server docker/sagemaker/serve"
_LOADER = "triton server SageMakerMMELoadModel"
_ENSEMBLE_TEXT = re.compile(r'platform:(\s)*"ensemble"')


def _is_single(context: RepositoryContext) -> bool:
    return context.front_end and context.target.mode == "single"


def _is_multi(context: RepositoryContext) -> bool:
    return context.front_end and context.target.mode == "multi-model"


@rule("sagemaker-config-at-root", "repository", source=_SERVE, hint="move the model into a folder of its own")
def config_at_root(context: RepositoryContext) -> Iterator[Problem]:
    """A single-model archive has no ``config.pbtxt`` at its root.

    The image's start script refuses it, even beside a good model.
    """
    if _is_single(context) and context.root is not None:
        yield Problem("config.pbtxt stands at the root of the repository", path="config.pbtxt")


@rule("sagemaker-no-model", "repository", source=_SERVE, hint="add a folder a model")
def no_model(context: RepositoryContext) -> Iterator[Problem]:
    """The archive holds at least one folder.

    An empty one is refused by both front ends.
    """
    folders = [name for name, is_link in context.directories.items() if not is_link]
    if folders or context.root is not None or not context.front_end:
        return
    if context.directories and context.target.default_model in context.directories:
        return
    got = f", got links {quoted(sorted(context.directories))}" if context.directories else ""
    yield Problem(f"no model folder{got}")


@rule("sagemaker-default-model", "repository", source=_SERVE)
def default_model(context: RepositoryContext) -> Iterator[Problem]:
    """A single-model archive with several folders needs ``SAGEMAKER_TRITON_DEFAULT_MODEL_NAME``.

    Every folder counts, hidden ones and those without a model too; links do not.
    """
    folders = sorted(name for name, is_link in context.directories.items() if not is_link)
    if not _is_single(context) or context.target.default_model is not None or len(folders) < 2:
        return
    ensembles = [name for name, folder in context.folders.items() if folder.is_ensemble]
    hint = f"set the default model, for example {ensembles[0] if ensembles else folders[0]}"
    yield Problem(
        f"no default model is set and there are {len(folders)} folders: {quoted(folders)}", hint=hint
    )


@rule("sagemaker-default-model-absent", "repository", source=_SERVE)
def default_model_absent(context: RepositoryContext) -> Iterator[Problem]:
    """The default model has a folder.

    The image's start script refuses a name without one.
    """
    name = context.target.default_model
    if not _is_single(context) or name is None or name in context.directories:
        return
    hint = did_you_mean(name, context.folders, f"the repository has {quoted(context.folders)}")
    yield Problem(f'no folder for the default model, got "{name}"', hint=hint)


@rule("sagemaker-name-blank", "model", source=_SERVE, hint="rename the folder")
def name_blank(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a served model holds no blanks.

    The image's start script quotes nothing: a blank splits the server's command line.
    """
    if _is_single(model.context) and model.name in model.context.served and re.search(r"\s", model.name):
        yield Problem(f'a blank in the model\'s name, got "{model.name}"', path=model.folder.path)


# --- multi-model archives ---------------------------------------------------------------------------------


@rule("sagemaker-archive-order", "repository", refuses=False, source=_LOADER)
def archive_order(context: RepositoryContext) -> Iterator[Problem]:
    """What a multi-model archive serves does not depend on the order of directories on disk.

    Of several folders the loader takes the last that the file system lists, or the last whose
    ``config.pbtxt`` holds the text ``platform: "ensemble"``. The same archive behaves differently on another
    file system.
    """
    if not _is_multi(context) or context.root is not None:
        return
    for archive in context.archives:
        recognised = [name for name in archive.folders if _reads_as_ensemble(context, name)]
        path = f"{archive.model}/config.pbtxt" if archive.model in context.folders else "."
        if len(recognised) > 1:
            message = f"several folders read as the ensemble to serve: {quoted(recognised)}"
            yield Problem(message, path=path, hint="serve nested ensembles from a single-model endpoint")
        elif len(archive.folders) > 1 and not recognised:
            message = f"no folder reads as the ensemble to serve, of {quoted(archive.folders)}"
            yield Problem(message, path=path, hint=_order_hint(context, archive.model))
        elif recognised and recognised[0] != archive.model and not archive.is_given:
            message = f'the archive of "{archive.model}" serves "{recognised[0]}" instead'
            yield Problem(message, path=path, hint=_order_hint(context, archive.model))


def _order_hint(context: RepositoryContext, name: str) -> str:
    folder = context.folders.get(name)
    if folder is not None and folder.is_ensemble:
        return 'write platform: "ensemble" with double quotes and no blank before the colon'
    return "leave one folder, or add an ensemble that names the others"


def _reads_as_ensemble(context: RepositoryContext, name: str) -> bool:
    folder = context.folders.get(name)
    text = folder.config_text if folder is not None else None
    return bool(text and _ENSEMBLE_TEXT.search(text))


@rule("sagemaker-archive-link", "repository", source=_LOADER, hint="replace the link by the folder")
def archive_link(context: RepositoryContext) -> Iterator[Problem]:
    """The folder that a multi-model archive serves is no symbolic link.

    The loader looks at real directories alone.
    """
    if _is_multi(context) and not context.is_packed:
        for name in context.served:
            if context.directories.get(name):
                yield Problem(f'the model "{name}" is a link', path=name)


_OUT_OF_MEMORY = (
    "CUDA out of memory",
    "CUDA_OUT_OF_MEMORY",
    "Out of memory",
    "Out Of Memory",
    "out of memory",
    "MemoryError",
    "OutOfMemory",
    "OOM",
)


@rule(
    "sagemaker-name-out-of-memory",
    "model",
    severity=Severity.WARNING,
    source="triton server SagemakerAPIServer::CheckOutOfMemory",
    hint="rename the folder",
)
def name_out_of_memory(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a model in a multi-model endpoint does not read as an out-of-memory error.

    The front end looks for phrases such as ``OOM`` in the whole error text, the model's name included, and
    then answers 507, upon which SageMaker unloads other models.
    """
    phrase = next((phrase for phrase in _OUT_OF_MEMORY if phrase in model.name), None)
    if phrase and _is_multi(model.context):
        yield Problem(f'"{phrase}" in the model\'s name turns any error into 507', path=model.folder.path)


# --- what SageMaker cannot serve --------------------------------------------------------------------------


@rule(
    "sagemaker-decoupled",
    "config",
    when=("model_transaction_policy", "ensemble_scheduling"),
    refuses=False,
    source="triton server SagemakerAPIServer::HandleInfer",
)
def decoupled(model: ModelUnderCheck) -> Iterator[Problem]:
    """The served model is not decoupled, and no step of it is.

    ``/invocations`` answers 501 for it, and the multi-model loader 400.
    """
    if _served_decoupled(model) and not _can_stream(model):
        hint = "remove decoupled, or stream from a single-model endpoint with image 25.04 or newer"
        yield Problem(_decoupled_message(model), _decoupled_place(model), hint)


@rule(
    "sagemaker-decoupled-stream",
    when=("model_transaction_policy", "ensemble_scheduling"),
    severity=Severity.WARNING,
    source="triton server docker/sagemaker/serve, SAGEMAKER_TRITON_INFERENCE_TYPE",
    hint="set SAGEMAKER_TRITON_INFERENCE_TYPE to generate_stream",
)
def decoupled_stream(model: ModelUnderCheck) -> Iterator[Problem]:
    """A decoupled model is served with inference type ``generate`` or ``generate_stream``.

    The default, ``infer``, answers 501.
    """
    if _served_decoupled(model) and _can_stream(model):
        yield Problem(_decoupled_message(model), _decoupled_place(model))


def _served_decoupled(model: ModelUnderCheck) -> bool:
    context = model.context
    return context.front_end and model.name in context.served and context.is_decoupled(model.name)


def _can_stream(model: ModelUnderCheck) -> bool:
    version = model.target.image_version
    return _is_single(model.context) and version is not None and image_version(version).has_inference_type


def _decoupled_message(model: ModelUnderCheck) -> str:
    if model.config.model_transaction_policy.decoupled:
        return "a decoupled model cannot answer on SageMaker"
    steps = [name for name in model.folder.step_models if model.context.is_decoupled(name)]
    return f"an ensemble with decoupled steps cannot answer on SageMaker, got {quoted(steps)}"


def _decoupled_place(model: ModelUnderCheck) -> tuple[str | int, ...]:
    is_own = model.config.model_transaction_policy.decoupled
    return ("model_transaction_policy", "decoupled") if is_own else ("ensemble_scheduling",)
