"""What to write in place of a value of the wrong type. Only messages load it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

from aws_cdk import aws_ec2 as ec2

from constructs_triton.cdk.validation.schedule_expressions import cron_fields, schedule_problem
from constructs_triton_core.tokens import is_token
from triton_model_check.facts import images
from triton_model_check.facts.images import server_of_aws

# The API has seconds, and people who write a small number may mean minutes.
_FEW_MINUTES = 60
_STRING = re.compile(r'"[^"]*"')
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")
_IMAGE_OF_NVIDIA = re.compile(r"(?:nvcr\.io/.*:)?(?P<version>\d\d\.\d\d)\b.*")
_KEY, _ROLE, _BUCKET = (
    "kms.Key.from_key_arn",
    "iam.Role.from_role_arn",
    "s3.Bucket.from_bucket_name",
)
# What a string means in place of an object: the call of the example, a pattern, and what to write.
_MEANINGS = (
    (_KEY, r"(alias/.+)", r'kms.Key.from_lookup(self, "Key", alias_name="\1")'),
    (_KEY, r"(?!arn:)(.+)", rf'{_KEY}(self, "Key", "arn:aws:kms:REGION:ACCOUNT:key/\1")'),
    (_ROLE, r"(?!arn:)(?:.*/)?(.+)", r'iam.Role.from_role_name(self, "Role", "\1")'),
    (_BUCKET, r"(arn:.+)", r's3.Bucket.from_bucket_arn(self, "Bucket", "\1")'),
    (_BUCKET, r"s3://([^/]+)/?", rf'{_BUCKET}(self, "Bucket", "\1")'),
    (
        _BUCKET,
        r"s3://([^/]+)/(.+)",
        rf'{_BUCKET}(self, "Bucket", "\1"), and set its prefix or key to "\2"',
    ),
    ("TritonImage.dlc", r"([\w-]+\.[\w.-]+/.+)", r'TritonImage.from_registry("\1")'),
)


def fix_of(example: str, value: object, cls: type = object) -> str:
    """Return what to write in place of a value that is not of the type ``cls``.

    A mapping is the call that it means: the CDK and CloudFormation write the options of a variant
    in one.
    """
    if isinstance(value, Mapping) and value and cls.__module__.startswith("constructs_triton"):
        given = {
            re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): each for name, each in value.items()
        }
        if given.keys() <= inspect.signature(cls).parameters.keys():
            return (
                f"{cls.__name__}({', '.join(f'{name}={each!r}' for name, each in given.items())})"
            )
    if isinstance(value, ec2.InstanceType):
        fix = with_value(example, f"ml.{value.to_string()}")
        return f"{fix}, with InstanceType of constructs_triton, not of aws_ec2"
    return with_value(example, value)


def _with_token(example: str, token: object) -> str:
    """Return an example with ``value`` in place of its last literal, for a token of its kind."""
    if "TritonImage.dlc" in example:  # the version decides about checks, so it must be known
        return "TritonImage.from_registry(value)"
    if not isinstance(token, str | float | int):
        return example
    return _with_literal(example, _STRING if isinstance(token, str) else _NUMBER, "value")


def with_value(example: str, value: object) -> str:
    """Return an example with the user's string or number in place of its last one.

    ``Duration.seconds(600)`` and ``90`` are ``Duration.seconds(90)``: a number has the unit of the
    example, which is that of the API. A string may be the name of a role, the alias of a key or the
    URL of a bucket, each of which has its own call.
    """
    if is_token(value) or is_token([value]):  # the entry of a list token
        return _with_token(example, value)
    if isinstance(value, list):
        return _with_list(example, value)
    if isinstance(value, str):
        return _with_text(example, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if example.startswith("Duration.seconds(") and 0 < value <= _FEW_MINUTES:
            return f"Duration.seconds({value}) or Duration.minutes({value})"
        is_seconds = 0 < value < 1 and "millis(" in example
        return _with_literal(example, _NUMBER, repr(round(value * 1000) if is_seconds else value))
    return example


def _with_list(example: str, values: list[object]) -> str:
    """Return what to write for a list in place of one object."""
    if "SubnetSelection(" in example and all(isinstance(subnet, str) for subnet in values):
        return f"ec2.SubnetSelection(subnet_filters=[ec2.SubnetFilter.by_ids({values})])"
    if "SubnetSelection(" in example:
        return "ec2.SubnetSelection(subnets=...) with this list"
    return "one call for each of them" if "iam.Role" in example else example


def _with_text(example: str, value: str) -> str:
    if ".cron(" in example:
        return _schedule(example, value)
    if "TritonImage.dlc" in example and (other := server_of_aws(value)) is not None:
        return (
            f'ServingImage.from_registry("{value}") and give it to ContainerInferenceComponent, '
            f'because AWS\'s image "{other}" has no Triton'
        )
    if "TritonImage.dlc" in example and (version := _IMAGE_OF_NVIDIA.fullmatch(value)):
        return _image_of_release(version["version"])
    for call, pattern, meaning in _MEANINGS:
        if call in example and (match := re.fullmatch(pattern, value)):
            return match.expand(meaning)
    return _with_literal(example, _STRING, f'"{value}"')


def _image_of_release(version: str) -> str:
    """Return the image of AWS of a release of Triton, or how to have one of which AWS has none."""
    if version in images.published_versions():
        return f'TritonImage.dlc("{version}")'
    return (
        f'TritonImage.dlc("{images.DEFAULT_VERSION}"), because AWS has no image of {version}, or '
        "push your own to ECR and pass it with TritonImage.from_ecr_repository"
    )


def _with_literal(example: str, literal: re.Pattern[str], written: str) -> str:
    """Return the call of an example with another last literal."""
    literals = list(literal.finditer(example))
    if not literals or "(" not in example:
        return example
    start, end = literals[-1].span()
    return f"{example[:start]}{written}{example[end:]}"


def _schedule(example: str, value: str) -> str:
    """Return the call for a schedule that is written as a string."""
    call = example.partition(".cron(")[0]
    inner = re.fullmatch(r"(?:cron\()?([^()]*)\)?", value.strip())
    fields = cron_fields(inner.group(1)) if inner else None
    if fields is not None:
        given = ", ".join(f'{name}="{each}"' for name, each in fields.items())
        return f"{call}.cron({given})"
    for expression in (value.strip(), f"cron({value.strip()})"):
        if not schedule_problem(expression):
            return f'{call}.expression("{expression}")'
    return example
