"""``ContainerInferenceComponent``: a container that is not Triton, beside components of Triton."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Required, Unpack

from aws_cdk import Aws, Duration, SecretValue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.endpoint.endpoint_config import ModelContainer, uncompressed_source
from constructs_triton.cdk.endpoint.resource_arn import component_arns_of
from constructs_triton.cdk.endpoint.sizing import Sizing
from constructs_triton.cdk.inference_component.adapter import AdapterSource, LoraAdapter
from constructs_triton.cdk.inference_component.component_base import InferenceComponentBase
from constructs_triton.cdk.inference_component.component_endpoint_base import ComponentEndpointBase
from constructs_triton.cdk.inference_component.compute_requirements import ComputeRequirements
from constructs_triton.cdk.inference_component.container_checks import (
    ContainerUnderCheck,
    container_findings,
)
from constructs_triton.cdk.inference_component.created_component import (
    ComponentPlace,
    CreatedInferenceComponent,
    checked_host,
)
from constructs_triton.cdk.inference_component.imported import ImportedInferenceComponent
from constructs_triton.cdk.inference_component.properties import (
    CopyOptions,
    check_copies,
    check_given_copies,
)
from constructs_triton.cdk.options.environment import check_limits
from constructs_triton.cdk.options.secret_variables import secret_findings, variable_text
from constructs_triton.cdk.options.serving_image import (
    ServingImage,
    bind_serving_image,
    serving_image_findings,
    serving_image_places,
)
from constructs_triton.cdk.options.variant_options import TEN_MINUTES
from constructs_triton.cdk.permissions.places import Place, check_places
from constructs_triton.cdk.repository.loaded_models import ModelLocation
from constructs_triton.cdk.repository.model_source import ModelSource, stored_models
from constructs_triton.cdk.validation.limit_checks import seconds
from constructs_triton.cdk.validation.properties import (
    check_properties,
    refuse_properties,
    takes_properties,
)
from constructs_triton.cdk.validation.property_types import GRANTEE, check_has
from constructs_triton_core.cloud_assembly.endpoints import NOT_TRITON
from constructs_triton_core.declared_values import Value, with_defaults
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token


class ContainerComponentOptions(CopyOptions, total=False):
    """The properties of a component whose container is not Triton."""

    image: Required[
        Annotated[
            ServingImage,
            Value(
                "The container image, which answers ``/ping`` and ``/invocations`` on port 8080.",
                example='ServingImage.from_registry("...", cuda_version="13.0")',
            ),
        ]
    ]
    model_data: Annotated[
        ModelSource | None,
        Value(
            "What SageMaker copies to ``/opt/ml/model``: ``ModelSource.from_s3_prefix`` for files, "
            "or ``ModelSource.from_bucket`` for an archive. It is not read at synth.",
            default_text="none: the image contains the model, or downloads it when it starts",
            example='ModelSource.from_s3_prefix(bucket, "llama/")',
        ),
    ]
    environment: Annotated[
        Mapping[str, str | SecretValue] | None,
        Value(
            "Environment variables of the container. The template contains strings as plain text. "
            "It does not contain the value of a ``SecretValue`` of Secrets Manager.",
            default_text="none",
            example='{"SM_VLLM_MAX_MODEL_LEN": "8192"}',
        ),
    ]
    container_startup_health_check_timeout: Annotated[
        Duration | None,
        Value(
            "How long the container may take until its health check succeeds: 60 seconds to 1 "
            "hour. A deployment of a container that does not start waits for it.",
            default_text="1 hour, since the size of the model is not known at synth",
            example=TEN_MINUTES,
            limit=limits.CONTAINER_STARTUP_HEALTH_CHECK_TIMEOUT_SECONDS,
        ),
    ]
    model_data_download_timeout: Annotated[
        Duration | None,
        Value(
            "How long the download of ``model_data`` may take: 60 seconds to 1 hour.",
            default_text="1 hour",
            example=TEN_MINUTES,
            limit=limits.MODEL_DATA_DOWNLOAD_TIMEOUT_SECONDS,
        ),
    ]


def checked_container_options(given: ContainerComponentOptions) -> ContainerComponentOptions:
    """Check the properties of a component and add the defaults.

    Raises:
        TypeError: there is no such property.
        InvalidValueError: a value is out of range, or components do not support the property.
    """
    refuse_properties(given, "inference components")
    check_given_copies(given)
    check_properties(
        "ContainerInferenceComponent()", given, ContainerComponentOptions, others=("endpoint",)
    )
    options = with_defaults(given, ContainerComponentOptions)
    check_copies(options)
    _variables(options)
    source = options["model_data"]
    if source is not None and stored_models(source) is None:
        raise InvalidValueError(
            "model_data: must be one archive or files in S3; upload the folder with "
            "`aws s3 sync FOLDER s3://BUCKET/PREFIX/`, and use ModelSource.from_s3_prefix"
        )
    return options


def _places(options: ContainerComponentOptions) -> Iterator[Place]:
    """Yield where the image and the weights are."""
    yield from serving_image_places(options["image"])
    source = options["model_data"]
    models = None if source is None else stored_models(source)
    if models is not None:
        yield from models.places("model_data")


def _variables(options: ContainerComponentOptions) -> dict[str, str]:
    """Return the variables as strings of a template.

    Raises:
        InvalidValueError: a value is no string and no secret, or SageMaker would refuse it.
    """
    given = options["environment"] or {}
    found = {name: variable_text(f'environment["{name}"]', value) for name, value in given.items()}
    check_limits(found)
    return found


_LONGEST = limits.CONTAINER_STARTUP_HEALTH_CHECK_TIMEOUT_SECONDS.maximum


class _OpenAiAccess(InferenceComponentBase):
    """SageMaker's OpenAI path, of which the container answers ``/v1/chat/completions``."""

    @property
    def openai_base_url(self) -> str:
        """The ``base_url`` of OpenAI's clients for this component.

        It has ``/chat/completions`` only.
        """
        return f"https://runtime.sagemaker.{self.env.region}.{Aws.URL_SUFFIX}/endpoints/{self._endpoint.endpoint_name}/inference-components/{self._inference_component_name}/openai/v1"

    def grant_invoke_openai(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call :attr:`openai_base_url`.

        A call needs two actions: ``sagemaker:InvokeEndpoint`` on endpoint and component, and
        ``sagemaker:CallWithBearerToken``, which AWS documents for ``*`` only.

        Args:
            grantee: Who gets the permissions.
        """
        check_has("grantee", grantee, *GRANTEE)
        bearer = iam.Grant.add_to_principal(
            grantee=grantee, actions=["sagemaker:CallWithBearerToken"], resource_arns=["*"]
        )
        return self.grant_invoke(grantee).combine(bearer)


class ImportedContainerComponent(_OpenAiAccess, ImportedInferenceComponent):
    """A component of :class:`ContainerInferenceComponent` that exists already."""


@takes_properties(ContainerComponentOptions)
class ContainerInferenceComponent(_OpenAiAccess, CreatedInferenceComponent):
    """A container that is not Triton, with its own copies on the instances of an endpoint.

    It can share the endpoint with components of Triton: each has its own container. The model has
    the role, the VPC and the network isolation of the endpoint. A new name, endpoint or variant
    replaces the component. Synth checks the environment of AWS's images of vLLM, LMI, SGLang and
    llama.cpp: a setting that cannot work is an error. Images of your own get warnings. The
    container does not run on your machine. After an error, nothing has been added to the stack.

    Args:
        endpoint: A ``TritonComponentEndpoint``, created in this app or imported with its role.

    Raises:
        TypeError: there is no such property.
        InvalidValueError: a property has the wrong type, is out of range, the copies do not fit on
            the instances of the endpoint, the image needs an AMI that is not known, or it would
            refuse or ignore a variable of ``environment``.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: ComponentEndpointBase,
        **options: Unpack[ContainerComponentOptions],
    ) -> None:
        checked = checked_container_options(options)
        host = checked_host(scope, id, endpoint, checked)
        requirements = [ComputeRequirements.of(checked, each) for each in host.types]
        place = ComponentPlace.of(id, endpoint, checked, requirements[0])
        _check_ami(place, checked["image"])
        findings = [*requirements[0].warnings(host.instance_type), *_findings(place, checked)]
        findings += check_places(scope, _places(checked))
        container = _Container(checked, host.instance_type, findings)
        super().__init__(scope, id, place, container)
        self._options_of_container = checked
        # local up and other programs that read the template must not start it in Triton.
        self.cfn_model.add_metadata(NOT_TRITON, value=True)

    def add_adapter(
        self,
        id: str,
        *,
        source: AdapterSource,
        inference_component_name: str | None = None,
        asset_encryption_key: kms.IKey | None = None,
    ) -> LoraAdapter:
        """Add a LoRA adapter, which requests name in place of this component.

        Args:
            id: Construct id of the adapter.
            source: Folder that PEFT's ``save_pretrained`` wrote, or ``ModelSource.from_bucket`` of
                a ``.tar.gz`` with such files at its root, which is not read at synth.
            inference_component_name: Name of the adapter. Default: a generated one.
            asset_encryption_key: Your own KMS key of the CDK's asset bucket (``cdk bootstrap
                --bootstrap-kms-key-id``), which the role needs to load a folder that is uploaded.

        Raises:
            InvalidValueError: the containers do not load adapters, or not this one.
        """
        return LoraAdapter(
            self,
            id,
            source=source,
            environment=_variables(self._options_of_container),
            inference_component_name=inference_component_name,
            asset_encryption_key=asset_encryption_key,
        )

    @classmethod
    def from_inference_component_name(
        cls,
        scope: Construct,
        id: str,
        inference_component_name: str,
        *,
        endpoint: ComponentEndpointBase,
    ) -> ImportedContainerComponent:
        """Refer to a component of this account and Region, and its endpoint, new or imported.

        Args:
            inference_component_name: Name of the component.
        """
        return ImportedContainerComponent(
            scope,
            id,
            inference_component_name=inference_component_name,
            inference_component_arns=component_arns_of(scope, inference_component_name),
            endpoint=endpoint,
        )


@dataclass(frozen=True, slots=True)
class _Container:
    """The container with its properties, checked."""

    options: ContainerComponentOptions
    instance_type: InstanceType
    findings: Sequence[Finding]
    sequence_models: tuple[str, ...] = ()

    @property
    def image(self) -> ServingImage:
        return self.options["image"]

    def bind(self, scope: Construct) -> tuple[ModelContainer, Mapping[str, ModelContainer]]:
        location = ModelLocation("", ())
        download_seconds = seconds(self.options["model_data_download_timeout"])
        source = self.options["model_data"]
        models = None if source is None else stored_models(source)
        if models is not None:
            location = models.locate("", scope)
            if download_seconds is None:
                download_seconds = _LONGEST

        startup_seconds = seconds(self.options["container_startup_health_check_timeout"])
        if startup_seconds is None:
            startup_seconds = _LONGEST
        sizing = Sizing(None, download_seconds, startup_seconds)

        image = bind_serving_image(self.image, scope, self.instance_type)
        url = location.url or None
        archive_url = url if location.is_compressed else None
        folder_url = None if location.is_compressed else url
        definition = sagemaker.CfnModel.ContainerDefinitionProperty(
            image=image.uri,
            model_data_url=archive_url,
            model_data_source=None if folder_url is None else uncompressed_source(folder_url),
            environment=_variables(self.options) or None,
        )
        return ModelContainer(scope, image, location, sizing, definition), {}


def _check_ami(place: ComponentPlace, image: ServingImage) -> None:
    """Check that an image with GPUs names its AMI, where the images decide it.

    Raises:
        InvalidValueError: it does not.
    """
    gpus = place.requirements.gpus
    may_use_gpus = is_token(gpus) or gpus > 0
    if image.ami is None and place.host.chooses_ami and may_use_gpus:
        raise InvalidValueError(
            "image: its CUDA version decides the inference AMI that all components of the endpoint "
            "share; set cuda_version of the ServingImage, "
            'such as cuda_version="13.0", or inference_ami_version'
        )


def _findings(place: ComponentPlace, options: ContainerComponentOptions) -> list[Finding]:
    """Return the warnings about the container.

    Raises:
        InvalidValueError: AWS's image would refuse or ignore a variable.
    """
    variables = _variables(options)
    is_isolated = place.host.enable_network_isolation is True
    has_model_data = options["model_data"] is not None
    container = ContainerUnderCheck(
        options["image"],
        variables,
        place.requirements.gpus,
        has_model_data,
        is_isolated,
    )
    found = container_findings(container)
    errors = [each.one_line for each in found if each.severity is Severity.ERROR]
    if errors:
        raise InvalidValueError("\n".join(errors))
    if is_isolated and not has_model_data:
        found.append(_CANNOT_DOWNLOAD)
    found += secret_findings(place.endpoint, variables)
    return [*serving_image_findings(options["image"]), *found]


_CANNOT_DOWNLOAD = Finding(
    "container-cannot-download",
    Severity.WARNING,
    "model_data",
    "the endpoint has network isolation, so the container cannot download a model",
    "set model_data to the files of the model in S3, "
    "or acknowledge this if the image contains them",
)
