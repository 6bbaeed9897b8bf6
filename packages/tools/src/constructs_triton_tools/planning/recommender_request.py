"""Requests for SageMaker Inference Recommender: a load test of one model on several instance types.

A default job takes up to 45 minutes and sends a load of its own. An advanced job has the instance
types and the load that you choose, for example those that a default job has recommended.

Source: SageMaker API reference, CreateInferenceRecommendationsJob; developer guide, "Recommendation
jobs with Amazon SageMaker Inference Recommender". Limits are those of botocore's service model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError, MissingDependencyError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.program.argument_types import argument_type
from constructs_triton_tools.declared_fields import shows_options
from constructs_triton_tools.planning.quantities import Bounds, exact

#: Source: SageMaker developer guide, "Inference Recommender prerequisites" and its job's model
#: fields.
MULTI_MODEL_REASON = (
    "Inference Recommender creates its own endpoint from one model or model package, and does not "
    "support multi-model endpoints; measure the endpoint with `constructs-triton load-test "
    "--requests`, with a target_model on each line"
)
_JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}")
_INSTANCE_TYPES = 10
_VARIABLES = 5
_VALUES = 3
_LIMITS = ("max_invocations", "latency_ms", "max_tests", "max_parallel_tests")
_ONLY_ADVANCED = ("phases", "environment", *_LIMITS)


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the traffic: users at its start, users added per minute,
    and its length in seconds.
    """

    users: int
    spawn_rate: int
    seconds: int


def _read_phase(_place: str, text: str) -> Phase:
    numbers = text.split(":")
    if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
        raise InvalidValueError(
            f': must have the form USERS:SPAWN_RATE:SECONDS, got "{text}"; write 2:2:1500'
        )
    return Phase(*map(int, numbers))


@shows_options
@dataclass(frozen=True, slots=True, kw_only=True)
class RecommenderRequest:
    """An advanced or a default job. A default job has neither phases nor environment nor limits.

    ``instance_types`` are 1 to 10 types to test the model on. A default job may have none: it then
    chooses them. In a phase, users wait for their answers, so the traffic is a closed loop.
    ``container`` is ``ContainerConfig`` of the API, for a model that is not in the model registry:
    domain, task, framework and sample payload.

    Raises:
        InvalidValueError: a value is out of range, or not exactly one model is set.
    """

    job_name: Annotated[str, Value("name of the job", metavar="NAME")]
    role_arn: Annotated[str, Value("role that SageMaker assumes", metavar="ARN")]
    instance_types: Sequence[str] = ()
    phases: Annotated[
        Sequence[Phase],
        Value(
            "users at the start, users added per minute, and length",
            default_text="2:2:1500 for an advanced job",
            flag="--phase",
            metavar="USERS:SPAWN_RATE:SECONDS",
            read=argument_type(_read_phase),
        ),
    ] = ()
    job_type: Annotated[
        Literal["Advanced", "Default"],
        Value(
            "Default recommends instance types with a load of its own in up to 45 minutes; "
            "Advanced tests the types and the load that you choose"
        ),
    ] = "Advanced"
    model_name: Annotated[str | None, Value("the SageMaker model to test", metavar="NAME")] = None
    model_package_version_arn: Annotated[
        str | None, Value("a version in the model registry, instead of --model-name", metavar="ARN")
    ] = None
    environment: Annotated[
        Mapping[str, Sequence[str]],
        Value(
            "up to 3 values of an environment variable, for up to 5 variables, of which all "
            "combinations are tested",
            example="A=1,2",
            flag="--env",
            metavar="NAME=VALUE,VALUE",
            read=lambda text: text.split(","),
        ),
    ] = field(default_factory=dict)
    max_invocations: Annotated[
        int | None, Value("invocations per minute at which the test of a type ends", metavar="N")
    ] = None
    latency_ms: Annotated[
        int | None, Value("p95 at which the test of a type ends", metavar="MS")
    ] = None
    max_tests: Annotated[int | None, Value("maximum number of tests", metavar="N")] = None
    max_parallel_tests: Annotated[int | None, Value("tests that run at a time", metavar="N")] = None
    duration_seconds: Annotated[int | None, Value("maximum length of the job", metavar="N")] = None
    container: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if _JOB_NAME.fullmatch(self.job_name) is None:
            raise InvalidValueError(
                "job_name: must be 1 to 64 letters, digits and hyphens, "
                f'got "{self.job_name}"; rename it'
            )
        if (self.model_name is None) == (self.model_package_version_arn is None):
            raise InvalidValueError(
                "model_name: exactly one model is tested; set model_name or "
                "model_package_version_arn"
            )
        for name in self.instance_types:
            InstanceType.of(name)
        if self.job_type == "Default":
            self._check_default()
        else:
            _check_count("instance_types", self.instance_types, _INSTANCE_TYPES)
            _check_count("phases", self.phases, None)
        if self.environment:
            _check_count("environment", self.environment, _VARIABLES)
        for name, values in self.environment.items():
            _check_count(f'environment["{name}"]', values, _VALUES)
        for name in (*_LIMITS, "duration_seconds"):
            if (value := getattr(self, name)) is not None:
                exact(name, value, Bounds("1", "1000000000", "give a positive whole number"))

    def _check_default(self) -> None:
        given = [name for name in _ONLY_ADVANCED if getattr(self, name)]
        if given:
            raise InvalidValueError(
                f"{given[0]}: a default job chooses its load and its limits; remove "
                f"{', '.join(given)}, or set the job type Advanced"
            )
        if self.instance_types:
            _check_count("instance_types", self.instance_types, _INSTANCE_TYPES)

    def to_request(self) -> dict[str, Any]:
        """Return the request of CreateInferenceRecommendationsJob, checked against botocore's
        model.

        Raises:
            InvalidValueError: botocore refuses the request.
            MissingDependencyError: botocore is not installed.
        """
        request = {
            "JobName": self.job_name,
            "JobType": self.job_type,
            "RoleArn": self.role_arn,
            "InputConfig": self._input_config(),
            **_present(StoppingConditions=self._stopping_conditions()),
        }
        _check_request(request)
        return request

    def _input_config(self) -> dict[str, Any]:
        model = {
            "ModelName": self.model_name,
            "ModelPackageVersionArn": self.model_package_version_arn,
            "JobDurationInSeconds": self.duration_seconds,
        }
        if self.job_type == "Default":
            # Only here an instance type is a property of the model, not of an endpoint.
            types = _present(SupportedInstanceTypes=list(self.instance_types))
            return _present(**model, ContainerConfig={**self.container, **types})
        phases = [
            {
                "InitialNumberOfUsers": phase.users,
                "SpawnRate": phase.spawn_rate,
                "DurationInSeconds": phase.seconds,
            }
            for phase in self.phases
        ]
        return _present(
            **model,
            TrafficPattern={"TrafficType": "PHASES", "Phases": phases},
            ResourceLimit=_present(
                MaxNumberOfTests=self.max_tests, MaxParallelOfTests=self.max_parallel_tests
            ),
            EndpointConfigurations=[self._endpoint(name) for name in self.instance_types],
            ContainerConfig=dict(self.container),
        )

    def _endpoint(self, instance_type: str) -> dict[str, Any]:
        ranges = [
            {"Name": name, "Value": list(values)} for name, values in self.environment.items()
        ]
        ranged = (
            {"EnvironmentParameterRanges": {"CategoricalParameterRanges": ranges}} if ranges else {}
        )
        return {"InstanceType": instance_type, **ranged}

    def _stopping_conditions(self) -> dict[str, Any]:
        latency = self.latency_ms
        thresholds = [{"Percentile": "P95", "ValueInMilliseconds": latency}] if latency else None
        return _present(MaxInvocations=self.max_invocations, ModelLatencyThresholds=thresholds)


def _present(**values: Any) -> dict[str, Any]:
    """The values that are set."""
    return {name: value for name, value in values.items() if value not in (None, {}, [])}


def _check_count(name: str, values: Sequence[Any] | Mapping[str, Any], highest: int | None) -> None:
    if not values or (highest is not None and len(values) > highest):
        allowed = f"from 1 to {highest}" if highest else "at least 1"
        raise InvalidValueError(
            f"{name}: must have {allowed} entries, got {len(values)}; change their number"
        )


def _check_request(request: Mapping[str, Any]) -> None:
    try:
        import botocore.session
        from botocore.validate import ParamValidator
    except ImportError:
        raise MissingDependencyError(
            "botocore is not installed; run `pip install 'constructs-triton-client[aws]'`"
        ) from None
    model = botocore.session.get_session().get_service_model("sagemaker")
    shape = model.operation_model("CreateInferenceRecommendationsJob").input_shape
    assert shape is not None
    report = ParamValidator().validate(request, shape)
    if report.has_errors():
        raise InvalidValueError(
            "request: botocore refuses it "
            f"({' '.join(report.generate_report().split())}); correct the values"
        )
