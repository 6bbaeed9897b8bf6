"""Compares a whole synth of the multi-model example, and of app.py, with the same resources as L1
constructs.

    python benchmarks/synth_endpoint.py [--rounds 5] [--without-validation] [--stacks NAME]
        [--project DIR]

The L1 app imports the modules of its L1s and creates every resource of the example's template with
one call of ``CfnResource``, their base. It gets finished archives, so it checks and packs nothing,
and it has no structures to convert: no app of L1s can do less. The resources of both templates are
compared.

Both run as a process of ``python app.py`` with warm caches. The processor time is that of Python
and Node, which depends little on other load. The CDK's validation of the template is a large part
of it, for both; ``--without-validation`` shows the rest. The validation takes the same time for
both apps. Constructs add, in equal parts, the import of this library, the loading of the CDK's own
higher constructs (Lambda functions, buckets, roles) in Node, and running them. ``--project`` is
another checkout, whose environment runs this file.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

APPS = {"MultiModel": "examples/multi_model/app.py", "TritonDemo": "app.py"}
WRITTEN_WITH_L1S = """
import json, sys
from pathlib import Path
import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling, aws_cloudwatch, aws_iam, aws_lambda, aws_logs
from aws_cdk import aws_s3, aws_sagemaker, aws_sns

# A module of the CDK is loaded when one of its names is used.
aws_applicationautoscaling.CfnScalableTarget, aws_cloudwatch.CfnAlarm, aws_iam.CfnPolicy
aws_s3.CfnBucket
aws_lambda.CfnFunction, aws_logs.CfnLogGroup, aws_sagemaker.CfnEndpoint, aws_sns.CfnTopic

given, name = Path(sys.argv[1]), sys.argv[2]
template = json.loads((given / f"{name}.template.json").read_text())
assets = json.loads((given / f"{name}.assets.json").read_text())
packagings = {"file": cdk.FileAssetPackaging.FILE, "zip": cdk.FileAssetPackaging.ZIP_DIRECTORY}
app = cdk.App()
stack = cdk.Stack(app, name)
for asset in assets["files"].values():
    for place in asset["destinations"].values():
        if "template" not in asset["source"]["path"]:
            stack.synthesizer.add_file_asset(
                source_hash=place["objectKey"].rpartition(".")[0],
                packaging=packagings[asset["source"]["packaging"]],
                file_name=str(given / asset["source"]["path"]),
            )
for name, rows in template.get("Mappings", {}).items():
    cdk.CfnMapping(stack, name, mapping=rows)
made = {}
for name, each in template["Resources"].items():
    made[name] = cdk.CfnResource(
        stack, name, type=each["Type"], properties=each.get("Properties", {})
    )
for name, each in template["Resources"].items():
    wanted = each.get("DependsOn", [])
    for other in [wanted] if isinstance(wanted, str) else wanted:
        made[name].add_resource_dependency(made[other])
for name, each in template.get("Outputs", {}).items():
    export = each.get("Export", {}).get("Name")
    cdk.CfnOutput(stack, name, value=cdk.Token.as_string(each["Value"]), export_name=export)
app.synth()
"""


class Times(NamedTuple):
    """Seconds of a process by the clock, and of the processor for it and its Node."""

    clock: float
    CPU: float


def synthesize(project: Path, script: Path, directory: Path, *arguments: str | Path) -> Times:
    """Run an app that synthesizes into ``directory``."""
    settings = json.loads((project / "cdk.json").read_text())["context"]
    environment = {
        **os.environ,
        "CDK_CONTEXT_JSON": json.dumps(settings),
        "CDK_OUTDIR": str(directory),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "18,20",
        "NODE_NO_WARNINGS": "1",
    }
    environment.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # compiled once, as on any machine but a careful one
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, script, *arguments], env=environment, cwd=project, check=True)
    clock, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Times(clock, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def made(directory: Path, stack: str) -> dict[str, Any]:
    """Return the resources of the template by type and properties."""
    template = json.loads((directory / f"{stack}.template.json").read_text())
    return {
        name: (each["Type"], each.get("Properties", {}))
        for name, each in template["Resources"].items()
    }


def compare(project: Path, stack: str, work: Path, rounds: int) -> None:
    """Synthesize both apps in turns and print the shortest times,
    because other load can only add time.
    """
    ours, theirs, app, script = (
        work / "ours",
        work / "theirs",
        project / APPS[stack],
        work / "l1.py",
    )
    script.write_text(WRITTEN_WITH_L1S, encoding="utf-8")
    synthesize(project, app, ours)  # fills the cache, and is what the other app copies
    synthesize(project, script, theirs, ours, stack)
    assert made(ours, stack) == made(theirs, stack), "the two apps do not make the same resources"
    times = [
        (synthesize(project, app, ours), synthesize(project, script, theirs, ours, stack))
        for _ in range(rounds)
    ]
    for number, what in enumerate(Times._fields):
        mine, l1 = (min(each[number] for each in side) for side in zip(*times, strict=True))
        print(f"{f'{stack} {what}':20}{mine:8.2f} s{l1:8.2f} s{mine / l1:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-validation", action="store_true")
    parser.add_argument("--stacks", nargs="+", choices=APPS, default=list(APPS))
    parser.add_argument("--project", type=Path, default=Path(__file__).resolve().parents[1])
    arguments = parser.parse_args()
    os.environ["CDK_VALIDATION"] = "false" if arguments.without_validation else "true"
    print(f"shortest of {arguments.rounds} rounds\n{'':20}constructs       L1s   ratio")
    for stack in arguments.stacks:
        with tempfile.TemporaryDirectory() as work:
            os.environ["CONSTRUCTS_TRITON_CACHE_DIR"] = str(Path(work) / "cache")
            compare(arguments.project.resolve(), stack, Path(work), arguments.rounds)


if __name__ == "__main__":
    main()
