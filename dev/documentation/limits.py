"""Writes the page of limits, facts and versions,
with the limits and the rules that the checks use.
"""

from __future__ import annotations

from pathlib import Path

from constructs_triton_core.facts import limits
from triton_model_check.facts.compatibility import RULES

HEAD = """# Limits, facts and versions

What AWS and NVIDIA publish, what the constructs check at synth, and what a release of this library
keeps.

## Limits of AWS

The last column has the source: the name of the shape in botocore's service model.

| limit | value | shape |
|---|---|---|
"""
FACTS = """
## Images and instance types

`constructs-triton facts image --region eu-west-1 --version 26.05` prints the URI of an image, its
Python, CUDA and backends. With `--instance-type ml.g5.xlarge`, it exits with 1 if the two are not
compatible. `constructs-triton facts instance ml.g5.12xlarge` prints GPUs, memory and storage of a
type. In Python, use [`images`](api.md#facts) and `InstanceType.of`.

- The default version of the image is the same in every Region. If a Region does not have a version,
  the error names the newest one that it has. A stack without a Region contains a mapping of the
  Regions, and CloudFormation rejects the template in any other:
  `Unable to get mapping for TritonImageAccounts...`.
- AWS does not list the Regions of releases 26.03 and 26.04, so they are errors. GovCloud, the
  isolated partitions and the European Sovereign Cloud have no Triton image from AWS.
- Types that this library does not know are allowed, with a warning.

| code | severity | checks that |
|---|---|---|
{checks}

## The host image

A GPU container needs a driver on the host that supports its CUDA version. The driver of SageMaker's
default host is too old for images from 25.08 on: the container fails with
`CannotStartContainerError` and writes no log. The *inference AMI* of an endpoint chooses another
host image. AWS publishes no table of compatible versions, so the library sets an AMI only for pairs
of image and instance type with a published source, and prints a warning for others. Set
`inference_ami_version` to `InferenceAmi.of(...)` for another AMI, or to `None` for SageMaker's
default. An AMI for another major version of CUDA than the image is the warning
`inference-ami-of-other-cuda`: an older driver cannot run the image, and AWS reports that containers
with CUDA 12 do not start on the AMI for CUDA 13.

```python
from constructs_triton_core.facts.instance_types import InstanceType
from triton_model_check.facts.inference_ami import default_inference_ami

choice = default_inference_ami("26.05", InstanceType.of("ml.g5.xlarge"))
assert str(choice.ami) == "al2023-ami-sagemaker-inference-gpu-4-1"
```

## Environment variables

`constructs-triton facts environment` lists the variables. `TritonEnvironment` sets them; `extra`
sets any other. Three defaults differ from those of the image: verbose logging is off;
`model_namespacing=True` enables namespacing, although the variable is called
`..._DISABLE_MODEL_NAMESPACING`; a multi-model endpoint gets `SAGEMAKER_TRITON_PING_MODE=live`,
because otherwise one model that fails to load makes the health check fail.
`environment.merged_with(other)` returns the settings of both; those of `other` replace settings of
the same name.

```python
from constructs_triton import TritonEnvironment

environment = TritonEnvironment(thread_count=16, extra={{"TRTLLM_ORCHESTRATOR": "1"}})
assert environment.to_variables(image_version="26.05") == {{
    "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
    "SAGEMAKER_TRITON_THREAD_COUNT": "16",
    "TRTLLM_ORCHESTRATOR": "1",
}}
```

## Versions and compatibility

The version follows [Semantic Versioning](https://semver.org). A breaking change increases the first
number, or the second one while the first is 0. [Changes](../../CHANGELOG.md) lists every change
that users notice. All packages are released together, with one version.

A minor or patch release keeps:

- the public names of the [API reference](api.md), with their keywords and types
- the logical IDs of an app that does not change. An upgrade replaces no endpoint, bucket or role;
  it may replace a model, an endpoint configuration or a managed policy, without an interruption,
  and the changelog says so
- the digests and names of the archives of a repository that does not change
- the meaning of check codes, and the names, options, exit codes and `--json` fields of commands
- the reading of `index.json`, benchmark files and recorded requests of older releases

It may change messages and text output, add checks, warnings, metrics and outputs, change the code
of Lambda functions, and, in a minor release, change the default image version: set
`TritonImage.dlc("26.05")` to keep one. A new check that reports an error is for a repository that
Triton or SageMaker rejects; if it is wrong for you, acknowledge its code.

| | supported |
|---|---|
| Python | 3.11, 3.12, 3.13, until their [end of life](https://devguide.python.org/versions/) |
| Python of the local server | 3.11 or 3.12 |
| Python of constructs-triton-client | 3.11 and newer |
| aws-cdk-lib | 2.275 or later, below 3 |
| Node.js | what [jsii supports](https://github.com/aws/jsii#supported-node-versions): 22 or 24 |
| Triton images | 22.07 to 26.05, as listed by `constructs-triton facts image` |
| `config.pbtxt` | the schema of tritonclient 2.73, which the package contains |

If your own image contains a newer release, set `triton_version`, for example in
`TritonImage.from_ecr_repository`. The warning
[`target-image-unknown`](checks/target.md#target-image-unknown) then lists what is assumed.
"""


def write_limits(path: Path) -> None:
    """Write the page."""
    rows = [
        f"| {name.replace('_', ' ').lower()} | {_value(value)} | {_shape(value)} |"
        for name, value in vars(limits).items()
        if name.isupper() and not name.startswith("_")
    ]
    checks = "\n".join(f"| `{rule.code}` | {rule.severity} | {rule.summary} |" for rule in RULES)
    text = HEAD + "\n".join(rows) + "\n" + FACTS.format(checks=checks)
    path.write_text(text, encoding="utf-8")


def _value(value: object) -> str:
    if isinstance(value, limits.TextLimit):
        allowed = f": {value.allowed}" if value.allowed else ""
        return f"{value.min_length} to {value.max_length} characters{allowed}"
    return limits.plain_number(value) if isinstance(value, int | float) else str(value)


def _shape(value: object) -> str:
    shape = getattr(value, "shape", "")
    return f"`{shape}`" if shape else ""
