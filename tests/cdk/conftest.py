"""The stack that most tests of the constructs use."""

from __future__ import annotations

import aws_cdk as cdk
import pytest
from cdk_apps import make_stack


@pytest.fixture
def stack() -> cdk.Stack:
    return make_stack()
