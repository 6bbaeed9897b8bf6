"""Reads a cloud assembly and publishes its assets without the CDK's command line."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import StackError
from .service_api import ServiceApi
from .template import Template

__all__ = ["Assembly"]


@dataclass(frozen=True)
class Assembly:
    """A synthesized assembly in a directory."""

    directory: Path

    def template(self, artifact: str) -> Template:
        """The template of a stack."""
        file = self._artifacts[artifact]["properties"]["templateFile"]
        return Template.parse((self.directory / file).read_text())

    def stack_name(self, artifact: str) -> str:
        """The name of the stack in AWS."""
        name: str = self._artifacts[artifact]["properties"].get("stackName", artifact)
        return name

    def environment(self, artifact: str) -> str:
        """The environment of a stack, ``aws://<account>/<Region>``; either may be unknown."""
        environment: str = self._artifacts[artifact]["environment"]
        return environment

    def stacks(self) -> list[str]:
        """The stack artifacts, each after the stacks that it depends on."""
        artifacts = self._artifacts
        names = [name for name, each in artifacts.items() if each["type"] == "aws:cloudformation:stack"]
        return sorted(names, key=lambda name: len(_ancestors(name, artifacts)))

    def stages(self) -> list[Assembly]:
        """The assemblies nested in this one."""
        nested = [each for each in self._artifacts.values() if each["type"] == "cdk:cloud-assembly"]
        return [Assembly(self.directory / each["properties"]["directoryName"]) for each in nested]

    @property
    def _artifacts(self) -> dict[str, Any]:
        manifest = json.loads((self.directory / "manifest.json").read_text())
        artifacts: dict[str, Any] = manifest["artifacts"]
        return artifacts

    def publish(self, api: ServiceApi) -> None:
        """Upload the file assets to the bucket that the templates use, as ``cdk deploy`` does."""
        for path in sorted(self.directory.glob("*.assets.json")):
            manifest = json.loads(path.read_text())
            if manifest.get("dockerImages"):
                raise StackError(f"{path.name}: image assets are not supported")
            for asset in manifest["files"].values():
                body = self._content(asset["source"])
                for bucket, key in _destinations(asset, api):
                    api.call("s3", "PutObject", Bucket=bucket, Key=key, Body=body)

    def _content(self, source: dict[str, Any]) -> bytes:
        path = self.directory / source["path"]
        if source["packaging"] == "file":
            content: bytes = path.read_bytes()
            return content
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for each in sorted(path.rglob("*")):
                if each.is_file():
                    archive.write(each, each.relative_to(path))
        return buffer.getvalue()


def _destinations(asset: dict[str, Any], api: ServiceApi) -> Iterator[tuple[str, str]]:
    known = {"AWS::AccountId": api.account, "AWS::Region": api.region, "AWS::Partition": "aws"}
    for destination in asset["destinations"].values():
        bucket = destination["bucketName"]
        for name, value in known.items():
            bucket = bucket.replace("${" + name + "}", value)
        yield bucket, destination["objectKey"]


def _ancestors(name: str, artifacts: dict[str, Any]) -> set[str]:
    direct = set(artifacts[name].get("dependencies", []))
    return direct.union(*(_ancestors(each, artifacts) for each in direct))
