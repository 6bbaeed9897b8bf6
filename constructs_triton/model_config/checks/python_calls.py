"""Models that a Python model calls: business logic scripting (BLS)."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton.findings import Severity
from constructs_triton.model_config.model_under_check import ModelUnderCheck, RepositoryContext
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton_client.spelling import did_you_mean

__all__: list[str] = []

_README = 'triton python_backend README, "Business Logic Scripting"'


@rule("python-called-model", "model", rejects=False, source=_README, needs_files=True)
def called_model(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every model that a Python model calls is in the repository.

    The model loads without it, but its requests fail. The rule reads the name of the model from
    ``InferenceRequest(model_name="...")``, and from the property ``calls`` of the repository.
    """
    calls = model.context.calls.get(model.name)
    if calls is None:
        return
    others = [name for name in model.context.folders if name != model.name]
    for name in calls.models:
        if name not in model.context.folders:
            site = calls.sites.get(name)
            where = "calls" if site is not None else "is declared in calls to call"
            hint = did_you_mean(name, others, "add its folder beside the folder of this model")
            message = f'{where} "{name}", which the repository does not contain'
            yield Problem(message, path=site and site.path, line=site and site.line, hint=hint)


@rule(
    "python-called-model-unknown",
    "model",
    severity=Severity.WARNING,
    source=_README,
    needs_files=True,
)
def called_model_unknown(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a called model can be read from the source, or is declared.

    Only known models are packed into the archive of the caller and loaded with it. The rule skips models for
    which the property ``calls`` of the repository has an entry.
    """
    calls = model.context.calls.get(model.name)
    if calls is None or calls.declared is not None:
        return
    hint = (
        f'declare the models with calls={{"{model.name}": [...]}} on the repository, or with '
        f"--called-models {model.name}=MODEL for a command, or write their names"
    )
    for site in calls.unknown:
        message = "calls a model whose name is not a string, so that it is not packed with this model"
        yield Problem(message, path=site.path, line=site.line, hint=hint)


@rule(
    "python-calls-on-multi-model-endpoint",
    "repository",
    rejects=False,
    source="observed with triton server 2.51; SageMakerMMELoadModel",
    hint="serve the model with TritonEndpoint, a single-model endpoint",
    needs_files=True,
)
def calls_on_multi_model_endpoint(context: RepositoryContext) -> Iterator[Problem]:
    """No model of a multi-model endpoint calls another model.

    SageMaker's front end loads one folder of each archive, the last one in the order of the file system, so
    it may answer with the called model instead of the caller. A model that is loaded with
    ``pb_utils.load_model`` cannot be called any more as soon as a second archive contains a model of the same
    name, for example the next version of the same archive.
    """
    if not (context.front_end and context.target.mode == "multi-model"):
        return
    for name in sorted(context.loaded & context.calls.keys()):
        calls = context.calls[name]
        site = next(iter((*calls.sites.values(), *calls.unknown)), None)
        called = f'"{calls.models[0]}"' if calls.models else "another model"
        yield Problem(
            f'"{name}" calls {called}, which multi-model endpoints do not support',
            path=context.folders[name].path if site is None else site.path,
            line=site and site.line,
        )
