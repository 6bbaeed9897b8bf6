"""The bearer token of SageMaker's OpenAI path: the URL of a signed request, in base64.

Source: AWS's wheel sagemaker-core 2.27.0, ``sagemaker.core.token_generator``, with which a test compares it.
"""

from __future__ import annotations

import base64
from typing import Any

from constructs_triton_core.errors import InvalidValueError

__all__ = ["LONGEST_SECONDS", "sign_bearer_token"]

LONGEST_SECONDS = 43_200
_HOST = "sagemaker.amazonaws.com"


def sign_bearer_token(credentials: Any, region: str, valid_seconds: int) -> str:
    """Return a token, signed with botocore's ``credentials``; errors as ``SageMakerTransport.bearer_token``."""
    from botocore.auth import SigV4QueryAuth  # noqa: PLC0415 - boto3 is imported at the first call
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - likewise
    from botocore.exceptions import NoCredentialsError  # noqa: PLC0415 - likewise

    if not 1 <= valid_seconds <= LONGEST_SECONDS:
        raise InvalidValueError(
            f"valid_seconds: must be from 1 to {LONGEST_SECONDS}, got {valid_seconds}; write 3600 for one hour"
        )
    if credentials is None:
        raise NoCredentialsError
    parameters = {"Action": "CallWithBearerToken"}
    request = AWSRequest("POST", f"https://{_HOST}/", headers={"host": _HOST}, params=parameters)
    frozen = credentials.get_frozen_credentials()  # one set of keys, although they may be renewed meanwhile
    SigV4QueryAuth(frozen, "sagemaker", region, expires=valid_seconds).add_auth(request)
    signed = f"{request.url.removeprefix('https://')}&Version=1"
    return f"sagemaker-api-key-{base64.b64encode(signed.encode()).decode()}"
