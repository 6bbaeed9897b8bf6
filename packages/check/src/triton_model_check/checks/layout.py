"""Folders of a repository: models, version directories and their content."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.spelling import quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.steps import Remedy, put, remove, string, unsafe
from triton_model_check.model.folder import CONFIG_FILE, ModelFolder
from triton_model_check.model.misplaced_files import hint_of_misplaced, hint_of_root
from triton_model_check.model_config.target import COMPLETES_SINCE

_VERSIONS = "triton core VersionsToLoad"
_PARENT_OF_STORAGE = (
    "pass its parent folder, and let storageUri of the InferenceService name that folder"
)
_NONE_AVAILABLE = "at least one version must be available under the version policy"


@rule(
    "layout-no-model",
    "repository",
    rejects=False,
    source="triton server docker/sagemaker/serve: models are loaded by name",
    hint=(
        "use the folder that contains the folders of the models, "
        "each with config.pbtxt or a folder 1"
    ),
)
def no_model(context: RepositoryContext) -> Iterator[Problem]:
    """The repository contains at least one model.

    Triton starts with an empty repository, but has no model to serve; with other folders, it ends.
    Often the path is one folder above or below the right one.
    """
    if context.folders or context.root is not None or _is_model_itself(context):
        return
    folders = [name for name, is_link in context.directories.items() if not is_link]
    if context.target.is_sagemaker and not folders:
        return

    hint = None
    for name, folder in sorted(context.others.items()):
        if not name.startswith(".") and folder.inner_models:
            hint = _inner_hint(folder)
            break
    if hint is None and context.root_files:
        hint = _of_root_files(context)
    message = f"contains no model, got {_few(sorted(context.directories))}"
    yield Problem(message, hint=hint, rejects=_stops_the_server(context))


def _of_root_files(context: RepositoryContext) -> str | None:
    """Return the hint for a bare model file in the place of a repository."""
    moved = hint_of_root(context.root_files)
    if moved is None or context.target.platform != "kserve":
        return moved
    return f"{moved}; storageUri of the InferenceService names the folder above it"


def _inner_hint(folder: ModelFolder) -> str:
    """Return a hint for a path that is one folder too high."""
    return (
        f'use the folder "{folder.name}" as the repository: it contains '
        f"{_few(list(folder.inner_models))}"
    )


@rule(
    "layout-folder-is-model",
    "repository",
    rejects=False,
    source="triton server docs/user_guide/model_repository.md: Repository Layout",
    hint="pass its parent folder",
)
def folder_is_model(context: RepositoryContext) -> Iterator[Problem]:
    """The folder contains models and is not itself a model.

    A folder with ``config.pbtxt`` or with version folders alone is a model. Triton would look for
    models in its version folders. The content of one multi-model archive may be a model.
    """
    if _is_model_itself(context):
        hint = _PARENT_OF_STORAGE if context.target.platform == "kserve" else None
        yield Problem(
            "this folder is itself a model", hint=hint, rejects=_stops_the_server(context)
        )


def _stops_the_server(context: RepositoryContext) -> bool:
    """Whether a server without SageMaker's front end takes folders for models that do not load."""
    return bool(context.directories) and not context.target.is_sagemaker


def _is_model_itself(context: RepositoryContext) -> bool:
    if context.target.is_sagemaker or context.is_archive:
        return False
    return context.root is not None or _has_only_versions(context)


def _has_only_versions(context: RepositoryContext) -> bool:
    # A model called "1" has a configuration or version folders, which a version folder has not.
    folders = context.folders.values()
    has_model = any(folder.has_config or folder.version_directories for folder in folders)
    return (
        bool(context.directories) and all(map(str.isdecimal, context.directories)) and not has_model
    )


def _few(names: list[str], most: int = 4) -> str:
    if not names:
        return "no folders"
    if len(names) <= most:
        return f"the folders {quoted(names)}"
    return f"the folders {', '.join(names[:most])} and {len(names) - most} more"


@rule(
    "layout-no-version",
    "model",
    source=_VERSIONS,
    hint="create a folder 1 in the model's folder, and move the model files into it",
    needs_files=True,
)
def no_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model has at least one version directory; for an ensemble it may be empty.

    Git does not store empty folders, so most ensembles in public repositories have none. Packing
    creates it again. The rule reports an ensemble only if the folder is used without packing.
    """
    folder = model.folder
    if folder.version_directories or (folder.is_ensemble and model.context.is_packed):
        return
    hint = (
        "create a folder 1 in it, with an empty file .keep for git" if folder.is_ensemble else None
    )
    if "1" in folder.entries:
        message = "at least one version must be available: 1 is a file, not a folder"
        yield Problem(message, path=folder.relative("1"), hint=hint)
    else:
        folders = [name for name, is_directory in folder.entries.items() if is_directory]
        got = f", got folders {quoted(sorted(folders))}" if folders else ""
        hint = (
            _inner_hint(folder)
            if folder.inner_models
            else hint or hint_of_misplaced(folder, model.completed)
        )
        message = f"at least one version must be available: no version directory{got}"
        yield Problem(message, path=folder.path, hint=hint)


@rule(
    "layout-no-version-chosen",
    source=_VERSIONS,
    hint="write the number of an existing version directory, or use latest",
    needs_files=True,
)
def no_version_chosen(model: ModelUnderCheck) -> Iterator[Problem]:
    """The version policy selects at least one existing version.

    ``specific`` ignores versions that do not exist. ``latest`` without ``num_versions`` selects
    none.
    """
    if model.versions_to_load or not model.folder.version_directories:
        return
    policy = model.config.version_policy
    existing = quoted(sorted(model.folder.version_directories))
    if policy.WhichOneof("policy_choice") == "latest":
        message = f"{_NONE_AVAILABLE}: latest selects 0 versions"
        one = unsafe(put("1", "latest", "num_versions"))
        yield Problem(message, ("version_policy",), "set num_versions: 1", fix=one)
    else:
        wanted = ", ".join(str(version) for version in policy.specific.versions) or "none"
        message = f"{_NONE_AVAILABLE}: it selects {wanted}, got version directories {existing}"
        versions = list(model.folder.versions)
        fix = unsafe(put(f"{versions}", "versions")) if len(versions) == 1 else None
        yield Problem(message, ("version_policy", "specific"), fix=fix)


@warning(
    "layout-version-absent",
    when=("version_policy",),
    source=_VERSIONS,
    hint="remove the version from version_policy, or add its folder",
    needs_files=True,
)
def version_absent(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every version of a ``specific`` version policy exists.

    Triton logs an error for a version that does not exist, and loads the others.
    """
    if (
        not model.versions_to_load
        or model.config.version_policy.WhichOneof("policy_choice") != "specific"
    ):
        return
    existing = set(model.folder.version_directories.values())
    for index, version in enumerate(model.config.version_policy.specific.versions):
        if version not in existing:
            place = ("version_policy", "specific", "versions", index)
            message = f"version {version} is specified for the version policy but has no folder"
            yield Problem(message, place, fix=unsafe(remove()))


@rule(
    "layout-version-name",
    "model",
    source=_VERSIONS,
    hint="rename the folder to a number such as 1",
    needs_files=True,
)
def version_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a version directory is a number of at most 64 bits.

    Triton reads the number at the start of the name: ``1abc`` counts as version 1. It then looks
    for the folder ``1`` and does not find it. The same happens with a negative number. The Python
    backend hangs in both cases. A number of more than 64 bits stops the server. The rule skips
    ensembles, which have no files in their version directories.
    """
    loaded = () if model.folder.is_ensemble else model.versions_to_load
    for name, number in sorted(model.folder.version_directories.items()):
        path = model.folder.relative(name)
        if number is None:
            yield Problem(
                f"version {name} has more than 64 bits, which stops the server", path=path
            )
        elif name in loaded and (name != str(number) or number < 0):
            message = f'folder "{name}" counts as version {number}, but Triton looks for "{number}"'
            yield Problem(message, path=path)


@warning(
    "layout-version-skipped",
    "model",
    source=_VERSIONS,
    hint="rename the folder without leading zeros, or remove it",
    needs_files=True,
)
def version_skipped(model: ModelUnderCheck) -> Iterator[Problem]:
    """A version directory has no leading zeros.

    Triton ignores a folder such as ``01``, and only writes a line to its log.
    """
    for name, is_directory in sorted(model.folder.entries.items()):
        if is_directory and len(name) > 1 and name[0] == "0" and name.isdigit():
            message = f'version directory "{name}" is ignored because of its leading zero'
            yield Problem(message, path=model.folder.relative(name))


@warning(
    "layout-config-in-version",
    "model",
    source="triton core GetModelConfig; run with triton server 2.51",
    needs_files=True,
)
def config_in_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """No version directory contains a ``config.pbtxt`` that Triton would ignore.

    Triton reads the configuration only from the model's folder, or from its folder ``configs``. The
    rule skips a copy of the same content, and Python models without a configuration, of which
    ``python-no-tensors`` says the same.
    """
    folder = model.folder
    if not folder.has_config and model.backend == "python":
        return
    for name in sorted(folder.version_directories):
        content = (
            folder.read(name, CONFIG_FILE) if folder.list(name).get(CONFIG_FILE) is False else None
        )
        if content is None or content.split() == (folder.config_text or "").encode().split():
            continue
        message = f'Triton ignores {CONFIG_FILE} in the version directory "{name}"'
        hint = f"move {name}/{CONFIG_FILE} to the model's folder"
        if folder.has_config:
            hint = f"move what you need of it into the {CONFIG_FILE} of the model, and remove it"
        yield Problem(message, path=folder.relative(name, CONFIG_FILE), hint=hint)


@rule(
    "layout-config-is-folder",
    "model",
    source="triton core GetModelConfig",
    hint="replace the folder by a file, or remove it",
)
def config_is_folder(model: ModelUnderCheck) -> Iterator[Problem]:
    """``config.pbtxt`` is a file.

    A folder of that name stops the server.
    """
    if model.folder.entries.get("config.pbtxt"):
        yield Problem("config.pbtxt is a folder", path=model.folder.config_path)


@rule(
    "layout-config-unreadable",
    "model",
    source="triton core ReadTextProto",
    hint="give read permission, or replace the broken link by the file",
)
def config_unreadable(model: ModelUnderCheck) -> Iterator[Problem]:
    """``config.pbtxt`` can be read.

    Triton fails at a broken link or at missing permissions.
    """
    folder = model.folder
    is_file = folder.entries.get(folder.config_parts[0]) is False or len(folder.config_parts) > 1
    if not is_file or "config.pbtxt" in folder.special_files:
        return
    if folder.config_text is None and folder.config_fault is None:
        yield Problem("failed to open text file for read", path=folder.config_path)


@rule(
    "layout-special-file",
    "model",
    rejects=False,
    source="POSIX open(): a named pipe waits for a writer, a device may never end",
    hint="replace it by a file, or remove it",
)
def special_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """``config.pbtxt`` and the files in version directories are not named pipes, devices or
    sockets.

    The server would wait for them forever, and no archive can contain them.
    """
    for path, what in sorted(model.folder.special_files.items()):
        yield Problem(f"{path} is {what}", path=model.folder.relative(path))


@rule("layout-name-differs", when=("name",), source="triton core InitializeModelInfo")
def name_differs(model: ModelUnderCheck) -> Iterator[Problem]:
    """``name`` is left out, or equals the name of the folder, including case.

    The rule skips models that a multi-model endpoint serves by the name of the archive: SageMaker's
    front end overwrites their ``name``. It does not skip the steps of an ensemble.
    """
    if has_another_name(model):
        name = model.config.name
        hint = f'write name: "{model.name}", or remove name'
        steps = {step for folder in model.context.folders.values() for step in folder.step_models}
        called = {name for calls in model.context.calls.values() for name in calls.models}
        fix: Remedy | None = unsafe(put(string(model.name)))
        if "${" in name:
            hint, fix = "check the file that your script generates from this template", None
        elif " " in model.name and " " not in name:
            # SageMaker takes no spaces, so the folder is what must change.
            hint, fix = f'rename the folder to "{name}", or remove name', None
        elif model.name not in steps | called:
            hint = f'write name: "{model.name}", remove name, or rename the folder'
        message = f'unexpected directory name "{model.name}" for model "{name}"'
        yield Problem(f"{message}, directory name must equal model name", ("name",), hint, fix=fix)


def has_another_name(model: ModelUnderCheck) -> bool:
    """Whether Triton compares ``name`` with the name of the folder, and they differ."""
    mapped = model.target.mode == "multi-model" and model.is_served
    name = model.config.name
    return bool(name) and name != model.name and not mapped and model.folder.path != "."


@rule(
    "layout-config-absent",
    "model",
    source="triton server, strict_model_config in src/main.cc of r22.06 and r22.07",
    hint=(
        "write config.pbtxt, for example with `triton-model-check model new`, or use image "
        f"{COMPLETES_SINCE} or newer"
    ),
    server_hint=(
        "write config.pbtxt, for example with `triton-model-check model new`, use image "
        f"{COMPLETES_SINCE} or newer, or start the server with --strict-model-config=false and "
        "ignore this"
    ),
    before=COMPLETES_SINCE,
)
def config_absent(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model for an image before 22.07 has a ``config.pbtxt``.

    From 22.07 on the server completes configurations from models by default. Before, it does so
    only with ``--strict-model-config=false``. Other rules report what an incomplete
    ``config.pbtxt`` lacks.
    """
    if model.target.completes_configs is False and not model.folder.has_config:
        yield Problem("failed to open text file for read: config.pbtxt does not exist")
