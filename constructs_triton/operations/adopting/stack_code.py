"""Collects the code of a stack: its imports, its statements, and the references that several places share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from constructs_triton.operations.adopting.findings import Adoption, SecretParameter
from constructs_triton.operations.adopting.python_text import Call, Expression, Items, assignment, literal
from constructs_triton.operations.adopting.running_endpoint import RunningEndpoint
from constructs_triton.operations.adopting.secrets import is_secret

__all__ = ["StackCode", "list_of"]

_KEY_ARN = re.compile(r"arn:[a-z-]+:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+")
_KEY_ID = re.compile(r"(?:mrk-)?[0-9a-f][0-9a-f-]{10,40}")


def list_of(members: Sequence[Expression]) -> Items:
    """Return a list."""
    return Items(members)


@dataclass(slots=True)
class StackCode:
    """The code of the stack's constructor, in order.

    Args:
        running: The endpoint as it runs.
        adoption: Where findings are noted.
        statements: Name and value of each statement; a statement without a name has an empty one.
        names: Names that are imported from constructs_triton.
        modules: Modules that are imported from aws_cdk, by their alias.
    """

    running: RunningEndpoint
    adoption: Adoption
    statements: list[tuple[str, Expression]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    modules: dict[str, str] = field(default_factory=dict)
    _shared: dict[tuple[str, str], str] = field(default_factory=dict)
    _ids: set[str] = field(default_factory=set)
    _variables: set[str] = field(default_factory=set)

    def ours(self, name: str) -> str:
        """Import a name from constructs_triton and return it."""
        self.names.add(name.partition(".")[0])
        return name

    def module(self, alias: str, name: str) -> str:
        """Import a module of aws_cdk and return its alias."""
        self.modules[alias] = name
        return alias

    def add(self, variable: str, value: Expression) -> str:
        """Add a statement that gives a value a name that is free, and return the name."""
        chosen, number = variable, 2
        while chosen in self._variables:
            chosen, number = f"{variable}_{number}", number + 1
        self._variables.add(chosen)
        self.statements.append((chosen, value))
        return chosen

    def run(self, statement: Expression) -> None:
        """Add a statement without a name."""
        self.statements.append(("", statement))

    def new_id(self, wanted: str) -> str:
        """Return the code of a construct id that is free."""
        base = re.sub(r"[^A-Za-z0-9]", "", wanted) or "Resource"
        chosen, number = base, 2
        while chosen in self._ids:
            chosen, number = f"{base}{number}", number + 1
        self._ids.add(chosen)
        return f'"{chosen}"'

    def text(self, indent: str) -> str:
        """Return the statements."""
        return "\n".join(assignment(name, value, indent) for name, value in self.statements)

    # References to what exists.

    def bucket(self, name: str, use: str, key_arn: str | None = None) -> str:
        """Return the variable of a bucket. Its first use names it; the stack never owns it."""
        if ("bucket", name) in self._shared:
            return self._shared["bucket", name]
        module, construct_id = self.module("s3", "aws_s3"), self.new_id(f"{use.capitalize()}Bucket")
        if key_arn is None:
            value = Call(f"{module}.Bucket.from_bucket_name", ["self", construct_id, literal(name)])
        else:
            key = self.key(key_arn, use)
            keywords: dict[str, Expression] = {"bucket_name": literal(name)}
            if key is not None:
                keywords["encryption_key"] = key
            value = Call(f"{module}.Bucket.from_bucket_attributes", ["self", construct_id], keywords)
        return self._share("bucket", name, f"{use}_bucket", value)

    def key(self, given: str, use: str) -> str | None:
        """Return the variable of a KMS key by its ARN or id; ``None`` for an alias, which is noted."""
        arn = given
        if _KEY_ID.fullmatch(given):
            arn = f"arn:aws:kms:{self.running.region}:{self.running.account}:key/{given}"
            self.adoption.differ("KmsKeyId", f"the ARN of the key in place of its id {given}")
        if not _KEY_ARN.fullmatch(arn):
            self.adoption.refuse(
                "kms-key-alias",
                f"KMS key {given}: is not the ARN or the id of a key; add it by hand in app.py",
            )
            return None
        if ("key", arn) in self._shared:
            return self._shared["key", arn]
        module, construct_id = self.module("kms", "aws_kms"), self.new_id(f"{use.capitalize()}Key")
        return self._share(
            "key", arn, f"{use}_key", Call(f"{module}.Key.from_key_arn", ["self", construct_id, literal(arn)])
        )

    def shared(self, kind: str, name: str, variable: str, value: Call) -> str:
        """Return the variable of something that exists, which is written once."""
        found = self._shared.get((kind, name))
        return found or self._share(kind, name, variable, value)

    def _share(self, kind: str, name: str, variable: str, value: Call) -> str:
        chosen = self.add(variable, value)
        self._shared[kind, name] = chosen
        return chosen

    def value(self, variable: str, value: str, owner: str) -> Expression:
        """Return the code of the value of a variable or a tag: a parameter if it looks like a secret."""
        if not is_secret(variable, value):
            return literal(value)
        found = self._shared.get(("secret", f"{variable}\0{value}"))
        if found is None:
            words = re.findall(r"[A-Za-z0-9]+", variable) or ["Secret"]
            construct_id = self.new_id("".join(word[:1].upper() + word[1:].lower() for word in words))
            name = "_".join(words).lower()
            if not name[0].isalpha() or name in ("self", "models", "endpoint"):
                name = f"secret_{name}"
            parameter = Call("cdk.CfnParameter", ["self", construct_id], {"no_echo": "True"})
            found = self._share("secret", f"{variable}\0{value}", name, parameter)
            self.adoption.parameters.append(SecretParameter(construct_id.strip('"'), variable, owner))
        return f"{found}.value_as_string"
