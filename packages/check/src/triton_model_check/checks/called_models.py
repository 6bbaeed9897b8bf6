"""Models to which Python models send requests."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.spelling import closest, did_you_mean
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.steps import string_meant
from triton_model_check.model_config.target import SAGEMAKER, SERVERS

_README = 'triton python_backend README, "Business Logic Scripting"'


@rule("python-called-model", "calls", rejects=False, source=_README, needs_files=True)
def called_model(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every model to which a Python model sends requests is in the repository.

    The model loads without it, but its requests fail. The rule reads the name of the model from
    ``InferenceRequest(model_name="...")``, and from ``calls`` of ``triton-models.toml`` or of the
    repository. It skips requests that the source only creates, and on a server, which may have
    another repository with the model, all requests.
    """
    calls = model.context.calls[model.name]
    for name in _absent_models(model):
        may_succeed = name not in calls.sent or _may_be_elsewhere(model)
        if name in calls.sites and may_succeed:
            continue  # calls_not_checked lists it
        others = [each for each in model.context.folders if each != model.name]
        site = calls.sites.get(name)
        where = "calls" if site is not None else "is declared in calls to call"
        otherwise = "add its folder beside the folder of this model"
        hint = did_you_mean(name, others, otherwise, used=others)
        message = f'{where} "{name}", which the repository does not contain'
        used = model.context.used_as_parts
        fix = string_meant(name, hint, site.line, used=used) if site else None
        yield Problem(message, path=site and site.path, line=site and site.line, hint=hint, fix=fix)


@warning(
    "python-called-model-elsewhere", "calls", source=_README, needs_files=True, platforms=SERVERS
)
def called_model_elsewhere(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a called model is not similar to that of a model in the folder.

    A server may have several model repositories, so a called model may be in another one. Such a
    model is listed as not checked. A similar name may be a spelling mistake.
    """
    calls = model.context.calls[model.name]
    for name in _absent_models(model):
        site = calls.sites.get(name)
        similar = closest(name, [each for each in model.context.folders if each != model.name])
        if site is not None and similar is not None:
            message = f'calls "{name}", which this folder does not contain'
            hint = (
                f'write "{similar}" if you mean that model; '
                "ignore this if another repository of the server has the model"
            )
            yield Problem(message, path=site.path, line=site.line, hint=hint)


def _absent_models(model: ModelUnderCheck) -> list[str]:
    calls = model.context.calls[model.name]
    return [name for name in calls.models if name not in model.context.folders]


def _may_be_elsewhere(model: ModelUnderCheck) -> bool:
    """Whether the server may have another repository; packed models have their own only."""
    return not model.target.is_sagemaker and not model.context.is_packed


def calls_not_checked(model: ModelUnderCheck) -> tuple[str, ...]:
    """Return which calls of other models are not known to succeed, each with the reason."""
    calls = model.context.calls[model.name]
    is_server = not model.target.is_sagemaker
    if not model.target.local_files:
        return ()
    lines: list[str] = []
    for name in _absent_models(model):
        site = calls.sites.get(name)
        place = model.folder.path if site is None else f"{site.path}:{site.line}"
        if _may_be_elsewhere(model) and site is not None:
            lines.append(
                f'{place}: call of "{name}" not checked: another model repository of the '
                "server may have this model"
            )
        elif site is not None and name not in calls.sent:
            lines.append(
                f'{place}: request to "{name}" not checked: the repository does not contain this '
                "model, and it is not known whether the request is sent"
            )
    if is_server and calls.declared is None:
        lines += (
            f"{site.path}:{site.line}: call of a model not checked: its name is not a string"
            for site in calls.unknown
        )
    return tuple(lines)


@warning(
    "python-called-model-unknown", "calls", source=_README, needs_files=True, platforms=SAGEMAKER
)
def called_model_unknown(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a called model can be read from the source, or is declared.

    Only known models are packed into the archive of the caller and loaded with it. The rule skips
    models for which ``calls`` of ``triton-models.toml`` or of the repository has an entry. On a
    server, nothing is packed; such calls are listed as not checked.
    """
    calls = model.context.calls[model.name]
    if calls.declared is not None:
        return
    hint = (
        f'write "{model.name}" = ["MODEL"] below [calls] in triton-models.toml in the folder of '
        "the models, or write the name as a string"
    )
    for site in calls.unknown:
        message = (
            "calls a model whose name is not a string, so that it is not packed with this model"
        )
        yield Problem(message, path=site.path, line=site.line, hint=hint)


@rule(
    "python-calls-on-multi-model-endpoint",
    "calls",
    rejects=False,
    source="observed with triton server 2.51; SageMakerMMELoadModel",
    hint=(
        "serve the model with TritonEndpoint, or replace it by an ensemble of the models that it "
        "calls: `constructs-triton model new --backend ensemble NAME --step MODEL --step MODEL`"
    ),
    needs_files=True,
    platforms=("sagemaker-multi-model",),
)
def calls_on_multi_model_endpoint(model: ModelUnderCheck) -> Iterator[Problem]:
    """No model of a multi-model endpoint calls another model.

    SageMaker's front end loads one folder of each archive, the last one in the order of the file
    system, so it may answer with the called model instead of the caller. A model that is loaded
    with ``pb_utils.load_model`` cannot be called any more as soon as a second archive contains a
    model of the same name, for example the next version of the same archive.
    """
    if model.name not in model.context.loaded:
        return
    calls = model.context.calls[model.name]
    site = next(iter((*calls.sites.values(), *calls.unknown)), None)
    called = f'"{calls.models[0]}"' if calls.models else "another model"
    yield Problem(
        f'"{model.name}" calls {called}, which multi-model endpoints do not support',
        path=model.folder.path if site is None else site.path,
        line=site and site.line,
    )
