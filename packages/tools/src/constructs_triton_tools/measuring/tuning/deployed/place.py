"""SageMaker as the place of a search: what it checks before, and the candidates that run there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from constructs_triton_client import Invocation
from constructs_triton_core.aws_reader import AwsReader
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.tuning.deployed.instances import START_MINUTES, AwsInstances
from constructs_triton_tools.measuring.tuning.deployed.servers import DeployedServers
from constructs_triton_tools.measuring.tuning.listener import TuneListener
from constructs_triton_tools.measuring.tuning.preparation import Machine, TuneOptions
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from constructs_triton_tools.planning.price_list import PRICE_LIST_REGION, fetch_prices

__all__ = ["AwsPlace", "fetch_price"]


class AwsPlace(AwsInstances):
    """Endpoints of SageMaker. Nothing is created before a candidate is started."""

    def __str__(self) -> str:
        how = "on one multi-model endpoint" if self.is_multi_model else "on endpoints in turn"
        return f"{self.image} on {self.instance_type}, {how}"

    @property
    def machine(self) -> Machine:
        """The hardware that runs the candidates."""
        gpus = (self.hardware.gpu_model or "GPU",) * (self.hardware.gpus or 0)
        return Machine(self.hardware.vcpus or 1, self.instance_type, gpus)

    @property
    def start_seconds(self) -> float:
        """What the start of a candidate takes."""
        return 10.0 if self.is_multi_model else 60.0 * START_MINUTES / 3

    def check(self, repository: TunedRepository, options: TuneOptions) -> str:  # noqa: ARG002 - any model runs
        """Refuse a search that the budget or the quota does not allow."""
        self.check_budget(options.budget_minutes)
        self.check_quota()
        return ""

    def open(
        self,
        repository: TunedRepository,
        requests: Sequence[Invocation],
        options: TuneOptions,
        listener: TuneListener,
    ) -> DeployedServers:
        """Return what starts candidates here; nothing is created yet."""
        return DeployedServers(repository, requests, options, listener, self)


def fetch_price(reader: AwsReader, instance_type: str) -> float:
    """Ask the AWS Price List API for the price of an instance hour in US dollars.

    Raises:
        InvalidValueError: the list cannot be read, or has no price.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    session: Any = reader.session
    try:
        client = session.client("pricing", region_name=PRICE_LIST_REGION)
        return float(fetch_prices(client, session.region_name, [instance_type])[instance_type])
    except (BotoCoreError, ClientError) as error:
        raise InvalidValueError(
            f"AWS: the price list cannot be read ({error}); set --price-per-hour"
        ) from None
