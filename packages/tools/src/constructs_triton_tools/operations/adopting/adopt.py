"""Reads an endpoint, and writes a folder with an app that creates it as it runs today."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.drafts import (
    partial_folder,
    place_folder,
    place_of_draft,
    remove_abandoned,
)
from constructs_triton_core.untrusted.regular_files import explained
from constructs_triton_tools.operations.adopting.findings import Adoption
from constructs_triton_tools.operations.adopting.models import ModelReader
from constructs_triton_tools.operations.adopting.python_text import Options, literal
from constructs_triton_tools.operations.adopting.reading import Downloads, RecordingReader
from constructs_triton_tools.operations.adopting.refusals import (
    Switch,
    obstacles,
    refuse_unknown_members,
)
from constructs_triton_tools.operations.adopting.report_text import report_text
from constructs_triton_tools.operations.adopting.running_endpoint import (
    RunningEndpoint,
    read_running_endpoint,
)
from constructs_triton_tools.operations.adopting.stack.app_text import (
    TEST_TEXT,
    app_text,
    imported_text,
)
from constructs_triton_tools.operations.adopting.stack.endpoint_code import (
    add_component_endpoint,
    add_endpoint,
)
from constructs_triton_tools.operations.adopting.stack.stack_code import Repositories, StackCode

if TYPE_CHECKING:
    import boto3

SWITCHES: tuple[Switch, ...] = get_args(Switch)


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

    Raises:
        InvalidValueError: the folder has content, the endpoint cannot be read, or AWS cannot be
            reached.
    """
    if directory.is_dir():
        remove_abandoned(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InvalidValueError(
            f"{directory}: exists and is not an empty folder; choose another one with -o"
        )
    reader = RecordingReader(session)
    running = read_running_endpoint(reader, name)
    adoption = Adoption(name)
    code = StackCode(running, adoption, suffix="-cdk" if switch == "new-endpoint" else "")
    # On the disk of the app, which is moved there when it is complete.
    with (
        explained(directory, "cannot be written", "choose a folder on a disk with enough space"),
        partial_folder(place_of_draft(directory)) as scratch,
    ):
        app = scratch / "app"
        app.mkdir()
        downloads = Downloads(reader, scratch, max_download_bytes)
        add_stack(code, ModelReader(downloads, app, adoption), switch)
        adoption.not_read += dict.fromkeys(reader.not_read)
        if adoption.open_problems(accepted):
            return adoption
        adoption.carried += _carried(running)
        written = {**files, "app.py": app_text(code), "tests/test_stack.py": TEST_TEXT}
        written |= {
            f"answers/{each}.json": _json(answer) for each, answer in reader.answers.items()
        }
        if switch == "import":
            written["import.json"] = _json(
                {"Endpoint": {"EndpointArn": running.endpoint["EndpointArn"]}}
            )
            written["imported.py"] = imported_text(running)
        written["ADOPT.md"] = report_text(code, switch)
        for path, text in written.items():
            (app / path).parent.mkdir(parents=True, exist_ok=True)
            (app / path).write_text(text, encoding="utf-8")
        place_folder(app, directory)
    return adoption


def _carried(running: RunningEndpoint) -> Iterator[str]:
    for variant in running.variants:
        yield f"variant {variant['VariantName']} on {', '.join(instance_types_of(variant))}"

    for target in running.targets:
        bounds = f"{target['MinCapacity']} to {target['MaxCapacity']}"
        yield f"scaling of {target['ResourceId']}, {bounds}"

    for variant in running.endpoint.get("ProductionVariants", []):
        for image in variant.get("DeployedImages", []):
            yield (
                f"image {image.get('SpecifiedImage')}, which runs as {image.get('ResolvedImage')}; "
                "if the tag moves, give this digest to TritonImage.from_registry"
            )


def _json(value: object) -> str:
    return f"{json.dumps(value, indent=2)}\n"


def add_stack(code: StackCode, models: ModelReader, switch: Switch) -> None:
    """Add all statements. Without an app, there are none, and the reason is a final problem."""
    for problem, message in obstacles(code.running, switch):
        code.adoption.refuse(problem, message, is_final=True)
    if code.adoption.is_impossible:
        return
    refuse_unknown_members(code.running, code.adoption)
    role = "a new role with the permissions that the endpoint needs"
    code.adoption.differ("DescribeModel.ExecutionRoleArn", role)
    if code.running.hosts_components:
        code.adoption.differ("DescribeEndpointConfig.ExecutionRoleArn", role)
    naming: Options = {"endpoint_name": "ENDPOINT_NAME"}
    if switch == "take-over":
        naming["adopt_existing"] = "True"
    add = add_component_endpoint if code.running.hosts_components else add_endpoint
    endpoint = add(code, Repositories(code, models), naming)
    if endpoint is None:
        return
    if switch == "import":
        code.run(f"{endpoint}.cfn_endpoint.override_logical_id", '"Endpoint"')
    _add_tags(code, endpoint)
    code.run("cdk.CfnOutput", "self", '"EndpointName"', value=f"{endpoint}.endpoint_name")


def _add_tags(code: StackCode, endpoint: str) -> None:
    running = code.running
    tags = running.tags.get(running.endpoint["EndpointArn"], {})
    for name, value in sorted(tags.items()):
        code.run(f"cdk.Tags.of({endpoint}).add", literal(name), code.value(name, value, "tag"))
    for arn, others in running.tags.items():
        if others != tags and ":inference-component/" not in arn:
            kind, _, resource = arn.split(":")[5].partition("/")
            code.adoption.differ(f"ListTags[{kind}]", f"{resource} has the tags of the endpoint")
