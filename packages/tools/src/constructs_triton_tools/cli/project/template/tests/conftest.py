"""What the tests share. The package constructs-triton brings the fixture triton_client."""

import os

# The CDK's checks of the template take most of the time of the tests. `cdk synth` and CI run them.
# The CDK reads this variable when it is imported.
os.environ.setdefault("CDK_VALIDATION", "false")

import pytest
from app import build_app


@pytest.fixture(scope="module")
def triton_app():
    """The app whose endpoint the tests call."""
    return build_app()


@pytest.fixture(scope="module")
def stack(triton_app):
    """The stack of the endpoint."""
    return triton_app.node.find_child("Endpoint")
