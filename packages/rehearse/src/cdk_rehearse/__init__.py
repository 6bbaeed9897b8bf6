"""A simulated AWS account in which templates, and a real ``cdk deploy``, run from bootstrap to
destroy.

moto provides the services. CloudFormation is part of this package, since moto's own reports success
for resources that it skips: it resolves templates, orders resources, calls the services through
boto3, runs this library's deploy-time functions with the credentials of their roles, and rolls
back.

``pip install cdk-rehearse`` installs what it needs. ``__init__.pyi`` lists the public names.
Each is imported when it is first used.
"""

from typing import Any

from constructs_triton_core import OWN_PACKAGES, same_version

__version__ = same_version("cdk-rehearse", "0.1.0.dev0")

from constructs_triton_core.errors import MissingDependencyError
from constructs_triton_core.public_names import attach

_load, __dir__, __all__ = attach(__name__, __file__)


def __getattr__(name: str) -> Any:
    try:
        return _load(name)
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", *OWN_PACKAGES):
            raise
        raise MissingDependencyError(
            f"cdk_rehearse: {package} is not installed as required ({error}); "
            "run `pip install cdk-rehearse`"
        ) from error
