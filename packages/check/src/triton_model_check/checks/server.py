"""How a server is started, on a machine, in a container, on Kubernetes, KServe or Dynamo."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from constructs_triton_core.findings import Severity
from triton_model_check.checks.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.checks.rules import Problem, rule
from triton_model_check.fixes.text_fixes import fix_of_fault
from triton_model_check.model.folder import CONFIGS
from triton_model_check.model_config.target import ALL_MODELS, SERVERS
from triton_model_check.model_config.text import decode, read_text_fault

_OF_CHECKOUTS = {".git", ".github"}
_MOVE_FOLDER = "move the folder out of the repository"
_server_rule = partial(rule, platforms=SERVERS)


@_server_rule(
    "server-stray-folder",
    "repository",
    source=(
        "observed with triton server 2.51: "
        "ModelRepositoryManager::Poll takes each folder for a model"
    ),
    hint=(
        f"{_MOVE_FOLDER}, or start the server with "
        "--model-control-mode=explicit and --load-model for each model"
    ),
    needs_files=True,
)
def stray_folder(context: RepositoryContext) -> Iterator[Problem]:
    """Every folder of the repository is a model, also each hidden one.

    At its start, the server loads all folders as models, also ``docs``, ``..data`` or
    ``lost+found``, and ends if one does not load. Files beside the models do no harm. The rule
    skips a server that loads only the models of ``--load-model``, what packing leaves out, and
    ``.git`` and ``.github``: a checkout has them, and what is deployed from it usually has not.
    """
    if context.is_packed or context.root is not None or not context.folders:
        return  # layout-folder-is-model and layout-no-model report the others
    if ALL_MODELS not in (context.target.load_models or ALL_MODELS):
        return
    # dynamo.triton has no option for the model control mode (its backend_args.py).
    hint = _MOVE_FOLDER if context.target.platform == "dynamo" else None
    for name in sorted(context.others.keys() - _OF_CHECKOUTS):
        message = f'Could not determine backend for model "{name}"'
        if "." in name:  # what follows the dot is the backend
            message = (
                f'at least one version must be available under the version policy of model "{name}"'
            )
        yield Problem(f"{message}: the folder is no model", path=name, hint=hint)


@_server_rule(
    "server-named-config",
    "model",
    severity=Severity.WARNING,
    source=(
        "triton core GetModelConfigFullPath; server src/command_line_parser.cc by release branch"
    ),
    since="24.05",
)
def named_config(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every file ``configs/NAME.pbtxt`` follows the protobuf text format.

    ``--model-config-name NAME`` replaces ``config.pbtxt`` by it, and Triton then rejects the model.
    With this option, the check applies all rules to the files of that name.
    """
    files = model.folder.list(CONFIGS) if model.folder.entries.get(CONFIGS) else {}
    for name, is_folder in sorted(files.items()):
        path = model.folder.relative(CONFIGS, name)
        if is_folder or not name.endswith(".pbtxt") or path == model.folder.config_path:
            continue
        content = model.folder.read(CONFIGS, name)
        fault = None if content is None else read_text_fault(content)[1]
        if fault is not None:
            hint = (
                f"{fault.hint}; then check it with --model-config-name "
                f"{name.removesuffix('.pbtxt')}"
            )
            fix = fix_of_fault(fault, decode(content or b""))
            yield Problem(
                fault.message, path=path, line=fault.line, column=fault.column, hint=hint, fix=fix
            )


@rule(
    "server-version-unreachable",
    severity=Severity.WARNING,
    source='github ai-dynamo/dynamo: page "Triton", known limitations, "Model version selection"',
    hint="remove version_policy, so that only the newest version is loaded",
    platforms=("dynamo",),
    when=("version_policy",),
    needs_files=True,
)
def unreachable_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """NVIDIA Dynamo sends each request to the newest version of a model.

    Its frontend routes by the name of the model alone. Older versions take memory, and only models
    of the same folder that name them can call them.
    """
    newest, *older = model.versions_to_load or ("",)
    if older:
        yield Problem(
            f"loads versions {', '.join(reversed(older))} and {newest}, and requests through "
            f"Dynamo reach only version {newest}",
            ("version_policy",),
        )
