"""What S3 asks a role for: the action itself, the source of a copy, tags, and the KMS keys of
objects.

Sources: S3 API reference, "CopyObject", "DeleteObjects" and "HeadObject"; S3 user guide, "Uploading
and copying objects using multipart upload", section "Multipart upload API and permissions" (a key
needs kms:Decrypt beside kms:GenerateDataKey, since S3 reads the encrypted parts before it completes
the upload).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

from ..moto_account.backends import tags_of
from ..moto_account.requests import SignedRequest
from ..services.service_api import ServiceApi

Need = tuple[str, str, Mapping[str, str]]
"""An action, its resource and the request's context."""


def services_of_s3(region: str) -> list[str]:
    """The values that ``kms:ViaService`` may have; in China no AWS document says which,
    so all are needed.
    """
    services = [f"s3.{region}.amazonaws.com"]
    if region.startswith("cn-"):
        services.append(f"s3.{region}.amazonaws.com.cn")
    return services


@dataclass
class S3Needs:
    """The permissions of requests to S3."""

    api: ServiceApi

    def of(self, request: SignedRequest) -> Iterator[Need]:
        """The permissions of one request, whose resource is the ARN of its bucket or object."""
        action = request.action
        resource = request.resource
        if action in ("DeleteObjects", "DeleteObject") and "delete" in request.query:
            yield from _of_deleting(request)
            return
        prefix = request.query.get("prefix")
        yield f"s3:{action}", resource, {} if prefix is None else {"s3:prefix": prefix[0]}
        source = request.headers.get("x-amz-copy-source")
        if source is not None:
            yield from self._of_source(request, unquote(source).lstrip("/"), resource)
        if action == "GetObject":
            yield from self._of_reading(request)
        elif action == "PutObject":
            yield from self._of_writing(request)

    def key_of(self, resource: str) -> str | None:
        """The ARN of the KMS key that encrypts an object, if one does."""
        found = self.object(resource)
        if found is None or not found.kms_key_id:
            return None
        return key_arn(self.api, found.kms_key_id)

    def object(self, resource: str) -> Any:
        """The object of an ARN, or ``None``."""
        bucket, _, key = resource.removeprefix("arn:aws:s3:::").partition("/")
        found = self.bucket(bucket)
        return None if found is None else found.keys.get(key)

    def bucket(self, name: str) -> Any:
        """A bucket of the account, or ``None``."""
        return self.api.backend("s3").buckets.get(name)

    def _of_source(self, request: SignedRequest, source: str, resource: str) -> Iterator[Need]:
        """Yield what reading the source of a copy needs."""
        arn = f"arn:aws:s3:::{source}"
        yield "s3:GetObject", arn, {}
        yield from self._of_key("kms:Decrypt", self.key_of(arn))
        found = self.object(arn.partition("?")[0])
        tags = {} if found is None else tags_of(self.api.backend("s3"), found)
        is_whole = "uploadId" not in request.query
        if is_whole and request.headers.get("x-amz-tagging-directive") != "REPLACE" and tags:
            yield "s3:GetObjectTagging", arn, {}
            yield "s3:PutObjectTagging", resource, {}

    def _of_reading(self, request: SignedRequest) -> Iterator[Need]:
        """Yield what GetObject and HeadObject need."""
        resource = request.resource
        found = self.object(resource)
        if found is None:
            # Without permission to list the bucket, S3 answers 403 for a missing key, not 404.
            yield "s3:ListBucket", resource.partition("/")[0], {}
        elif request.method == "GET" or request.headers.get("x-amz-checksum-mode") == "ENABLED":
            yield from self._of_key("kms:Decrypt", self.key_of(resource))

    def decides_only_the_status(self, need: Need, request: SignedRequest) -> bool:
        """Whether a need decides with which status a missing object is answered, and no more."""
        action, _, _ = need
        return action == "s3:ListBucket" and "/" in request.resource.removeprefix("arn:aws:s3:::")

    def _of_writing(self, request: SignedRequest) -> Iterator[Need]:
        """Yield the permissions for keys that writing an object needs."""
        given = request.headers.get("x-amz-server-side-encryption-aws-kms-key-id")
        bucket = request.resource.removeprefix("arn:aws:s3:::").partition("/")[0]
        key = key_arn(self.api, given) if given else self.default_key(bucket)
        if "uploadId" not in request.query:
            yield from self._of_key("kms:GenerateDataKey", key)
        if "uploads" in request.query or "uploadId" in request.query:
            yield from self._of_key("kms:Decrypt", key)

    def _of_key(self, action: str, key: str | None) -> Iterator[Need]:
        if key is not None:
            for service in services_of_s3(self.api.region):
                yield action, key, {"kms:ViaService": service}

    def default_key(self, bucket_name: str) -> str | None:
        """The ARN of the KMS key that a bucket encrypts new objects with, if it has one."""
        bucket = self.bucket(bucket_name)
        if bucket is None or not bucket.encryption:
            return None
        default = bucket.encryption["Rule"]["ApplyServerSideEncryptionByDefault"]
        given = default.get("KMSMasterKeyID")
        return key_arn(self.api, given) if given else None


def _of_deleting(request: SignedRequest) -> Iterator[Need]:
    """DeleteObjects is allowed or denied for each key; a version needs another action."""
    bucket, _, _ = request.resource.partition("/")
    for deleted in ElementTree.fromstring(request.body).iterfind("{*}Object"):
        has_version = deleted.find("{*}VersionId") is not None
        action = "s3:DeleteObjectVersion" if has_version else "s3:DeleteObject"
        yield action, f"{bucket}/{deleted.findtext('{*}Key')}", {}


def key_arn(api: ServiceApi, key: str) -> str | None:
    """The ARN of a KMS key that is given by ID, ARN, alias or ARN of an alias.

    ``None`` for an alias that no stack of the account has: which key it names is not known.
    """
    _, is_alias, name = key.rpartition("alias/")
    if is_alias:
        for stored in api.backend("kms").keys.values():
            if f"alias/{name}" in stored.aliases:
                return str(stored.arn)
        return None
    if key.startswith("arn:"):
        return key
    return f"arn:aws:kms:{api.region}:{api.account}:key/{key}"
