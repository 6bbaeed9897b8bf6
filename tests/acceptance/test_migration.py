"""The apps of docs/guides/adopt.md: an endpoint stays, or its callers move,
when it comes into an app.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from stack_view import StackView

from cdk_rehearse import SimulatedAccount
from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 5

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "assets" / "training"))
FILES = PROJECT / "docs" / "guides" / "migrating"
CDK = PROJECT / "node_modules" / ".bin" / "cdk"
STACK = "Vision"
OLD = "digits-2025-11-02"


def synthesize(folder: Path, name: str, code: str) -> Path:
    """Run a block of the page, and return the assembly that it writes."""
    (folder / f"{name}.py").write_text(code)
    environment = {**os.environ, "CDK_OUTDIR": str(folder / name)}
    subprocess.run([sys.executable, f"{name}.py"], cwd=folder, env=environment, check=True)
    return folder / name


def test_endpoint_stays_while_its_constructs_are_replaced(tmp_path: Path) -> None:
    """The update keeps the endpoint and its name, and deletes the old model,
    configuration and role.
    """
    shutil.copytree(PROJECT / "assets" / "model_repositories" / "digits", tmp_path / "models")
    before = Path(__file__).with_name("l1_app.py").read_text()
    after = (FILES / "app.py").read_text().partition("count = ")[0]
    kept = 'endpoint_name="digits", variant_name="main"'
    after, count = re.subn(r'endpoint_name="[^"]*",\s+adopt_existing=True', kept, after)
    assert count == 1
    after += 'endpoint.cfn_endpoint.override_logical_id("Endpoint")\napp.synth()\n'
    with SimulatedAccount() as aws:
        aws.bootstrap()
        view = StackView(aws, STACK)
        aws.deploy(synthesize(tmp_path, "before", before), STACK)
        assert view.stack.status == "CREATE_COMPLETE", view.stack.reason
        old = aws.client("sagemaker").describe_endpoint(EndpointName="digits")
        aws.deploy(synthesize(tmp_path, "after", after), STACK)
        assert view.stack.status == "UPDATE_COMPLETE", view.stack.reason
        new = aws.client("sagemaker").describe_endpoint(EndpointName="digits")
    assert (new["EndpointName"], new["EndpointArn"]) == ("digits", old["EndpointArn"])
    assert new["CreationTime"] == old["CreationTime"]
    assert new["EndpointConfigName"] != old["EndpointConfigName"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the models and the files of the page."""
    shutil.copytree(PROJECT / "assets" / "model_repositories" / "digits", tmp_path / "models")
    for each in FILES.iterdir():
        shutil.copy(each, tmp_path)
    return tmp_path


def make_endpoint(aws: SimulatedAccount, folder: Path) -> None:
    """Run the notebook's calls."""
    aws.bootstrap()
    environment = {**os.environ, **aws.environment()}
    subprocess.run([sys.executable, "notebook.py"], cwd=folder, env=environment, check=True)


def answer(aws: SimulatedAccount, name: str) -> bytes:
    """The bytes that the models of an endpoint in the account answer."""
    from split import encode_png, held_out_images

    images, _ = held_out_images()
    pictures = np.array([encode_png(each) for each in images[:8]], dtype=object)[:, np.newaxis]
    with LocalEndpoint.from_aws(aws.endpoint_url, endpoint=name) as local:
        client = TritonClient.for_endpoint(name, endpoint_url=local.endpoint_url)
        result = client.infer({"image": pictures})
        return result["probabilities"].tobytes()


def test_adopted_endpoint_answers_as_before(folder: Path) -> None:
    """The stack's models answer the same request with the same bytes as those of the notebook."""
    with SimulatedAccount() as aws:
        make_endpoint(aws, folder)
        before = answer(aws, OLD)
        aws.deploy(synthesize(folder, "adopted", (folder / "app.py").read_text()), STACK)
        assert aws.stack(STACK).status == "CREATE_COMPLETE", aws.stack(STACK).reason
        assert answer(aws, OLD) == before


def test_callers_move_to_an_endpoint_beside_the_old_one(folder: Path) -> None:
    """The parameter names the old endpoint, then the new one with equal answers,
    and can be set back.
    """
    with SimulatedAccount() as aws:
        make_endpoint(aws, folder)
        view, code = StackView(aws, STACK), (folder / "beside.py").read_text()
        moved = code.replace("cdk.App()", 'cdk.App(context={"has_moved": "yes"})')
        names = []
        first, second = synthesize(folder, "first", code), synthesize(folder, "second", moved)
        for assembly in (first, second, first, second):
            aws.deploy(assembly, STACK)
            assert view.stack.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), view.stack.reason
            names.append(
                aws.client("ssm").get_parameter(Name="/digits/endpoint")["Parameter"]["Value"]
            )
        assert names == [OLD, names[1], OLD, names[1]]
        assert names[1] != OLD
        assert answer(aws, names[1]) == answer(aws, OLD)
        sagemaker = aws.client("sagemaker")
        sagemaker.delete_endpoint(EndpointName=OLD)
        sagemaker.delete_endpoint_config(EndpointConfigName=OLD)
        sagemaker.delete_model(ModelName=OLD)
        assert [each["EndpointName"] for each in sagemaker.list_endpoints()["Endpoints"]] == [
            names[1]
        ]


def test_imported_endpoint_gets_the_construct(folder: Path) -> None:
    """``cdk import`` takes the endpoint into a stack, whose next deployment updates it in place."""
    with SimulatedAccount() as aws:
        make_endpoint(aws, folder)
        before = aws.client("sagemaker").describe_endpoint(EndpointName=OLD)
        app = f"{sys.executable} imported.py"
        done = aws.run_cdk(
            CDK, "import", "--app", app, "--resource-mapping", "import.json", cwd=folder
        )
        assert done.returncode == 0, done.stdout
        assert aws.stack(STACK).status == "IMPORT_COMPLETE"
        scaling = aws.client("application-autoscaling")
        scaling.deregister_scalable_target(
            ServiceNamespace="sagemaker",
            ResourceId=f"endpoint/{OLD}/variant/AllTraffic",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        )
        code = (folder / "app.py").read_text().replace("    adopt_existing=True,\n", "")
        code = re.sub(r"^count.*\n(?:[ )].*\n)*", "", code, flags=re.MULTILINE)
        kept = (
            "endpoint.retain_instance_counts()\n"
            'endpoint.cfn_endpoint.override_logical_id("Endpoint")\n'
        )
        aws.deploy(
            synthesize(folder, "imported", code.replace("app.synth()", f"{kept}app.synth()")), STACK
        )
        assert aws.stack(STACK).status == "UPDATE_COMPLETE", aws.stack(STACK).reason
        after = aws.client("sagemaker").describe_endpoint(EndpointName=OLD)
        assert after["CreationTime"] == before["CreationTime"]
        assert after["EndpointConfigName"] != before["EndpointConfigName"]
        assert aws.client("sagemaker").describe_endpoint_config(EndpointConfigName=OLD)


def test_import_into_a_second_stack_is_refused(folder: Path) -> None:
    """An endpoint that belongs to a stack is not imported, and nothing changes."""
    with SimulatedAccount() as aws:
        make_endpoint(aws, folder)
        arguments = ["--app", f"{sys.executable} imported.py", "--resource-mapping", "import.json"]
        assert aws.run_cdk(CDK, "import", *arguments, cwd=folder).returncode == 0
        (folder / "imported.py").write_text(
            (folder / "imported.py").read_text().replace("Vision", "Second")
        )
        assert aws.run_cdk(CDK, "import", *arguments, cwd=folder).returncode != 0
        assert "already exists in stack Vision" in aws.stack("Second").reason
