"""What every app has to live through: a deployment, the same again, and its end."""

from __future__ import annotations

from pathlib import Path

from loopback_aws import Assembly, LoopbackAws

#: What a second deployment may ask: the version of the bootstrap stack, and the assets once more.
_HARMLESS = {("ssm", "GetParameter"), ("s3", "PutObject")}


def live_through_deployments(aws: LoopbackAws, assembly: Assembly) -> int:
    """Deploy all stacks of an assembly and its stages, again without a change, destroy them; their number."""
    stages = [assembly, *assembly.stages()]
    stacks = [(stage, name) for stage in stages for name in stage.stacks() if _is_deployable(stage, name)]
    for stage, name in stacks:
        stack = aws.deploy(stage.directory, name)
        assert stack.status == "CREATE_COMPLETE", stack.reason
    asked = len(aws.api.calls)
    for stage, name in stacks:
        stack = aws.deploy(stage.directory, name)
        assert stack.status == "UPDATE_COMPLETE", stack.reason
    calls = {(service, operation) for service, operation, _ in aws.api.calls[asked:]}
    assert calls <= _HARMLESS
    for stage, name in reversed(stacks):
        stack = aws.destroy(stage.stack_name(name))
        assert stack.status == "DELETE_COMPLETE", stack.reason
    for service, operation, member in _ENDS:
        assert getattr(aws.client(service), operation)()[member] == []
    return len(stacks)


_ENDS = (
    ("sagemaker", "list_endpoints", "Endpoints"),
    ("sagemaker", "list_endpoint_configs", "EndpointConfigs"),
    ("sagemaker", "list_models", "Models"),
    ("cloudwatch", "list_dashboards", "DashboardEntries"),
    ("lambda", "list_functions", "Functions"),
)


def _is_deployable(stage: Assembly, name: str) -> bool:
    """A pipeline deploys its stages itself; what it is made of is not the package's."""
    kinds = {each.type for each in stage.template(name).resources.values()}
    return not any(kind.startswith(("AWS::CodePipeline::", "AWS::CodeBuild::")) for kind in kinds)


#: Examples whose resource types all have a provider in the loopback AWS.
_EXAMPLES = ("async_inference",)


def project_apps(project: Path) -> list[Path]:
    """``app.py``, and the examples that can be deployed here."""
    return [project / "app.py", *(project / "examples" / name / "app.py" for name in _EXAMPLES)]
