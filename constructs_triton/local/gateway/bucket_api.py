"""The part of S3's API that ``TritonClient``, ``ModelLibrary`` and boto3's transfers use, for a folder.

Source: botocore's service model of s3 (rest-xml), with the bucket in the path.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape

from aiohttp import web

from constructs_triton.local.gateway.bucket_folder import BucketFolder, etag_of, no_such_key
from constructs_triton.local.gateway.runtime_errors import RuntimeApiError

__all__ = ["add_bucket_routes"]

_KEPT = "x-amz-meta-"
_GIVEN = "given.json"


def add_bucket_routes(application: web.Application, folder: BucketFolder) -> None:
    """Let an application serve the objects of a folder."""
    api = _BucketApi(folder)
    application.router.add_get("/{bucket}", api.list_objects)
    application.router.add_get("/{bucket}/{key:.+}", api.get)
    application.router.add_put("/{bucket}/{key:.+}", api.put)
    application.router.add_post("/{bucket}/{key:.+}", api.post)
    application.router.add_delete("/{bucket}/{key:.+}", api.delete)


class _BucketApi:
    def __init__(self, folder: BucketFolder) -> None:
        self._folder = folder

    async def list_objects(self, request: web.Request) -> web.Response:
        """ListObjectsV2, in one page."""
        prefix = request.query.get("prefix", "")
        rows = await asyncio.to_thread(self._rows, request.match_info["bucket"], prefix)
        return _xml("ListBucketResult", f"<IsTruncated>false</IsTruncated>{rows}")

    def _rows(self, bucket: str, prefix: str) -> str:
        return "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{_modified(path)}</LastModified>"
            f"<ETag>{escape(etag_of(path))}</ETag><Size>{path.stat().st_size}</Size></Contents>"
            for key, path in self._folder.objects(bucket, prefix)
        )

    async def get(self, request: web.Request) -> web.StreamResponse:
        """GetObject with ranges, and HeadObject."""
        try:
            path = self._folder.path_of(_location(request))
            if not path.is_file():
                raise no_such_key(_location(request))
        except RuntimeApiError as error:
            return _refusal(error)
        return web.FileResponse(path, headers=self._folder.metadata_of(_location(request)))

    async def put(self, request: web.Request) -> web.Response:
        """PutObject, with its conditions, or UploadPart."""
        try:
            if "uploadId" in request.query:
                part = self._folder.upload(request.query["uploadId"]) / _part_number(request)
                await _receive(request, part)
                return web.Response(headers={"ETag": etag_of(part)})
            self._check_conditions(request)
            complete = self._folder.partial_file()
            await _receive(request, complete)
            self._check_conditions(request)
            self._folder.place(_location(request), complete, _metadata(request))
        except RuntimeApiError as error:
            return _refusal(error)
        return web.Response(headers={"ETag": etag_of(self._folder.path_of(_location(request)))})

    async def post(self, request: web.Request) -> web.Response:
        """CreateMultipartUpload or CompleteMultipartUpload."""
        try:
            if "uploads" in request.query:
                upload = self._folder.new_upload()
                (upload / _GIVEN).write_text(json.dumps(_metadata(request)), encoding="utf-8")
                return _xml("InitiateMultipartUploadResult", f"<UploadId>{upload.name}</UploadId>")
            upload = self._folder.upload(request.query.get("uploadId", ""))
            metadata = json.loads((upload / _GIVEN).read_text(encoding="utf-8"))
            whole = await asyncio.to_thread(self._folder.join, upload)
            self._folder.place(_location(request), whole, metadata)
        except RuntimeApiError as error:
            return _refusal(error)
        etag = etag_of(self._folder.path_of(_location(request)))
        return _xml("CompleteMultipartUploadResult", f"<ETag>{escape(etag)}</ETag>")

    async def delete(self, request: web.Request) -> web.Response:
        """DeleteObject or AbortMultipartUpload."""
        try:
            if "uploadId" in request.query:
                shutil.rmtree(self._folder.upload(request.query["uploadId"]))
            else:
                self._folder.delete(_location(request))
        except RuntimeApiError as error:
            return _refusal(error)
        return web.Response(status=204)

    def _check_conditions(self, request: web.Request) -> None:
        if "x-amz-copy-source" in request.headers:
            raise RuntimeApiError(
                501, "NotImplemented", "a local run does not copy objects; upload the object again"
            )
        path = self._folder.path_of(_location(request))
        etag = etag_of(path) if path.is_file() else None
        wanted = request.headers.get("If-Match")
        if (wanted is not None and wanted != etag) or ("If-None-Match" in request.headers and etag):
            raise RuntimeApiError(
                412, "PreconditionFailed", "At least one of the preconditions you specified did not hold"
            )


def _part_number(request: web.Request) -> str:
    number = request.query.get("partNumber", "")
    if re.fullmatch("[1-9][0-9]{0,3}|10000", number, re.ASCII) is None:
        raise RuntimeApiError(
            400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive"
        )
    return number


async def _receive(request: web.Request, path: Path) -> None:
    with path.open("wb") as file:
        async for piece in request.content.iter_any():
            file.write(piece)


def _location(request: web.Request) -> str:
    return f"s3://{request.match_info['bucket']}/{request.match_info['key']}"


def _metadata(request: web.Request) -> dict[str, str]:
    """Return the headers of an upload that a download has too."""
    kept = {name.lower(): value for name, value in request.headers.items() if name.lower().startswith(_KEPT)}
    return {"Content-Type": request.headers.get("Content-Type", "binary/octet-stream"), **kept}


def _modified(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _xml(name: str, content: str) -> web.Response:
    return web.Response(text=f"<{name}>{content}</{name}>", content_type="application/xml")


def _refusal(error: RuntimeApiError) -> web.Response:
    text = f"<Error><Code>{error.code}</Code><Message>{escape(str(error))}</Message></Error>"
    return web.Response(status=error.status, text=text, content_type="application/xml")
