"""Which backend serves a model, and the few fields that every backend shares."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton.findings import Severity
from constructs_triton.model_config.backends import KNOWN_BACKENDS
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.spelling import closest

__all__: list[str] = []

_VALIDATE = "triton core ValidateModelConfig"
_COMMON_BACKENDS = (*KNOWN_BACKENDS, "python", "openvino", "dali", "fil", "vllm", "tensorrtllm", "identity")


@rule(
    "backend-unknown",
    "model",
    source="triton core AutoCompleteBackendFields",
    hint='name one, for example backend: "python"',
    needs_files=True,
)
def cannot_be_told(model: ModelUnderCheck) -> Iterator[Problem]:
    """The backend is named, or can be told from a file such as ``model.onnx`` in the first version directory.

    Triton also takes it from a model name of the form ``name.backend``.
    """
    if model.folder.config_fault is not None or not model.folder.version_directories:
        return
    if not any((model.backend, model.completed.platform, model.completed.model_file)):
        yield Problem("no backend is named and no file tells it")


@rule("backend-platform", source=_VALIDATE)
def unexpected_platform(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model without ``backend`` has a ``platform`` that stands for one.

    ``platform: "python"`` is the common mistake: the Python backend is named by ``backend``.
    """
    backend, platform, model_file = model.completed
    if backend or platform == "ensemble" or not (platform or model_file):
        return
    if not platform:
        hint = 'name the backend, for example backend: "python"'
        yield Problem(f"no backend can be told from default_model_filename, got {model_file!r}", (), hint)
        return
    guess = closest(platform, (*_platforms(), "ensemble", *_COMMON_BACKENDS))
    hint = (
        f'write platform: "{guess}"'
        if guess in (*_platforms(), "ensemble")
        else f'write backend: "{guess or platform}"'
    )
    yield Problem(f'no backend has this platform, got "{platform}"', ("platform",), hint)


def _platforms() -> tuple[str, ...]:
    return tuple(platform for backend in KNOWN_BACKENDS.values() for platform in backend.default_files)


@rule("backend-platform-pair", source=_VALIDATE, hint="keep one of the two; the other is filled in")
def pair(model: ModelUnderCheck) -> Iterator[Problem]:
    """``backend`` and ``platform`` name the same framework.

    Only backends that Triton's core knows are compared; Python, DALI and custom ones take any platform.
    """
    known = KNOWN_BACKENDS.get(model.backend)
    platform = model.completed.platform
    if known is None or platform in (*known.default_files, "ensemble"):
        return
    field = ("platform",) if model.config.platform else ("backend",)
    got = f'"{platform}"' if platform else "no platform"
    hint = None if platform else "name the platform: " + " or ".join(known.default_files)
    yield Problem(f'backend "{known.name}" needs its own platform, got {got}', field, hint)


@rule("backend-of-ensemble", when=("backend",), source=_VALIDATE, hint="remove backend")
def backend_of_ensemble(model: ModelUnderCheck) -> Iterator[Problem]:
    """An ensemble has a platform and no backend.

    It has no library of its own: its steps are what runs.
    """
    if model.config.backend and model.config.platform == "ensemble":
        yield Problem(f'an ensemble has no backend, got "{model.config.backend}"', ("backend",))


@rule(
    "backend-ensemble-platform",
    when=("platform", "ensemble_scheduling"),
    source="triton core ValidateEnsembleSchedulingConfig",
)
def ensemble_platform(model: ModelUnderCheck) -> Iterator[Problem]:
    """``ensemble_scheduling`` stands exactly in models with ``platform: "ensemble"``.

    Either one without the other is refused, the first with a misleading message about the backend.
    """
    config = model.config
    scheduled = config.HasField("ensemble_scheduling")
    if scheduled and config.platform != "ensemble":
        message = f'ensemble_scheduling needs platform "ensemble", got "{config.platform}"'
        yield Problem(
            message,
            ("platform",) if config.platform else ("ensemble_scheduling",),
            'write platform: "ensemble"',
        )
    elif not scheduled and config.platform == "ensemble":
        yield Problem(
            'platform "ensemble" needs ensemble_scheduling',
            ("platform",),
            "add ensemble_scheduling with its steps",
        )


@rule(
    "backend-max-batch-size",
    when=("max_batch_size",),
    source=_VALIDATE,
    hint="write 0 for a model that does not batch",
)
def max_batch_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """``max_batch_size`` is zero or more.

    Zero, which is also what leaving it out means, is a model whose dims are the whole shape.
    """
    if model.config.max_batch_size < 0:
        yield Problem(f"max_batch_size is negative, got {model.config.max_batch_size}", ("max_batch_size",))


@rule(
    "backend-misspelt",
    when=("backend",),
    source="triton core TritonBackendManager",
    hint="",
)
def misspelt(model: ModelUnderCheck) -> Iterator[Problem]:
    """The backend is no misspelling of one that the images carry.

    There is no list of all backends, since any library may be added to an image; only names one or two
    letters from a common one are refused.
    """
    name = model.config.backend
    if not name or name in _COMMON_BACKENDS or len(name) < 4:
        return
    guess = closest(name, _COMMON_BACKENDS)
    if guess is not None and _distance_is_small(name.lower(), guess):
        yield Problem(f'no such backend, got "{name}"', ("backend",), f'did you mean "{guess}"?')


def _distance_is_small(name: str, known: str) -> bool:
    """Whether one letter was added, left out, changed, or two neighbours swapped."""
    if abs(len(name) - len(known)) > 1:
        return False
    if sorted(name) == sorted(known):
        return True
    prefix = next(
        (i for i, (a, b) in enumerate(zip(name, known, strict=False)) if a != b), min(len(name), len(known))
    )
    rests = {
        (name[prefix + 1 :], known[prefix:]),
        (name[prefix:], known[prefix + 1 :]),
        (name[prefix + 1 :], known[prefix + 1 :]),
    }
    return any(a == b for a, b in rests)


@rule(
    "backend-repository-agent",
    when=("model_repository_agents",),
    source="triton core TritonRepoAgentManager",
    hint="leave model_repository_agents out, or build an image that has the agent",
)
def repository_agent(model: ModelUnderCheck) -> Iterator[Problem]:
    """Repository agents are installed in the image.

    The server carries one, ``checksum``; any other must be built into the image.
    """
    for index, agent in enumerate(model.config.model_repository_agents.agents):
        if agent.name != "checksum":
            place = ("model_repository_agents", "agents", index)
            yield Problem(f'the server has no repository agent "{agent.name}"', place)


@rule(
    "backend-model-metrics",
    when=("model_metrics",),
    source="triton core ValidateModelMetrics",
    hint="give family and buckets",
)
def model_metrics(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each ``metric_control`` names a metric family and the buckets of its histogram.

    The server refuses one that is incomplete.
    """
    for index, control in enumerate(model.config.model_metrics.metric_control):
        if not control.metric_identifier.family or not control.histogram_options.buckets:
            yield Problem("metric_control is incomplete", ("model_metrics", "metric_control", index))


@rule(
    "backend-pytorch-names",
    severity=Severity.WARNING,
    source="triton pytorch_backend, model_instance_state.cc",
    hint="name them INPUT__0, INPUT__1, OUTPUT__0 and so on, in the order of forward()",
)
def pytorch_names(model: ModelUnderCheck) -> Iterator[Problem]:
    """The tensors of a PyTorch model follow ``name__index`` all together, or not at all.

    Names that do not follow it are taken in the order of the configuration, mixed ones surprisingly so.
    """
    if model.backend != "pytorch":
        return
    names = [tensor.name for _, _, tensor in model.tensors]
    following = [name for name in names if name.rpartition("__")[2].isdigit() and "__" in name]
    if following and len(following) < len(names):
        yield Problem(f'only some names follow name__index, such as "{following[0]}"', ("input",))
