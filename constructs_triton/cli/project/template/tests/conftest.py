"""What the tests share. The package constructs-triton brings the fixture triton_client."""

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
