"""Which limits of SageMaker are those of whole numbers."""

from __future__ import annotations

import botocore.session
import pytest

from constructs_triton_core.facts import limits

RANGES = {
    name: limit
    for name, limit in vars(limits).items()
    if isinstance(limit, limits.RangeLimit) and limit.shape and not name.endswith("_SECONDS")
}


@pytest.mark.parametrize("name", RANGES)
def test_limit_is_whole_as_the_service_model_says(name: str) -> None:
    """A fraction that the API cannot take is refused at synth; seconds have the CDK's durations."""
    limit = RANGES[name]
    shape = botocore.session.get_session().get_service_model("sagemaker").shape_for(limit.shape)
    assert limit.is_whole is (shape.type_name in ("integer", "long"))
