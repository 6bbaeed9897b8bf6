"""The text of ADOPT.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from constructs_triton_core.cloud_assembly.endpoints import containers_of
from constructs_triton_core.untrusted.secrets import is_secret
from constructs_triton_core.visible_text import visible
from constructs_triton_tools.operations.adopting.findings import Adoption
from constructs_triton_tools.operations.adopting.python_text import Answer
from constructs_triton_tools.operations.adopting.refusals import Switch
from constructs_triton_tools.operations.adopting.running_endpoint import (
    RunningEndpoint,
    RunningRole,
)
from constructs_triton_tools.operations.adopting.stack.app_text import stack_name
from constructs_triton_tools.operations.adopting.stack.stack_code import StackCode
from constructs_triton_tools.operations.component_state import specifications_of

#: A role with more actions is described by their services.
_MOST_ACTIONS = 20
_READABLE = (
    "`app.py` and `answers/` have the values of these variables and tags. Passphrases, PINs and "
    "UUIDs look like other values, so look for secrets before you commit this folder. In `app.py`, "
    'replace a secret by `cdk.CfnParameter(self, "Pin", no_echo=True).value_as_string`; '
    "in `answers/`, by `***`."
)
_DELETE_COMPONENT = "delete-inference-component --inference-component-name {}"


def report_text(code: StackCode, switch: Switch) -> str:
    """Return ADOPT.md for a stack that is complete."""
    running = code.running
    adoption = code.adoption
    differences = [
        f"`{difference.path}`: {difference.reason}" for difference in adoption.differences
    ]
    problems = [f"`{problem.code}`: {problem.message}" for problem in adoption.problems]
    sections = [
        f"# Endpoint {running.name} as an app",
        (
            f"`constructs-triton adopt` read the endpoint in account {running.account}, "
            f"{running.region}, and wrote this folder. `answers/` has what AWS answered, with "
            "`***` in place of what looks like a secret."
        ),
        *_list("Carried over", adoption.carried),
        *_list("Different on purpose", differences),
        *_list("Could not be read", _not_readable(adoption)),
        *_list("Errors and gaps that you accepted", problems),
        *_readable_values(running),
        "## Steps",
        "\n".join(f"{number}. {step}" for number, step in enumerate(_steps(code, switch), 1)),
        *_list("What stays behind", list(_left(running, switch))),
    ]
    return "\n\n".join(sections) + "\n"


def _readable_values(running: RunningEndpoint) -> Iterator[str]:
    """Yield a section with the variables and tags that no rule recognizes as secrets."""
    found = {f"tags of {arn}": tags for arn, tags in running.tags.items()}
    for name, model in running.models.items():
        found |= _variables(f"model {name}", containers_of(model))
    for component in running.components:
        containers = [part.get("Container") or {} for part in specifications_of(component)]
        found |= _variables(f"component {component['InferenceComponentName']}", containers)

    lines = []
    for owner, values in found.items():
        readable = [name for name, value in values.items() if not is_secret(name, value)]
        if readable:
            lines.append(f"{owner}: {', '.join(map(visible, readable))}")
    if lines:
        title, *entries = _list("Values that are written as they are", lines)
        yield from (title, _READABLE, *entries)


def _variables(owner: str, containers: Sequence[Answer]) -> dict[str, Mapping[str, str]]:
    variables: dict[str, str] = {}
    for container in containers:
        variables |= container.get("Environment") or {}
    return {f"variables of {owner}": variables}


def _list(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"## {title}"
        yield "\n".join(f"- {line}" for line in dict.fromkeys(lines))


def _not_readable(adoption: Adoption) -> list[str]:
    return [
        *adoption.not_read,
        (
            "whether an update keeps instance counts and weights "
            "(RetainAllVariantProperties): AWS does not return it"
        ),
        "the folder that was packed, and the notebook that created the endpoint",
        "what the code of the models calls in AWS: compare the permissions below",
    ]


def _steps(code: StackCode, switch: Switch) -> Iterator[str]:
    running = code.running
    adoption = code.adoption
    endpoint_name = code.new_name(code.running.name)
    parameters = "".join(f" --parameters {parameter}=..." for parameter in adoption.parameters)
    yield "Install the packages: `python -m pip install -r requirements.txt` and `npm install`."
    yield "Record the template, and commit this folder: `python -m pytest --snapshot-update`."
    yield (
        "Record requests against the endpoint as it runs now: "
        f"`constructs-triton invoke {running.name} --input ... --record requests.json`."
    )
    if adoption.parameters:
        names = [f"`{name}` ({what})" for name, what in adoption.parameters.items()]
        yield (
            f"Have the values of the secrets at hand: {', '.join(names)}. "
            "No file of this folder has them."
        )
    if switch == "take-over":
        yield (
            "Rehearse the switch on your machine: `npx cdk synth --quiet`, then `constructs-triton "
            f"rehearse none cdk.out --orders 1{parameters.replace('=...', '=any')}`."
        )
    if switch == "import":
        yield from _import_steps(running)
    yield (
        f"Deploy: `npx cdk deploy{parameters}`. An account without a deployment of the CDK needs "
        "`npx cdk bootstrap` before."
    )
    yield f"Compare: `constructs-triton verify {endpoint_name} requests.json`."
    if switch == "new-endpoint":
        components = [component["InferenceComponentName"] for component in running.components]
        new_names = ", ".join(map(code.new_name, [running.name, *components]))
        commands = [
            *map(_DELETE_COMPONENT.format, components),
            f"delete-endpoint --endpoint-name {running.name}",
        ]
        yield (
            f"Let callers use {new_names}. When {running.name} has no calls any more, delete it: "
            f"{', then '.join(f'`aws sagemaker {command}`' for command in commands)}."
        )
    yield f"Look at it: `constructs-triton status --stack {stack_name(endpoint_name)}`."


def _import_steps(running: RunningEndpoint) -> Iterator[str]:
    commands = [
        (
            "       aws application-autoscaling deregister-scalable-target --service-namespace "
            f"sagemaker --resource-id {target['ResourceId']} --scalable-dimension "
            f"{target['ScalableDimension']}"
        )
        for target in running.targets
    ]
    if commands:
        reason = (
            "Deregister the scaling, which the deployment below registers again. "
            "Until then the number "
        )
        yield "\n".join([f"{reason}of instances does not change:\n", *commands])
    second = "new-endpoint" if running.components else "take-over"
    yield (
        "Import the endpoint into the stack, alone and as it runs: `npx cdk import --app 'python "
        "imported.py' --resource-mapping import.json`. **NOT SETTLED:** whether CloudFormation "
        "imports endpoints was not tried in an account. AWS's sources contradict each other. If it "
        f"refuses, use `--switch {second}`."
    )
    for component in running.components:
        command = _DELETE_COMPONENT.format(component["InferenceComponentName"])
        yield (
            "Delete the old component; calls fail until the deployment ends: "
            f"`aws sagemaker {command}`."
        )


def _left(running: RunningEndpoint, switch: Switch) -> Iterator[str]:
    config = running.config["EndpointConfigName"]
    if switch == "new-endpoint":
        yield f"endpoint {running.name}, which costs as much as before until you delete it"
    yield (
        f"endpoint configuration {config}: costs nothing; delete it when you do not want to return "
        f"to it. To return: `aws sagemaker update-endpoint --endpoint-name {running.name} "
        f"--endpoint-config-name {config} --retain-all-variant-properties`"
    )
    for name in running.models:
        yield f"model {name}: costs nothing; delete it after its endpoint configuration"
    yield from map(_about_role, running.roles)
    for alarm in running.alarms:
        yield (
            f"alarm {alarm['AlarmName']}: keeps watching the name {running.name}; "
            "it belongs to no stack"
        )
    if running.log_retention_days:
        yield f"the log group, which keeps logs for {running.log_retention_days} days as before"
    yield (
        "the buckets of the models, of captured data and of responses: the stack may read or write "
        "below their prefixes, and never deletes them or their content"
    )


def _about_role(role: RunningRole) -> str:
    names = ", ".join(role.policies) or "no policies"
    actions = role.actions
    text = (
        f"role {role.arn} ({names}): the app has a role of its own with the permissions that the "
        "endpoint needs; keep this one while others use it, such as SageMaker Studio"
    )
    if actions is None:
        return f"{text}. Its policies could not be read."
    if not actions:
        return f"{text}."
    services = sorted({action.partition(":")[0] for action in actions})
    shown = actions if len(actions) <= _MOST_ACTIONS else [f"{service}:…" for service in services]
    return (
        f"{text}. If model code calls AWS, add what it needs with `endpoint.add_to_role_policy`; "
        f"the old role allows {', '.join(shown)}"
    )
