"""Compares a whole synth of the multi-model example with the same resources as L1 constructs.

    python benchmarks/synth_endpoint.py [--rounds 5] [--without-validation]

The L1 app imports the modules of its L1s and creates every resource of the example's template with one call
of ``CfnResource``, their base. It gets finished archives, so it checks and packs nothing, and it has no
structures to convert: no app of L1s can do less. The resources of both templates are compared.

Both run as a process of ``python app.py`` with warm caches. The result is the processor time of Python and
Node, which depends little on other load. The CDK's validation of the template is most of it, for both;
``--without-validation`` shows the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
EXAMPLE = PROJECT / "examples" / "multi_model" / "app.py"
STACK = "MultiModel"
MOST = 1.25
WRITTEN_WITH_L1S = """
import json, sys
from pathlib import Path
import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling, aws_cloudwatch, aws_iam, aws_lambda, aws_logs, aws_s3
from aws_cdk import aws_sagemaker, aws_sns

# A module of the CDK is loaded when one of its names is used.
aws_applicationautoscaling.CfnScalableTarget, aws_cloudwatch.CfnAlarm, aws_iam.CfnPolicy, aws_s3.CfnBucket
aws_lambda.CfnFunction, aws_logs.CfnLogGroup, aws_sagemaker.CfnEndpoint, aws_sns.CfnTopic

given = Path(sys.argv[1])
template = json.loads((given / "MultiModel.template.json").read_text())
assets = json.loads((given / "MultiModel.assets.json").read_text())
packagings = {"file": cdk.FileAssetPackaging.FILE, "zip": cdk.FileAssetPackaging.ZIP_DIRECTORY}
app = cdk.App()
stack = cdk.Stack(app, "MultiModel")
for asset in assets["files"].values():
    for place in asset["destinations"].values():
        if "template" not in asset["source"]["path"]:
            stack.synthesizer.add_file_asset(
                source_hash=place["objectKey"].rpartition(".")[0],
                packaging=packagings[asset["source"]["packaging"]],
                file_name=str(given / asset["source"]["path"]),
            )
for name, rows in template["Mappings"].items():
    cdk.CfnMapping(stack, name, mapping=rows)
made = {}
for name, each in template["Resources"].items():
    made[name] = cdk.CfnResource(stack, name, type=each["Type"], properties=each.get("Properties", {}))
for name, each in template["Resources"].items():
    wanted = each.get("DependsOn", [])
    for other in [wanted] if isinstance(wanted, str) else wanted:
        made[name].add_resource_dependency(made[other])
for name, each in template["Outputs"].items():
    export = each.get("Export", {}).get("Name")
    cdk.CfnOutput(stack, name, value=cdk.Token.as_string(each["Value"]), export_name=export)
app.synth()
"""


def synthesize(script: Path, directory: Path, *arguments: Path) -> float:
    """Return the processor seconds of a process, and of its Node, that synthesizes into ``directory``."""
    settings = json.loads((PROJECT / "cdk.json").read_text())["context"]
    environment = {
        **os.environ,
        "CDK_CONTEXT_JSON": json.dumps(settings),
        "CDK_OUTDIR": str(directory),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "18,20",
        "NODE_NO_WARNINGS": "1",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled once, as on any machine but a careful one
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, script, *arguments], env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def made(directory: Path) -> dict[str, Any]:
    """Return the resources of the template by type and properties."""
    template = json.loads((directory / f"{STACK}.template.json").read_text())
    return {name: (each["Type"], each.get("Properties", {})) for name, each in template["Resources"].items()}


def main() -> int:
    """Exit with 0 if this library takes at most 1.25 times as long."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-validation", action="store_true")
    arguments = parser.parse_args()
    rounds = arguments.rounds
    os.environ["CDK_VALIDATION"] = "false" if arguments.without_validation else "true"
    with tempfile.TemporaryDirectory() as work:
        os.environ["CONSTRUCTS_TRITON_CACHE_DIR"] = str(Path(work) / "cache")
        ours, theirs = Path(work) / "ours", Path(work) / "theirs"
        script = Path(work) / "l1.py"
        script.write_text(WRITTEN_WITH_L1S, encoding="utf-8")
        synthesize(EXAMPLE, ours)  # fills the cache, and is what the other app copies
        synthesize(script, theirs, ours)
        assert made(ours) == made(theirs), "the two apps do not make the same resources"
        times = [(synthesize(EXAMPLE, ours), synthesize(script, theirs, ours)) for _ in range(rounds)]
    # The shortest of each, because other load can only add time.
    mine, l1 = min(pair[0] for pair in times), min(pair[1] for pair in times)
    print(f"processor time, least of {rounds} rounds: constructs {mine:.2f} s, L1s {l1:.2f} s")
    print(f"ratio {mine / l1:.2f}, at most {MOST} with validation")
    return 0 if arguments.without_validation or mine <= MOST * l1 else 1


if __name__ == "__main__":
    sys.exit(main())
