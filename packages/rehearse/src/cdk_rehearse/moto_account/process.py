"""The state of moto, which belongs to the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_api._internal import mock_random
from moto.moto_api._internal.models import moto_api_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from . import application_autoscaling, functions, iam, kms, s3, sagemaker, sagemaker_runtime, server
from .differences import Replacement

__all__ = ["APPLICATION", "DEFAULT_ACCOUNT_ID", "begun", "patches", "repeat_ids"]

#: It compiles the routes of each service once.
APPLICATION = DomainDispatcherApplication(create_backend_app)


@contextmanager
def begun(account: str) -> Iterator[None]:
    """Begin an empty account, with the policies of AWS and without its machine images."""
    settings = {
        "MOTO_ACCOUNT_ID": account,
        "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",
        "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
    }
    with _environment(settings), iam.parsed_policies():
        moto_api_backend.reset()
        repeat_ids()
        yield


def repeat_ids() -> None:
    """Generate the same IDs again, so that two rehearsals of an update are equal."""
    mock_random.seed(0)


def patches() -> list[Replacement]:
    """Return all replacements that need nothing but moto itself."""
    services = (application_autoscaling, functions, iam, kms, s3, sagemaker, sagemaker_runtime)
    return [*server.patches(), *(patch for service in services for patch in service.patches())]


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables, and restore the former ones at the end."""
    former = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
