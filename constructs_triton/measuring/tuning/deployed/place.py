"""Where a search runs in AWS: the instance type, what it costs at most, and whether the account allows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil, floor
from typing import Any

from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.images import DEFAULT_VERSION, image_uri, version_of_image
from constructs_triton.facts.inference_ami import default_inference_ami
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.operations.aws_reader import AwsReader
from constructs_triton.planning.price_list import PRICE_LIST_REGION, fetch_prices

__all__ = ["AwsPlace", "Quota", "fetch_price", "read_quota"]

#: An endpoint with a GPU starts in about 6 minutes, and in more with a large image.
START_MINUTES = 20
_MARGIN_MINUTES = 10
_ROUNDING = 1e-6
#: The endpoint of the comparison has a variant for the present and one for the best configuration.
_FINALISTS = 2


@dataclass(frozen=True, slots=True)
class AwsPlace:
    """The instances of a search.

    Args:
        instance_type: Instance type, such as ``ml.g5.xlarge``.
        role: ARN of the role of the models, which reads the archives and pulls the image.
        bucket: Bucket of the archives.
        region: Region.
        usd_per_hour: Price of an instance hour in US dollars.
        image: URI of the image. Default: AWS's newest Triton image that this package knows.
        budget_usd: What the search may cost at most. Default: what its time costs.
        keeps_endpoint: Whether the last endpoint stays until it expires.

    Raises:
        InvalidValueError: the hardware of the instance type is not known.
        FactNotFoundError: AWS has no image in the Region.
    """

    instance_type: str
    role: str
    bucket: str
    region: str
    usd_per_hour: float
    image: str = ""
    budget_usd: float | None = None
    keeps_endpoint: bool = False

    def __post_init__(self) -> None:
        if self.hardware.vcpus is None:
            hint = self.hardware.nearest_known or "use another type"
            raise InvalidValueError(
                f"--instance-type: the hardware of {self.instance_type} is not known; {hint}"
            )
        if not self.image:
            object.__setattr__(
                self, "image", image_uri(self.region, DEFAULT_VERSION, cpu=not self.hardware.has_gpu)
            )

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

    def __str__(self) -> str:
        how = "on one multi-model endpoint" if self.is_multi_model else "on endpoints in turn"
        return f"{self.image} on {self.instance_type}, {how}"

    # --- time and money -----------------------------------------------------------------------------------

    @staticmethod
    def minutes_to_live(budget_minutes: float) -> float:
        """Return after how many minutes every endpoint of a search is deleted, whatever happens.

        The search and the comparison each start an endpoint.
        """
        return budget_minutes + 2 * START_MINUTES + _MARGIN_MINUTES

    def most_usd(self, budget_minutes: float) -> float:
        """Return what the instances cost at most: two of them until the endpoints expire."""
        return _FINALISTS * self.usd_per_hour * self.minutes_to_live(budget_minutes) / 60

    def expires(self, budget_minutes: float) -> datetime:
        """Return when the endpoints of a search that begins now are deleted."""
        return datetime.now(UTC) + timedelta(minutes=self.minutes_to_live(budget_minutes))

    def check_budget(self, budget_minutes: float) -> None:
        """Refuse a search that may cost more than the budget.

        Raises:
            InvalidValueError: it may.
        """
        most = self.most_usd(budget_minutes)
        if self.budget_usd is None or most <= self.budget_usd + _ROUNDING:
            return
        minutes = floor(30 * self.budget_usd / self.usd_per_hour - self.minutes_to_live(0) + _ROUNDING)
        hint = f"set --budget-minutes {minutes}, or " if minutes >= 1 else ""
        enough = ceil(100 * (most - _ROUNDING)) / 100
        raise InvalidValueError(
            f"--budget-usd: {budget_minutes:g} minutes may cost {most:.2f} USD, got {self.budget_usd:g}; "
            f"{hint}raise --budget-usd to {enough:.2f}"
        )


@dataclass(frozen=True, slots=True)
class Quota:
    """How many instances of a type the account may have in endpoints.

    Args:
        instances: The quota; ``None`` if it could not be read.
        reason: Why it could not be read.
    """

    instances: int | None
    reason: str = ""

    @property
    def fits_comparison(self) -> bool:
        """Whether the present and the best configuration can run at once."""
        return self.instances is None or self.instances >= _FINALISTS

    def check(self, place: AwsPlace) -> None:
        """Refuse a search whose instances the account does not allow.

        Raises:
            InvalidValueError: the quota is too small.
        """
        needed = 1 if place.is_multi_model else _FINALISTS
        if self.instances is not None and self.instances < needed:
            raise InvalidValueError(
                f"quota: {_quota_name(place.instance_type)!r} must be at least {needed} in {place.region}, "
                f"got {self.instances}; ask for an increase in the console of Service Quotas, "
                "or use another --instance-type"
            )


def read_quota(reader: AwsReader, instance_type: str) -> Quota:
    """Ask Service Quotas how many instances the account may have; 0 is a usual answer."""
    try:
        for quota in _quotas(reader):
            if quota["QuotaName"] == _quota_name(instance_type):
                return Quota(int(quota["Value"]))
    except InvalidValueError as error:
        return Quota(None, f"The quota is not known ({' '.join(str(error).split())}).")
    return Quota(None, f"Service Quotas has no {_quota_name(instance_type)!r}.")


def _quotas(reader: AwsReader) -> Iterator[dict[str, Any]]:
    for page in reader.pages("service-quotas", "list_service_quotas", ServiceCode="sagemaker"):
        yield from page["Quotas"]


def _quota_name(instance_type: str) -> str:
    return f"{instance_type} for endpoint usage"


def fetch_price(reader: AwsReader, region: str, instance_type: str) -> float:
    """Ask the AWS Price List API for the price of an instance hour in US dollars.

    Raises:
        InvalidValueError: the list cannot be read, or has no price.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    make: Any = reader.session.client
    try:
        client = make("pricing", region_name=PRICE_LIST_REGION)
        return float(fetch_prices(client, region, [instance_type])[instance_type])
    except (BotoCoreError, ClientError) as error:
        raise InvalidValueError(
            f"AWS: the price list cannot be read ({error}); set --price-per-hour"
        ) from None
