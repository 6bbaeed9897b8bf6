"""Collects the statements of a stack, and the references to existing resources
that several of them share.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from constructs_triton_core.untrusted.secrets import is_secret
from constructs_triton_tools.operations.adopting.findings import Adoption
from constructs_triton_tools.operations.adopting.models import AdoptedModels, ModelReader
from constructs_triton_tools.operations.adopting.python_text import (
    Call,
    Expression,
    Options,
    assignment,
    call,
    called,
    free_name,
    literal,
    quoted,
    render,
)
from constructs_triton_tools.operations.adopting.running_endpoint import RunningEndpoint
from constructs_triton_tools.operations.adopting.stack.app_template import (
    RESERVED_IDS,
    RESERVED_NAMES,
)

_LONGEST_NAME = 63
_KEY_ARN = re.compile(r"arn:[a-z-]+:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+")
_KEY_ID = re.compile(r"(?:mrk-)?[0-9a-f][0-9a-f-]{10,40}")
_IN_BUCKET = {"bucket": "from_bucket", "files": "from_s3_prefix", "prefix": "from_archive_prefix"}


@dataclass(slots=True)
class StackCode:
    """The code of the stack's constructor, in order.

    Args:
        running: The endpoint as it runs.
        adoption: Where findings are noted.
        suffix: End of the names of new resources beside the old ones; empty if they take their
            place.
        statements: Name and value of each statement; a statement without a name has an empty one.
    """

    running: RunningEndpoint
    adoption: Adoption
    suffix: str = ""
    statements: list[tuple[str, Expression]] = field(default_factory=list)
    _references: dict[str, str] = field(default_factory=dict)
    _ids: set[str] = field(default_factory=set)
    _variables: set[str] = field(default_factory=lambda: set(RESERVED_NAMES))

    def new_name(self, name: str) -> str:
        """Return the name in the app for the endpoint or the component with a name today."""
        return f"{name[: _LONGEST_NAME - len(self.suffix)]}{self.suffix}"

    def add(self, variable: str, value: Expression) -> str:
        """Add a statement that gives a value a name that is free, and return the name."""
        chosen = free_name(variable, self._variables, separator="_")
        self._variables.add(chosen)
        self.statements.append((chosen, value))
        return chosen

    def run(self, function: str, /, *positional: Expression, **keywords: Expression) -> None:
        """Add a statement that calls a function and does not keep the result."""
        self.statements.append(("", call(function, *positional, **keywords)))

    def new_id(self, wanted: str, reserved: frozenset[str] = frozenset()) -> str:
        """Return the code of a construct id that is free and not reserved."""
        base = re.sub(r"[^A-Za-z0-9]", "", wanted) or "Resource"
        chosen = free_name(base, self._ids | reserved)
        self._ids.add(chosen)
        return f'"{chosen}"'

    def text(self, indent: str) -> str:
        """Return the statements."""
        return "\n".join(assignment(name, value, indent) for name, value in self.statements)

    def imports(self) -> set[str]:
        """Return the names that the called functions begin with: modules, classes and variables."""
        names: set[str] = set()
        for _, value in self.statements:
            names.update(name.partition(".")[0] for name in called(value))
        return names

    def reference(
        self, variable: str, function: str, /, *given: Expression, **keywords: Expression
    ) -> str:
        """Return the variable of a resource that exists.

        A statement defines it before its first use.
        """
        key = render(call(function, *given, **keywords), "")
        if key not in self._references:
            construct_id = self.new_id(variable.title())
            value = call(function, "self", construct_id, *given, **keywords)
            self._references[key] = self.add(variable, value)
        return self._references[key]

    def bucket(self, name: str, use: str, key_arn: str | None = None) -> str:
        """Return the variable of a bucket, which the stack never owns;
        ``key_arn`` encrypts its objects.
        """
        variable = f"{use}_bucket"
        key = self.key(key_arn, use)
        if not key:
            return self.reference(variable, "s3.Bucket.from_bucket_name", literal(name))
        return self.reference(
            variable, "s3.Bucket.from_bucket_attributes", bucket_name=literal(name), **key
        )

    def key(self, given: str | None, use: str) -> dict[str, Expression]:
        """Return a KMS key, by its ARN or id, as ``encryption_key``; nothing for an alias,
        which is noted.
        """
        if not given:
            return {}
        arn = given
        if _KEY_ID.fullmatch(given):
            arn = f"arn:aws:kms:{self.running.region}:{self.running.account}:key/{given}"
            self.adoption.differ("KmsKeyId", f"the ARN of the key in place of its id {given}")
        if not _KEY_ARN.fullmatch(arn):
            self.adoption.refuse(
                "kms-key-alias",
                f"KMS key {given}: is not the ARN or the id of a key; add it by hand in app.py",
            )
            return {}
        return {
            "encryption_key": self.reference(f"{use}_key", "kms.Key.from_key_arn", literal(arn))
        }

    def value(self, variable: str, value: str, owner: str) -> Expression:
        """Return the code of the value of a variable or a tag:
        a parameter if it looks like a secret.
        """
        if not is_secret(variable, value):
            return literal(value)
        key = f"{variable}\0{value}"
        if key not in self._references:
            name = "_".join(re.findall(r"[A-Za-z0-9]+", variable)).lower()
            name = name if name[1:] and name.isidentifier() else f"secret_{name}"
            construct_id = self.new_id(name.title(), RESERVED_IDS)
            self._references[key] = self.add(
                name, call("cdk.CfnParameter", "self", construct_id, no_echo="True")
            )
            self.adoption.parameters[construct_id.strip('"')] = f"{variable} of {owner}"
        return f"{self._references[key]}.value_as_string"


@dataclass(slots=True)
class Repositories:
    """The repositories that were added to a stack."""

    code: StackCode
    reader: ModelReader
    _found: dict[str, tuple[str, AdoptedModels] | None] = field(default_factory=dict)

    def of(self, model_name: str, instance_type: str | None) -> tuple[str, AdoptedModels] | None:
        """Return the variable of the repository of a SageMaker model, and its models."""
        if model_name not in self._found:
            self._found[model_name] = self._add(model_name, instance_type)
        return self._found[model_name]

    def _add(self, model_name: str, instance_type: str | None) -> tuple[str, AdoptedModels] | None:
        running = self.code.running
        folder = "models" if len(running.models) == 1 else f"models/{model_name}"
        models = self.reader.read(model_name, running.container(model_name), instance_type, folder)
        if models is None:
            return None
        construct_id = self.code.new_id("Models")
        options: Options = {"source": self._source(models)}
        if models.acknowledged:
            options["check"] = call("RepositoryCheck.on", acknowledge=literal(models.acknowledged))
        return self.code.add(
            "models", call("TritonModelRepository", "self", construct_id, **options)
        ), models

    def _source(self, models: AdoptedModels) -> Call:
        if models.kind == "package":
            return call("ModelSource.from_model_package", literal(models.place))
        if models.is_local:
            function = "from_directory" if models.kind == "directory" else "from_archive"
            return call(f"ModelSource.{function}", f"PROJECT / {quoted(models.place)}")
        bucket = self.code.bucket(models.bucket, "model", models.key_arn)
        return call(f"ModelSource.{_IN_BUCKET[models.kind]}", bucket, literal(models.place))
