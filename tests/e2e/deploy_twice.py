"""Deploys an app twice and destroys it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest import mock

from programs import PROJECT, run_script, synthesize_app

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.existing import assume_role
from constructs_triton.testing.adopted_endpoints import assume_adopted
from constructs_triton_core.cloud_assembly.assembly import Assembly

#: An example that cannot be deployed here, with the reason.
NOT_DEPLOYED = {
    "minilm_ensembles": "its weights, 84 MB, have to be downloaded; its own tests do so"
}

#: What a second deployment may ask: the version of the bootstrap stack, and the assets once more.
_HARMLESS = {("ssm", "GetParameter"), ("s3", "PutObject")}
_ENDS = (
    ("sagemaker", "list_endpoints", "Endpoints", "EndpointName"),
    ("sagemaker", "list_inference_components", "InferenceComponents", "InferenceComponentName"),
    ("sagemaker", "list_endpoint_configs", "EndpointConfigs", "EndpointConfigName"),
    ("sagemaker", "list_models", "Models", "ModelName"),
    ("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
    ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    ("lambda", "list_functions", "Functions", "FunctionName"),
    ("iam", "list_roles", "Roles", "RoleName"),
    ("ec2", "describe_vpcs", "Vpcs", "VpcId"),
    ("ec2", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
)


def live_through_deployments(aws: SimulatedAccount, stacks: list[tuple[Assembly, str]]) -> None:
    """Deploy stacks twice and destroy them; only retained resources may be left."""
    before = inventory(aws)
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
    assert inventory(aws) == before


def deployable_stacks(assembly: Assembly) -> Iterator[tuple[Assembly, str]]:
    """The stacks of an assembly and of its stages, in the order of their deployment."""
    for stage in [assembly, *assembly.stages()]:
        yield from ((stage, name) for name in stage.stacks() if _is_deployable(stage, name))


def project_apps(project: Path) -> dict[str, Path]:
    """``app.py`` and every example, by the name of its folder; the first is called ``demo``."""
    examples = [
        *project.glob("examples/*/app.py"),
        *project.glob("examples/published_systems/*/app.py"),
    ]
    return {"demo": project / "app.py", **{app.parent.name: app for app in sorted(examples)}}


def synthesize_apps(directory: Path, names: list[str], *, changes_models: bool = False) -> Path:
    """Write the assembly of each app to a folder of its name below the directory.

    The apps run in a copy, where no other test builds models; T5's are built first, as its cdk.json
    says. ``changes_models`` changes every model, as a new version of it would.
    """
    copy = directory / "demo"
    ignored = shutil.ignore_patterns("build", "models", "cdk.out", "__pycache__")
    for name in ("assets", "examples"):
        shutil.copytree(PROJECT / name, copy / name, ignore=ignored)
    shutil.copy(PROJECT / "app.py", copy)
    apps = project_apps(copy)
    if "t5_python_backend" in names:
        run_script(apps["t5_python_backend"].with_name("build_models.py")).check_returncode()
    if changes_models:
        for config in copy.rglob("config.pbtxt"):
            config.write_text(config.read_text() + "# the next version\n")
    for name in names:
        synthesize_app(apps[name], directory / "assemblies" / name, is_validated=False)
    return directory / "assemblies"


def put_what_exists_before(aws: SimulatedAccount, assembly: Path) -> None:
    """What an example expects in the account: a bucket of another team,
    or an endpoint of a notebook.
    """
    if assembly.name == "existing_bucket":
        _put_archive(aws, assembly.parent / "ensemble")
    if assembly.name == "adopted":
        with mock.patch.object(aws.api, "assumes_existing", True):
            for stack in map(Assembly(assembly).stack, Assembly(assembly).stacks()):
                assume_adopted(stack, aws.api, partial(assume_role, aws.api))


def _put_archive(aws: SimulatedAccount, packed: Path) -> None:
    """A bucket that exists before the deployment, with an archive."""
    s3, bucket = aws.client("s3"), "example-ml-platform"
    (archive,) = packed.glob("*.tar.gz")
    s3.create_bucket(Bucket=bucket)
    s3.put_object(
        Bucket=bucket, Key="training/ranking-2024-11-02.tar.gz", Body=archive.read_bytes()
    )


def _is_deployable(stage: Assembly, name: str) -> bool:
    """Leave out the pipeline's own stack, whose resources are not the package's."""
    kinds = {each.type for each in stage.template(name).resources.values()}
    return not any(kind.startswith(("AWS::CodePipeline::", "AWS::CodeBuild::")) for kind in kinds)


def inventory(aws: SimulatedAccount) -> dict[str, set[str]]:
    """The names of the account's resources of the types that no stack retains."""
    return {
        member: {
            each[name]
            for each in getattr(aws.client(service), operation)()[member]
            if each.get("State") not in ("deleted", "deleting")
        }
        for service, operation, member, name in _ENDS
    }
