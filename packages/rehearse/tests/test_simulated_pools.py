"""What the simulated account refuses in a variant with several instance types."""

from __future__ import annotations

from typing import Any

import pytest
from moto.sagemaker.exceptions import ValidationError

from cdk_rehearse.endpoints.instance_pools import check_pools


def pool(name: str, priority: int) -> dict[str, Any]:
    return {"InstanceType": name, "Priority": priority}


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        ({"InstancePools": [pool("ml.g5.xlarge", 1)], "InstanceType": "ml.g5.xlarge"}, "together with Ins"),
        ({"InstancePools": [pool("ml.g5.xlarge", 1)], "ServerlessConfig": {}}, "together with InstanceType"),
        ({"InstancePools": []}, "1 to 5 members"),
        ({"InstancePools": [pool(f"ml.g5.{n}xlarge", n) for n in range(1, 7)]}, "1 to 5 members"),
        ({"InstancePools": [pool("ml.g5.xlarge", 1), pool("ml.g5.xlarge", 2)]}, "Each InstanceType"),
        ({"InstancePools": [pool("ml.g5.xlarge", 1), pool("ml.g6.xlarge", 1)]}, "Each Priority"),
    ],
)
def test_pools_that_are_refused(variant: dict[str, Any], message: str) -> None:
    """What SageMaker documents as an error, and what it does not document."""
    with pytest.raises(ValidationError) as found:
        check_pools([variant])
    assert message in str(found.value)


def test_pools_that_are_accepted() -> None:
    """Several types with their priorities, and variants without pools."""
    check_pools(
        [{"InstancePools": [pool("ml.g5.xlarge", 2), pool("ml.g6.xlarge", 1)]}, {"InstanceType": "a"}]
    )
