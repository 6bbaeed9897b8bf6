"""A KMS key that is denied, disabled or pending deletion, at each call of the model sync."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from sync_requests import PART, SOURCE, CloudFormation, Context, make_event, put_archive
from test_files import files_event

from constructs_triton_functions import retries
from constructs_triton_functions.model_sync import handler

SOURCE_KEY, KEY = (f"arn:aws:kms:us-east-1:123456789012:key/{name}" for name in ("assets", "mine"))
#: S3's status, code and message. It names the key only if the key itself is the problem.
STATES = {
    "denied": (403, "AccessDenied", "User is not authorized to perform: kms:Decrypt", "allow this"),
    "disabled": (400, "KMS.DisabledException", f"{KEY} is disabled.", "aws kms enable-key"),
    "pending deletion": (
        *(400, "KMS.KMSInvalidStateException"),
        f"{KEY} is pending deletion.",
        "aws kms cancel-key-deletion",
    ),
    "deleted": (400, "KMS.NotFoundException", "Key does not exist", "encryption_key"),
}
#: What needs a permission for a key. HeadObject needs it only to return checksums.
ARCHIVE_CALLS = (
    *("GetObject", "HeadObject", "CopyObject", "CreateMultipartUpload", "UploadPartCopy"),
    *("CompleteMultipartUpload", "PutObject"),
)
Refuse = Callable[[str, str], None]


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch, small_parts: None) -> Refuse:
    """``refuse(state, operation)`` lets S3 refuse these calls; with an empty operation, none."""
    make_client = handler._client
    refused = ["", ""]

    def intercept(request: Any, event_name: str, **_: object) -> AWSResponse | None:
        state, operation = refused
        # The list of the archives is in the bucket of the assets, which has another key.
        is_of_index = operation.endswith(" of the index")
        if is_of_index and "index.json" not in request.url:
            return None
        if event_name.rsplit(".", 1)[1] != operation.removesuffix(" of the index"):
            return None
        if operation == "HeadObject" and "x-amz-checksum-mode" not in request.headers:
            return None
        status, code, message, *_advice = STATES[state]
        body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
        sent = b"" if request.method == "HEAD" else body
        raw = SimpleNamespace(stream=lambda: iter([sent]))
        return AWSResponse(request.url, status, HTTPHeaders(), raw)

    def make() -> Any:
        client = make_client()
        client.meta.events.register("before-send.s3", intercept)
        return client

    def refuse(state: str, operation: str) -> None:
        refused[:] = state, operation

    monkeypatch.setattr(retries, "PROPAGATION_SECONDS", 0)
    monkeypatch.setattr(handler, "_client", make)
    return refuse


def archives_event(
    s3: Any, cloudformation: CloudFormation, kind: str, *contents: bytes
) -> dict[str, Any]:
    """A request for archives with these contents; they and their list have the key of the
    assets.
    """
    archives = [put_archive(s3, f"{body[:1].hex() * 2}x", body) for body in contents]
    event = make_event(s3, cloudformation, kind, archives, EncryptionKey=KEY)
    encrypt_assets(s3)
    return event


def encrypt_assets(s3: Any) -> None:
    for each in s3.list_objects_v2(Bucket=SOURCE)["Contents"]:
        s3.copy_object(
            Bucket=SOURCE,
            Key=each["Key"],
            CopySource={"Bucket": SOURCE, "Key": each["Key"]},
            ServerSideEncryption="aws:kms",
            SSEKMSKeyId=SOURCE_KEY,
        )


def expect_reason(reason: str, state: str, operation: str) -> None:
    """The reason names the call, a key, what to do about it, and what to do then."""
    assert operation in reason
    assert SOURCE_KEY in reason or KEY in reason
    # An answer without a body has no code, so it gets the general advice.
    assert STATES[state][-1] in reason or (operation == "HeadObject" and "allow this" in reason)
    assert "then deploy again" in reason


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("operation", ARCHIVE_CALLS)
def test_reason_names_the_key_and_the_call(
    s3: Any, cloudformation: CloudFormation, refuse: Refuse, state: str, operation: str
) -> None:
    """Nothing is named in the index, and the same request succeeds once the key is usable."""
    event = archives_event(s3, cloudformation, "Create", b"small", b"L" * (2 * PART))
    refuse(state, operation)
    handler.handler(event, Context())
    failed = cloudformation.responses[-1]
    assert failed["Status"] == "FAILED"
    expect_reason(failed["Reason"], state, operation)
    refuse(state, "")
    handler.handler(event, Context())
    assert cloudformation.responses[-1]["Status"] == "SUCCESS"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("operation", ["GetObject", "PutObject"])
def test_reason_for_small_files(
    s3: Any, cloudformation: CloudFormation, refuse: Refuse, state: str, operation: str
) -> None:
    """The zip with small files, and the files, have keys too."""
    event = files_event(
        s3, cloudformation, "Create", {"net/config.pbtxt": b"x"}, {}, EncryptionKey=KEY
    )
    encrypt_assets(s3)
    refuse(state, operation)
    handler.handler(event, Context())
    expect_reason(cloudformation.responses[-1]["Reason"], state, operation)


@pytest.mark.parametrize("state", STATES)
def test_rollback_needs_no_key(
    s3: Any, cloudformation: CloudFormation, refuse: Refuse, state: str
) -> None:
    """Content in place is accepted while the index cannot be read; new content fails with a
    reason.
    """
    old = archives_event(s3, cloudformation, "Create", b"old")
    handler.handler(old, Context())
    new = archives_event(s3, cloudformation, "Update", b"new")
    new["OldResourceProperties"] = old["ResourceProperties"]
    back = {**new, "ResourceProperties": old["ResourceProperties"]}
    back["OldResourceProperties"] = new["ResourceProperties"]

    refuse(state, "GetObject of the index")
    for event in (new, back):
        handler.handler(event, Context())
    failed, succeeded = cloudformation.responses[-2:]
    assert (failed["Status"], succeeded["Status"]) == ("FAILED", "SUCCESS")
    assert "index.json: cannot be decrypted" in failed["Reason"]
    assert KEY in failed["Reason"]
