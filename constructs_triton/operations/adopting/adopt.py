"""Reads an endpoint, and writes an app that creates it as it runs today."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton.errors import InvalidValueError
from constructs_triton.operations.adopting.app_text import TEST_TEXT, app_text, imported_text, stack_name
from constructs_triton.operations.adopting.component_code import add_component_endpoint
from constructs_triton.operations.adopting.downloads import Downloads
from constructs_triton.operations.adopting.endpoint_code import Repositories, Switch, add_endpoint, add_output
from constructs_triton.operations.adopting.findings import Adoption
from constructs_triton.operations.adopting.models import ModelReader
from constructs_triton.operations.adopting.reading import RecordingReader
from constructs_triton.operations.adopting.report_text import report_text
from constructs_triton.operations.adopting.running_endpoint import RunningEndpoint, read_running_endpoint
from constructs_triton.operations.adopting.stack_code import StackCode

if TYPE_CHECKING:
    import boto3

__all__ = ["SWITCHES", "add_stack", "adopt_endpoint"]

SWITCHES: tuple[Switch, ...] = ("take-over", "import", "new-endpoint")
_NEW = "-cdk"
_LONGEST_NAME = 63


def adopt_endpoint(
    session: boto3.Session,
    name: str,
    directory: Path,
    *,
    files: Mapping[str, str],
    accepted: Collection[str] = (),
    switch: Switch = "take-over",
    max_download_bytes: int = 1 << 30,
) -> Adoption:
    """Write an app for an endpoint into a new folder. AWS is only read.

    Nothing is written if there are problems that are not accepted.

    Args:
        session: boto3 session with the Region and credentials.
        name: Name of the endpoint.
        directory: Folder that does not exist, or is empty.
        files: Further files of the app, by their path.
        accepted: Codes of problems that are accepted.
        switch: How the app takes the place of the endpoint.
        max_download_bytes: Bytes of model archives that may be downloaded.

    Raises:
        InvalidValueError: the folder has content, the endpoint cannot be read, or AWS cannot be reached.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InvalidValueError(f"{directory}: exists and is not an empty folder; choose another one with -o")
    reader = RecordingReader(session)
    running = read_running_endpoint(reader, name)
    adoption = Adoption(name)
    operations = ["DescribeModel", *(["DescribeEndpointConfig"] if running.components else [])]
    for each in operations:
        adoption.differ(f"{each}.ExecutionRoleArn", "a new role with the permissions that the endpoint needs")
    _check_state(running, adoption, switch)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".adopt-", dir=directory.parent) as scratch:
        app = Path(scratch, "app")
        app.mkdir()
        downloads = Downloads(reader, Path(scratch), max_download_bytes)
        code = StackCode(running, adoption)
        models = ModelReader(downloads, app, adoption)
        new_name = f"{name[: _LONGEST_NAME - len(_NEW)]}{_NEW}" if switch == "new-endpoint" else name
        endpoint = None if adoption.is_impossible else add_stack(code, models, switch)
        adoption.not_read += [each for each in reader.not_read if each not in adoption.not_read]
        if endpoint is None or adoption.open_problems(accepted):
            return adoption
        _note_carried(running, adoption)
        _write(app, files, {"app.py": app_text(code, new_name), "tests/test_stack.py": TEST_TEXT})
        _write_answers(app, reader)
        report = report_text(running, adoption, switch, endpoint_name=new_name, stack=stack_name(new_name))
        _write(app, {"ADOPT.md": report}, _mapping(running, switch))
        if directory.exists():
            directory.rmdir()
        shutil.move(app, directory)
    return adoption


def _check_state(running: RunningEndpoint, adoption: Adoption, switch: Switch) -> None:
    status = running.endpoint["EndpointStatus"]
    if status != "InService":
        adoption.refuse(
            "endpoint-status",
            f"endpoint {running.name}: must have status InService, got {status}; wait until its update has "
            "ended, or repair it",
            is_final=True,
        )
    if running.stack and switch != "new-endpoint":
        adoption.refuse(
            "stack",
            f"endpoint {running.name}: belongs to CloudFormation stack {running.stack}; change this stack "
            "instead, or use --switch new-endpoint",
            is_final=True,
        )
    for each in running.variants:
        if each.get("ServerlessConfig"):
            adoption.refuse(
                "serverless-config",
                f"variant {each['VariantName']}: is serverless, which has no GPU and no construct here; "
                "leave it as it is",
                is_final=True,
            )
    for name, model in running.models.items():
        if len(model.get("Containers", [])) > 1:
            adoption.refuse(
                "containers",
                f"model {name}: is a serial pipeline of {len(model['Containers'])} containers, which has "
                "no construct here; make it one ensemble",
                is_final=True,
            )


def add_stack(code: StackCode, models: ModelReader, switch: Switch) -> str | None:
    """Add the endpoint, its scaling, its tags and its output; ``None`` if that is not possible."""
    running = code.running
    repositories = Repositories(code, models, len(running.models))
    has_components = any("ModelName" not in each for each in running.variants)
    add = add_component_endpoint if has_components else add_endpoint
    endpoint = add(code, repositories, switch)
    if endpoint is not None:
        add_output(code, endpoint)
    return endpoint


def _note_carried(running: RunningEndpoint, adoption: Adoption) -> None:
    for each in running.variants:
        types = [pool["InstanceType"] for pool in each.get("InstancePools", [])] or [each["InstanceType"]]
        adoption.carried.append(f"variant {each['VariantName']} on {', '.join(types)}")
    for target in running.targets:
        adoption.carried.append(
            f"scaling of {target['ResourceId']}, {target['MinCapacity']} to {target['MaxCapacity']}"
        )
    for variant in running.endpoint.get("ProductionVariants", []):
        for image in variant.get("DeployedImages", []):
            adoption.carried.append(
                f"image {image.get('SpecifiedImage')}, which runs as {image.get('ResolvedImage')}; if the "
                "tag moves, give this digest to TritonImage.from_registry"
            )


def _mapping(running: RunningEndpoint, switch: Switch) -> dict[str, str]:
    if switch != "import":
        return {}
    mapping = {"Endpoint": {"EndpointArn": running.endpoint["EndpointArn"]}}
    return {"import.json": f"{json.dumps(mapping, indent=2)}\n", "imported.py": imported_text(running)}


def _write(app: Path, *groups: Mapping[str, str]) -> None:
    for files in groups:
        for name, text in files.items():
            path = app / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def _write_answers(app: Path, reader: RecordingReader) -> None:
    answers: Mapping[str, Any] = reader.answers
    _write(app, {f"answers/{name}.json": f"{json.dumps(each, indent=2)}\n" for name, each in answers.items()})
