"""``CapacityReservationConfig``: instances that are reserved in advance."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.validation.arguments import check_string
from constructs_triton.cdk.validation.limit_checks import check_spelling
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_token

PREFERENCES = ("capacity-reservations-only",)
# botocore sagemaker service model: MlReservationArn.
_ARN = re.compile(r"arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:[a-z0-9\-]{1,14}/.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReservationConfig:
    """A reservation whose instances a variant uses, such as a SageMaker training plan for
    inference.

    SageMaker starts instances of the variant in this reservation only. If it has no capacity left,
    they do not start, so the variant cannot scale above the reservation. Source: API reference,
    ProductionVariantCapacityReservationConfig.

    ``ml_reservation_arn``
        The ARN of the reservation.
    ``capacity_reservation_preference``
        ``"capacity-reservations-only"``, the only value and the default.

    Raises:
        InvalidValueError: not the ARN of a reservation, or a misspelled preference.
    """

    ml_reservation_arn: str
    capacity_reservation_preference: str = PREFERENCES[0]

    def __post_init__(self) -> None:
        arn = self.ml_reservation_arn
        check_string("capacity_reservation.ml_reservation_arn", arn)
        if not is_token(arn) and not (isinstance(arn, str) and _ARN.fullmatch(arn)):
            raise InvalidValueError(
                "capacity_reservation.ml_reservation_arn: must be the ARN of a reservation, got "
                f"{arn!r}; write it as "
                '"arn:aws:sagemaker:us-east-1:123456789012:training-plan/name"'
            )
        name = "capacity_reservation.capacity_reservation_preference"
        check_spelling(name, self.capacity_reservation_preference, PREFERENCES)


def render_capacity_reservation(
    reservation: CapacityReservationConfig,
) -> sagemaker.CfnEndpointConfig.CapacityReservationConfigProperty:
    """Return the property of the production variant."""
    return sagemaker.CfnEndpointConfig.CapacityReservationConfigProperty(
        capacity_reservation_preference=reservation.capacity_reservation_preference,
        ml_reservation_arn=reservation.ml_reservation_arn,
    )
