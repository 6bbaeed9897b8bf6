"""The instances of a search in AWS: what they are, what they cost at most, and the quota of the account."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor

from constructs_triton_core.aws_reader import AwsReader
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from triton_model_check.facts.images import DEFAULT_VERSION, image_uri, version_of_image
from triton_model_check.facts.inference_ami import default_inference_ami

__all__ = ["START_MINUTES", "AwsInstances"]

#: An endpoint with a GPU starts in about 6 minutes, and in more with a large image.
START_MINUTES = 20
_MARGIN_MINUTES = 10
_ROUNDING = 1e-6


@dataclass(kw_only=True)
class AwsInstances:
    """Instances of SageMaker on which candidates run.

    Args:
        instance_type: Instance type, such as ``ml.g5.xlarge``.
        role: ARN of the role of the models, which reads the archives and pulls the image.
        bucket: Bucket of the archives.
        reader: Calls AWS in the Region of its session.
        usd_per_hour: Price of an instance hour in US dollars.
        image: URI of the image. Default: AWS's newest Triton image that this package knows.
        budget_usd: What the search may cost at most. Default: what its time costs.
        keeps_endpoint: Whether the last endpoint stays until it expires.
        quota: How many instances the account may have, after ``check``; ``None`` if it is not known.
        warnings: Sentences about the quota, after ``check``.

    Raises:
        InvalidValueError: the hardware of the instance type is not known.
        FactNotFoundError: AWS has no image in the Region.
    """

    instance_type: str
    role: str
    bucket: str
    reader: AwsReader
    usd_per_hour: float
    image: str = ""
    budget_usd: float | None = None
    keeps_endpoint: bool = False
    quota: int | None = field(default=None, init=False)
    warnings: list[str] = field(default_factory=list, init=False)

    #: The comparison has a variant for the present and one for the best configuration.
    most_finalists = 2

    def __post_init__(self) -> None:
        if self.hardware.vcpus is None:
            hint = self.hardware.nearest_known or "use another type"
            raise InvalidValueError(
                f"--instance-type: the hardware of {self.instance_type} is not known; {hint}"
            )
        if not self.image:
            self.image = image_uri(self.region, DEFAULT_VERSION, cpu=not self.hardware.has_gpu)

    @property
    def region(self) -> str:
        """The Region."""
        return str(self.reader.session.region_name)

    @property
    def hardware(self) -> InstanceType:
        """The instance type with its hardware."""
        return InstanceType.of(self.instance_type)

    @property
    def is_multi_model(self) -> bool:
        """Whether all candidates are searched on one multi-model endpoint.

        Source: AWS documentation, supported instance types for multi-model endpoints.
        """
        return not self.hardware.has_gpu or self.hardware.multi_model_gpu_documented

    @property
    def inference_ami_version(self) -> str | None:
        """The ``InferenceAmiVersion`` of the image; ``None`` for SageMaker's default."""
        if not self.hardware.has_gpu:
            return None
        return default_inference_ami(version_of_image(self.image), self.hardware).version

    # --- time, money and quota ----------------------------------------------------------------------------

    @staticmethod
    def minutes_to_live(budget_minutes: float) -> float:
        """Return after how many minutes every endpoint of a search is deleted, whatever happens.

        The search and the comparison each start an endpoint.
        """
        return budget_minutes + 2 * START_MINUTES + _MARGIN_MINUTES

    def most_usd(self, budget_minutes: float) -> float:
        """Return what the instances cost at most: those of the comparison until the endpoints expire."""
        return self.most_finalists * self.usd_per_hour * self.minutes_to_live(budget_minutes) / 60

    def check_budget(self, budget_minutes: float) -> None:
        """Refuse a search that may cost more than its budget.

        Raises:
            InvalidValueError: it may.
        """
        most = self.most_usd(budget_minutes)
        if self.budget_usd is None or most <= self.budget_usd + _ROUNDING:
            return
        affordable = 60 * self.budget_usd / (self.most_finalists * self.usd_per_hour)
        minutes = floor(affordable - self.minutes_to_live(0) + _ROUNDING)
        hint = f"set --budget-minutes {minutes}, or " if minutes >= 1 else ""
        enough = ceil(100 * (most - _ROUNDING)) / 100
        raise InvalidValueError(
            f"--budget-usd: {budget_minutes:g} minutes may cost {most:.2f} USD, got {self.budget_usd:g}; "
            f"{hint}raise --budget-usd to {enough:.2f}"
        )

    def check_quota(self) -> None:
        """Ask Service Quotas how many instances the account may have; 0 is a usual answer.

        Raises:
            InvalidValueError: the quota is too small.
        """
        name = f"{self.instance_type} for endpoint usage"
        try:
            pages = self.reader.pages("service-quotas", "list_service_quotas", ServiceCode="sagemaker")
            quotas = {each["QuotaName"]: int(each["Value"]) for page in pages for each in page["Quotas"]}
        except InvalidValueError as error:
            self.warnings = [f"The quota is not known ({' '.join(str(error).split())})."]
            return
        self.quota = quotas.get(name)
        needed = 1 if self.is_multi_model else self.most_finalists
        if self.quota is None:
            self.warnings = [f"Service Quotas has no {name!r}."]
        elif self.quota < needed:
            raise InvalidValueError(
                f"quota: {name!r} must be at least {needed} in {self.region}, got {self.quota}; "
                "ask for an increase in the console of Service Quotas, or use another --instance-type"
            )
        elif not self.runs_variants:
            text = "The quota is 1 instance, so the comparison runs on the multi-model endpoint too."
            self.warnings = [text]

    @property
    def runs_variants(self) -> bool:
        """Whether the quota allows the variants of the comparison."""
        return self.quota is None or self.quota >= self.most_finalists
