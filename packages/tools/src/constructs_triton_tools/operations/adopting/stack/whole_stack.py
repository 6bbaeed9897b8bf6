"""The statements of the whole stack: the endpoint with its models and its scaling, its tags and an output."""

from __future__ import annotations

from constructs_triton_tools.operations.adopting.members import Options
from constructs_triton_tools.operations.adopting.models import ModelReader
from constructs_triton_tools.operations.adopting.python_text import literal
from constructs_triton_tools.operations.adopting.refusals import Switch, obstacles, refuse_unknown_members
from constructs_triton_tools.operations.adopting.stack.component_code import add_component_endpoint
from constructs_triton_tools.operations.adopting.stack.endpoint_code import add_endpoint
from constructs_triton_tools.operations.adopting.stack.repositories import Repositories
from constructs_triton_tools.operations.adopting.stack.stack_code import StackCode


def add_stack(code: StackCode, models: ModelReader, switch: Switch) -> None:
    """Add all statements. Without an app, there are none, and the reason is a final problem."""
    for each, message in obstacles(code.running, switch):
        code.adoption.refuse(each, message, is_final=True)
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
