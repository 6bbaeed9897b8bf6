"""The environment variables of the Triton container, as typed keywords.

``facts/environment.json`` lists what each variable does and which releases read it. This module
reports values that the image would refuse, ignore or misread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from aws_cdk import SecretValue

from constructs_triton.cdk.options.environment_values import (
    SIZES,
    ByteSize,
    InferenceType,
    PingMode,
    check_values,
    error,
    in_bytes,
    is_no_number,
    no_number,
    not_live,
    single_model_only,
    without_effect,
)
from constructs_triton.cdk.options.secret_variables import variable_text
from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.limit_checks import check_count, check_name, check_range
from constructs_triton_core.spelling import did_you_mean
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.environment import VariableFacts, variables
from triton_model_check.facts.images import first_published
from triton_model_check.facts.published import load

_PREFIX = "SAGEMAKER_TRITON_"
_SERVER_PING_MODE = "SAGEMAKER_TRITON_PING_MODE"


@dataclass(frozen=True, slots=True, kw_only=True)
class TritonEnvironment:
    """Environment variables of the Triton container. ``None`` uses the default of the image.

    Args:
        default_model_name: Model that is loaded and that answers ``/invocations``. Single-model
            endpoints only.
        ping_mode: What health checks wait for: ``"ready"`` (all models) or ``"live"`` (the server).
            Multi-model endpoints use ``"live"`` by default.
        inference_type: What ``/invocations`` calls. Image 25.03 or later, single-model endpoints
            only.
        model_namespacing: Whether several archives may contain models of the same name. (The
            variable is called ``..._DISABLE_MODEL_NAMESPACING``, but ``true`` enables namespacing.)
        thread_count: Number of threads that answer requests.
        buffer_manager_thread_count: Number of threads that copy tensors.
        model_load_gpu_limit: Fraction of the memory of each GPU, 0 to 1, that models may fill. A
            load after which more is used fails. Default: 1.
        shm_default_byte_size: Initial shared memory of each instance of a Python backend model, at
            least 1 MiB. ``Size.mebibytes(64)``, or a number of bytes.
        shm_growth_byte_size: Step by which that memory grows.
        log_verbose: Verbose logging. Default: ``False``. The image's default is on, which logs
            every request.
        log_info: Whether Triton logs information. Default: yes.
        log_warning: Whether Triton logs warnings. Default: yes.
        log_error: Whether Triton logs errors. Default: yes.
        allow_metrics: Whether Triton serves metrics inside the container; SageMaker does not expose
            the port.
        metrics_port: Port of the metrics.
        allow_grpc: Whether Triton serves gRPC inside the container; SageMaker does not expose the
            port.
        grpc_port: Port of gRPC.
        tensorflow_version: 1 or 2. Images from 25.03 on contain no TensorFlow and ignore it.
        additional_models: Further models to load besides the default model. They must be in its
            archive: ``calls`` of the repository adds them. Single-model endpoints only.
        additional_args: Further arguments of ``tritonserver``, without white space: the image
            cannot quote.
        extra: Any other variable. A ``SecretValue`` of Secrets Manager reaches the container and
            not the template.

    Raises:
        InvalidValueError: the image would refuse a value. Strings that are CDK tokens are not
            checked.
    """

    default_model_name: str | None = None
    ping_mode: PingMode | None = None
    inference_type: InferenceType | None = None
    model_namespacing: bool | None = None
    thread_count: int | str | None = None
    buffer_manager_thread_count: int | str | None = None
    model_load_gpu_limit: float | str | None = None
    shm_default_byte_size: ByteSize | int | str | None = None
    shm_growth_byte_size: ByteSize | int | str | None = None
    log_verbose: bool | int | str | None = None
    log_info: bool | None = None
    log_warning: bool | None = None
    log_error: bool | None = None
    allow_metrics: bool | None = None
    metrics_port: int | str | None = None
    allow_grpc: bool | None = None
    grpc_port: int | str | None = None
    tensorflow_version: int | str | None = None
    additional_models: Sequence[str] = ()
    additional_args: Sequence[str] = ()
    extra: Mapping[str, str | SecretValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for keyword in SIZES:
            object.__setattr__(self, keyword, in_bytes(keyword, getattr(self, keyword)))
        check_values(self)
        _check_extra(self.extra)

    def merged_with(self, other: TritonEnvironment) -> TritonEnvironment:
        """Return the settings of both environments; ``extra`` has the variables of both.

        Args:
            other: Settings that replace those of the same name.
        """
        replaced = {}
        for setting in fields(other):
            value = getattr(other, setting.name)
            if value not in (None, (), {}):
                replaced[setting.name] = value
        replaced["extra"] = {**self.extra, **other.extra}
        return replace(self, **replaced)

    def check(
        self, *, image_version: str | None = None, multi_model: bool = False
    ) -> list[Finding]:
        """Return what an image would refuse, ignore or misread.

        Args:
            image_version: Version such as ``"26.05"``. Without it, or with a token, rules about
                versions are not checked.
            multi_model: Whether the endpoint is a multi-model endpoint.
        """
        found: list[Finding] = []
        if image_version is not None and not is_token(image_version):
            found += self._version_findings(image_version)
        if multi_model:
            found += self._multi_model_findings()
        found += _extra_findings(self.extra)
        return found

    def to_variables(
        self, *, image_version: str | None = None, multi_model: bool = False
    ) -> dict[str, str]:
        """Return the environment variables of the container, sorted by name.

        Args:
            image_version: As in :meth:`check`.
            multi_model: Whether the endpoint is a multi-model endpoint.

        Raises:
            InvalidValueError: :meth:`check` reports an error, or the variables exceed the limits of
                SageMaker: 100 entries, 32 KiB, 1024 characters per value.
        """
        found = self.check(image_version=image_version, multi_model=multi_model)
        errors = [finding for finding in found if finding.severity is Severity.ERROR]
        if errors:
            raise InvalidValueError("\n".join(finding.one_line for finding in errors))

        result = self._keyword_variables(image_version)
        result |= self._ping_variables(multi_model)
        for name, value in self.extra.items():
            result[name] = variable_text(f'environment.extra["{name}"]', value)
        check_limits(result)
        return dict(sorted(result.items()))

    def _keyword_variables(self, image_version: str | None) -> dict[str, str]:
        """Return the variables of the keywords, with the defaults that differ from the image's."""
        rendered = {}
        for keyword, facts in variables().items():
            value = getattr(self, keyword)
            if keyword != "additional_args" and value is not None:
                rendered[facts.name] = _render(value)

        verbose = variables()["log_verbose"]
        if _reads(verbose, image_version):
            rendered.setdefault(verbose.name, _render(False))
        else:  # images that ignore it get neither our default nor a value
            rendered.pop(verbose.name, None)
        return _append_arguments(rendered, self._arguments(), image_version)

    def _arguments(self) -> str:
        """Return the further arguments of ``tritonserver``, separated by spaces."""
        load_arguments = [f"--load-model={name}" for name in self.additional_models]
        return " ".join([*load_arguments, *self.additional_args])

    def _ping_variables(self, multi_model: bool) -> dict[str, str]:
        """Return the variable that passes the ping mode to the server.

        The script of the image sets this variable, but exports it only if it exists already.
        Without it, one model that fails to load makes the health check of a multi-model endpoint
        fail permanently.
        """
        mode = self.ping_mode or ("live" if multi_model else None)
        return {_SERVER_PING_MODE: mode} if mode else {}

    def _version_findings(self, image_version: str) -> Iterator[Finding]:
        """Yield a finding for each keyword that an image of the version does not read."""
        for keyword, facts in variables().items():
            value = getattr(self, keyword)
            if not _is_set(keyword, value) or keyword == "additional_args":
                continue
            yield from _version_finding(facts, f"environment.{keyword}", value, image_version)

    def _multi_model_findings(self) -> Iterator[Finding]:
        """Yield a finding for each keyword that a multi-model endpoint does not support."""
        for keyword, facts in variables().items():
            if facts.mode == "single" and getattr(self, keyword) is not None:
                yield single_model_only(facts, f"environment.{keyword}")
        if self.ping_mode == "ready":
            yield not_live("environment.ping_mode", self.ping_mode)
        if self.additional_models:
            yield error(
                "additional-models-multi-model",
                "environment.additional_models",
                "a multi-model endpoint cannot load models at its start, got "
                + ", ".join(f'"{name}"' for name in self.additional_models),
                "serve the model that calls them with TritonEndpoint",
            )


def check_variables(
    given: Mapping[str, str], *, image_version: str | None = None, multi_model: bool = False
) -> list[Finding]:
    """Return what :meth:`TritonEnvironment.check` reports, for a mapping of variables.

    Of the values, only the ping mode of multi-model endpoints and sizes are checked.
    """
    known_version = None if image_version is None or is_token(image_version) else image_version
    found: list[Finding] = []
    for facts in variables().values():
        if facts.name not in given:
            continue
        path = f'environment["{facts.name}"]'
        if known_version is not None:
            found += _version_finding(facts, path, given[facts.name], known_version)
        if multi_model and facts.mode == "single":
            found.append(single_model_only(facts, path))

    for keyword in SIZES:
        name = variables()[keyword].name
        if name in given and is_no_number(given[name]):
            found.append(no_number(f'environment["{name}"]', given[name]))

    # The script of the image copies the first to the second.
    for name in (variables()["ping_mode"].name, _SERVER_PING_MODE):
        mode = given.get(name, "live")
        if multi_model and mode != "live" and not is_token(mode):
            found.append(not_live(f'environment["{name}"]', mode))
    return found


def check_limits(environment: Mapping[str, str]) -> None:
    """Check names, values and total size; tokens pass.

    Raises:
        InvalidValueError: SageMaker would refuse the environment.
    """
    check_count("environment", environment, limits.ENVIRONMENT_ENTRIES)
    for name, value in environment.items():
        check_name(f'environment["{name}"]', name, limits.ENVIRONMENT_KEY)
        check_name(f'environment["{name}"]', value, limits.ENVIRONMENT_VALUE)

    texts = [*environment.keys(), *environment.values()]
    if any(is_token(text) for text in texts):
        return
    total = sum(len(text.encode()) for text in texts)
    check_range("environment, names and values together", total, limits.ENVIRONMENT_TOTAL_BYTES)


def _check_extra(extra: object) -> None:
    """Check that ``extra`` is a mapping without variables that have a keyword.

    Raises:
        InvalidValueError: it is not.
    """
    if not isinstance(extra, Mapping):
        raise InvalidValueError(
            f"environment.extra: must be a mapping of names to strings, got {shown(extra)}; "
            'write {"NAME": "value"}'
        )

    keyword_of = {facts.name: keyword for keyword, facts in variables().items()}
    keyword_of[_SERVER_PING_MODE] = "ping_mode"
    for name, value in extra.items():
        if name in keyword_of:
            raise InvalidValueError(
                f'environment.extra["{name}"]: must be set by its keyword, got "{value}"; '
                f"set {keyword_of[name]} instead"
            )


def _extra_findings(extra: Mapping[str, str | SecretValue]) -> Iterator[Finding]:
    """Yield a warning for each variable that SageMaker sets, or that no Triton image reads."""
    facts = load("environment")
    for name in extra:
        path = f'environment.extra["{name}"]'
        if name in facts["set_by_sagemaker"]:
            yield Finding(
                "environment-variable-reserved",
                Severity.WARNING,
                path,
                "SageMaker sets this variable",
                "remove it",
            )
        elif name.startswith(_PREFIX) and name not in facts["other_variables"]:
            names_of_keywords = [variable.name for variable in variables().values()]
            known = [*names_of_keywords, *facts["other_variables"]]
            yield Finding(
                "environment-variable-unknown",
                Severity.WARNING,
                path,
                f'no Triton image reads this variable, got "{name}"',
                did_you_mean(name, known) or "remove it",
                source=facts["sources"]["variables"],
            )


def _append_arguments(
    rendered: dict[str, str], arguments: str, image_version: str | None
) -> dict[str, str]:
    """Add ``arguments`` in the form that the script of the image understands."""
    if not arguments:
        return rendered
    facts = variables()["additional_args"]
    if _reads(facts, image_version):
        return {**rendered, facts.name: arguments}

    # Older scripts have no variable for arguments, but add this value, unquoted, to the command
    # line.
    log_info = variables()["log_info"].name
    return {**rendered, log_info: f"{rendered.get(log_info, 'true')} {arguments}"}


def _reads(facts: VariableFacts, image_version: str | None) -> bool:
    """Whether an image of a version reads a variable; assumed if the version is not known."""
    if image_version is None or is_token(image_version):
        return True
    return is_at_least(image_version, facts.since)


def _is_set(keyword: str, value: object) -> bool:
    """Whether a keyword has another value than its default."""
    default_of = {setting.name: setting.default for setting in fields(TritonEnvironment)}
    return value is not None and value != default_of[keyword]


def _render(value: bool | float | str) -> str:
    """Return a value as the script of the image reads it, such as ``true``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _version_finding(
    facts: VariableFacts, path: str, value: object, image_version: str
) -> Iterator[Finding]:
    """Yield an error if an image is too old for a variable, and a warning if it is too new."""
    if not is_at_least(image_version, facts.since):
        # The endpoint of a decoupled model answers each request with an error without it.
        is_needed = facts.keyword == "inference_type" and value != "infer"
        condition = " if the model is not decoupled" if is_needed else ""
        yield error(
            "environment-variable-too-new",
            path,
            f"image {image_version} does not read {facts.name}, got {value!r}",
            f"use image {first_published(facts.since)} or later, or remove it{condition}",
        )
    elif facts.until is not None and is_at_least(image_version, facts.until):
        yield without_effect(path, f"image {image_version} no longer reads {facts.name}")
