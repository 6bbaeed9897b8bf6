"""The bearer token of SageMaker's OpenAI path.

Source: AWS's ``sagemaker.core.token_generator``, 2.27.0.
"""

from __future__ import annotations

import base64
from typing import Any

from constructs_triton_core.errors import InvalidValueError

__all__ = ["LONGEST_SECONDS", "sign_bearer_token"]

LONGEST_SECONDS = 43_200
_HOST = "sagemaker.amazonaws.com"


def sign_bearer_token(credentials: Any, region: str, valid_seconds: int) -> str:
    """Return a token, signed with botocore's credentials;
    errors as ``SageMakerTransport.bearer_token``.
    """
    from botocore import auth, awsrequest, exceptions  # noqa: PLC0415 - boto3 is imported at the first call

    if not 1 <= valid_seconds <= LONGEST_SECONDS:
        raise InvalidValueError(
            f"valid_seconds: must be from 1 to {LONGEST_SECONDS}, "
            f"got {valid_seconds}; write 3600 for an hour"
        )
    if credentials is None:
        raise exceptions.NoCredentialsError
    url = f"https://{_HOST}/?Action=CallWithBearerToken"
    request = awsrequest.AWSRequest("POST", url, headers={"host": _HOST})
    # One set of keys, although botocore may renew them while the token is signed.
    frozen = credentials.get_frozen_credentials()
    auth.SigV4QueryAuth(frozen, "sagemaker", region, expires=valid_seconds).add_auth(request)
    signed = f"{str(request.url).removeprefix('https://')}&Version=1"
    return f"sagemaker-api-key-{base64.b64encode(signed.encode()).decode()}"
