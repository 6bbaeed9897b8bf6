"""The project's apps, each deployed, deployed again and destroyed on an AWS on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deploy_twice import live_through_deployments, project_apps
from loopback_aws import Assembly, LoopbackAws

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("app", project_apps(PROJECT), ids=lambda app: str(app.relative_to(PROJECT).parent))
def test_app_lives_through_deployments(app: Path, tmp_path: Path) -> None:
    """The app deploys, a second deployment changes nothing, and destroying it leaves no endpoint behind."""
    context = json.loads((PROJECT / "cdk.json").read_text())["context"]
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(tmp_path),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_VALIDATION": "false",
    }
    subprocess.run([sys.executable, app.name], cwd=app.parent, env=environment, check=True)
    with LoopbackAws() as aws:
        aws.bootstrap()
        assert live_through_deployments(aws, Assembly(tmp_path)) > 0
