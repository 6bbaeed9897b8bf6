"""The packages that `make` installs."""

from __future__ import annotations

import base64
import hashlib
from importlib.metadata import distribution

SCHEMA = "aws_cdk/cloud_assembly_schema/__init__.py"


def test_the_schema_is_that_of_aws_cdk_lib() -> None:
    """Of the two packages that contain this file, aws-cdk-lib was installed last;
    its Annotations need it.
    """
    (file,) = (each for each in distribution("aws-cdk-lib").files or [] if str(each) == SCHEMA)
    digest = hashlib.sha256(file.read_binary()).digest()
    expected = file.hash.value if file.hash else None
    assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == expected, (
        f"{SCHEMA} is another package's; "
        "run: uv pip install --reinstall-package aws-cdk-lib aws-cdk-lib"
    )
