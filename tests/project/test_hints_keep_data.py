"""No text that people follow advises them to delete a key or data."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "constructs_triton", *sorted((ROOT / "packages").glob("*/src")))

_CLAUSE_BEGINS = r"(?:^|[;:,.(] |\b(?:and|or|then|to|so|again|first) )"
_DELETING = r"(?:delete|destroy|erase|purge|empty)\b (?!or\b)(?!and\b)[\w{}\"'`]+[^;,.]*"
_THINGS = (
    r"(?:bucket|keys?|resource|objects?|table|queue|database|volume|stack|one that has|reason)"
)
_REMOVING = rf"remove (?:the|that|this|its|what the)\b[^;,.]*\b{_THINGS}\b[^;,.]*"
_ADVICE = re.compile(rf"{_CLAUSE_BEGINS}(?P<advice>{_DELETING}|{_REMOVING})", re.IGNORECASE)
_COMMAND = re.compile(
    r"\b(s3 r[bm]\b|s3api delete-\w+|kms (schedule-key-deletion|disable-key)|delete-table|"
    r"delete-queue|delete-log-group|cdk destroy)"
)

HARMLESS = {
    # Files on the user's machine that a command writes again.
    "delete the file": "a file of results, or a manifest beside a plan",
    "delete the lock file": "a lock file",
    "delete the folder": "the folder in which a new model would be created",
    "delete the {_kind(target)}": "what is in the place of a new model",
    "delete this file": "the index of a local run",
    # Records of commands, which have no data of the user.
    "delete the record with": "which stack has adopted an endpoint",
    "delete {request": "which job a command has started",
    # What serves and costs, and has no data; each is said with what must be so before.
    "delete the endpoint with `aws sagemaker delete-endpoint": "an adopted endpoint cannot go back",
    "delete each component that": "so that its endpoint can be deleted",
    "delete the endpoint when the list is empty": "an endpoint without components",
    "delete the endpoint without this wait": "an endpoint",
    "delete the old component": "replaced by the component of the app",
    "delete the policy": "a scaling policy",
    "delete the old policy and its alarm": "a scaling policy",
    "delete this one when nothing calls it": "an endpoint",
    "delete one index in each deployment": "an index of a table, which has no data of its own",
    "delete the old one in the next deployment": "an index of a table",
    "delete a stack in rollback_complete": "its first deployment was rolled back: it has nothing",
    "delete the stack again": "the stack is being deleted",
    "delete the stack (`npx cdk destroy`": "its first deployment was rolled back: it has nothing",
    "delete the parameter": "the version of the bootstrap stack, which cdk bootstrap writes again",
    "delete or deploy again": "the component that is being deleted",
    "delete the component before you change it": "what happens if",
    "remove the log group": "from the app, not from the account",
    "destroy {variant.stack}": "the sentence says what the command would delete",
    # Options and questions, whose command asks for a confirmation.
    "delete the archive too": "an option of models remove, with a question",
    "delete the archive of {name}": "the question itself",
    "delete from digests": "a statement for the cache of digests",
    "delete {len(lines)} of {len(old)} resources": "what a test helper found",
    "delete archives": "an option of models prune, with a question",
    "delete a real-time endpoint": "what the command stop does, with a question",
    "delete endpoint {saved": "the question of the command stop",
    # Not advice.
    "delete canceled": "a message of CloudFormation",
    "delete resource": "a message of CloudFormation",
    "delete arn:aws:lambda": "a message of Lambda@Edge",
    "delete is not empty": "a message of S3",
    "delete 0a1b (must be forced)": "a message of Docker",
    "delete this network resource": "a message of CloudFormation",
    "delete domain": "a message of SageMaker Studio",
    "delete the existing mapping with": "a message of Lambda",
    "destroy failed": "a message of the CDK",
    "delete has not been disabled": "a message of CloudFront",
    "delete the stack from this state": "a message of CloudFormation",
    "delete /var/run/docker.pid": "a file of a Docker daemon that has ended",
    "delete ~/.npm/_npx": "a cache of npm, which npx fills again",
    "delete stack fails": "the title of a page",
    "delete a distribution": "the title of a page",
    "delete markers": "what S3 keeps of deleted objects",
    "delete event of": "an event of CloudTrail",
    "delete a bucket that contains models": "what CloudFormation could not do",
    "delete files": "the title of a permission",
    "delete an endpoint": "what a permission allows",
    "delete the stack …": "a sentence of AWS",
    "empty ": "an adjective",
    "cdk destroy": "a heading, or what happens then",
}
"""What may be said, by its beginning in lower case, with what it is about."""


IT = {
    "copying.py": "a copied object with wrong content, which the command could not delete",
    "basis.json": "what is paid by the hour; a key or a bucket has a hint of its own",
    "lock.py": "a lock file",
    "stop.py": "an endpoint that another program created and that failed",
    "failures.json": "an endpoint whose creation failed",
    "report_text.py": "an endpoint, a configuration or a model that nothing uses any more",
}
"""The files in which "delete it" is harmless, with what "it" is there."""

MESSAGES = {"failure_needles.json", "failure_texts.json"}
"""Files with the sentences of other programs, which advise nothing."""


def _texts() -> Iterator[tuple[str, str]]:
    """Each text with its file: strings of Python that are no docstrings, and values of JSON."""
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*.py")):
            for text in _strings(ast.parse(path.read_text(encoding="utf-8"))):
                yield path.name, text
        for path in sorted(folder.rglob("*.json")):
            if path.name in MESSAGES:
                continue
            for text in _values(json.loads(path.read_text(encoding="utf-8"))):
                yield path.name, text


def _strings(tree: ast.Module) -> Iterator[str]:
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inner.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            inner.update(id(part) for part in ast.walk(node) if part is not node)
    for node in ast.walk(tree):
        if id(node) in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(map(_part, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _part(part: ast.expr) -> str:
    """A part of an f-string: its text, or its expression in braces."""
    if isinstance(part, ast.FormattedValue):
        return f"{{{ast.unparse(part.value)}}}"
    return str(part.value) if isinstance(part, ast.Constant) else ""


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _values(each)
    elif isinstance(value, list):
        for each in value:
            yield from _values(each)
    elif isinstance(value, str):
        yield value


def _advice(text: str) -> list[str]:
    """What a text advises to delete, unless it is harmless."""
    found = [match["advice"] for match in _ADVICE.finditer(text)]
    found += [match[0] for match in _COMMAND.finditer(text)]
    return [each for each in found if not each.lower().startswith(tuple(HARMLESS))]


def test_no_hint_deletes_a_key_or_data() -> None:
    """Each text that advises to delete something is about what has no data of the user."""
    found = [
        (file, advice)
        for file, text in _texts()
        if " " in text
        for advice in _advice(text)
        if not (advice.startswith("delete it") and file in IT)
    ]
    assert found == []


def test_what_is_advised_against_is_found() -> None:
    """The search finds the sentences that once were hints, and commands that delete data."""
    for text in (
        "delete the resource that has the name, or remove endpoint_name",
        "give it another name, or remove the one that has the name",
        "so delete this one: aws s3 rb --force s3://bucket",
        "remove the bucket in the next deployment",
        "wrong content; delete the object",
        "run aws kms schedule-key-deletion",
    ):
        assert _advice(text), text
