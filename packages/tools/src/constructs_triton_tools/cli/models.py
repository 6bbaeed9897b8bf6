"""``constructs-triton models``: change the models of a multi-model endpoint without redeploying."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Annotated, TypedDict

from constructs_triton_core.aws_reader import reaching_aws
from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note
from constructs_triton_tools.cli import models_copy
from constructs_triton_tools.cli.deployed import warm
from constructs_triton_tools.cli.next_command import recommend
from constructs_triton_tools.cli.options import add_options, chosen, confirm, open_session, show
from constructs_triton_tools.operations import ModelLibrary
from constructs_triton_tools.operations.model_library import LibraryChange

_ACTIONS = {
    "list": "list the models and their archives",
    "add": "add a model, or replace its archive",
    "remove": "remove a model from the index",
    "restore": "give a removed model its last archive again",
    "sync": "add all models of a repository",
}


class _Place(TypedDict, total=False):
    prefix: Annotated[str, Value("key prefix in the bucket", default="models/")]
    resource: Annotated[
        str, Value("logical ID of the models' resource, if the stack has several", metavar="ID")
    ]


class _Checked(TypedDict, total=False):
    check: Annotated[
        bool,
        Value("refuse models in which the check finds errors", default=True, flag="--no-check"),
    ]


class _Added(_Checked, total=False):
    model: Annotated[str, Value("model of SOURCE to add, if it has several", metavar="NAME")]


class _Removed(TypedDict, total=False):
    delete_archive: Annotated[
        bool, Value("delete the archive too; requests that are using it may fail", default=False)
    ]


class _Synced(_Checked, total=False):
    prune_after_days: Annotated[
        float,
        Value(
            "delete archives that this command added and "
            "that no name has used for DAYS, at least 1",
            metavar="DAYS",
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "List, add, remove and load the models of a multi-model endpoint without redeploying it, "
        "and copy models of Hugging Face. "
        "Models are archives below an S3 prefix; index.json maps each model's name to its archive."
    )
    place = argparse.ArgumentParser(add_help=False)
    where = place.add_mutually_exclusive_group(required=True)
    where.add_argument("--bucket", metavar="BUCKET", help="S3 bucket of the models")
    add_common(where, "--stack", help="CloudFormation stack whose bucket and prefix to use")
    add_options(place, _Place)
    add_common(place, "--region", "--profile", "--json")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    parsers = {
        name: actions.add_parser(
            name, parents=[place], help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        for name, summary in _ACTIONS.items()
    }
    warm.add_arguments(actions.add_parser("warm", help="load models before users call them"))
    models_copy.add_arguments(
        actions.add_parser("copy", help="copy a model of Hugging Face into a folder or to S3")
    )
    for name in ("add", "remove", "restore"):
        parsers[name].add_argument("name", metavar="NAME", help="name of the model in the index")
    add_source = parsers["add"].add_argument
    add_source("source", type=Path, metavar="SOURCE", help="a model repository, or a .tar.gz")
    parsers["sync"].add_argument(
        "source", type=Path, metavar="REPOSITORY", help="a model repository"
    )
    add_options(parsers["add"], _Added)
    add_options(parsers["remove"], _Removed)
    add_options(parsers["sync"], _Synced)
    for name in ("remove", "sync"):
        add_common(parsers[name], "--yes")


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    if arguments.action == "warm":
        return warm.run(arguments)
    if arguments.action == "copy":
        return models_copy.run(arguments)
    retention_days = getattr(arguments, "prune_after_days", None)
    if retention_days is not None and retention_days < 1:
        raise InvalidValueError(
            f"--prune-after-days: must be at least 1, got {retention_days:g}; use 1 or more, "
            "because during an update an endpoint may still "
            "load an archive whose name was removed today"
        )
    actions = {
        "list": _list,
        "add": _add,
        "remove": _remove,
        "restore": _restore,
        "sync": _sync,
    }
    return actions[arguments.action](arguments, _library(arguments))


def _library(arguments: argparse.Namespace) -> ModelLibrary:
    session = open_session(arguments)
    with reaching_aws():
        if arguments.stack is not None:
            return ModelLibrary.from_stack(
                arguments.stack, resource=arguments.resource, session=session
            )
        return ModelLibrary(arguments.bucket, arguments.prefix, session=session)


# The actions.


def _list(arguments: argparse.Namespace, library: ModelLibrary) -> int:
    models = library.models()
    nameless = library.archives_without_name()
    removed = library.removed_models()
    if arguments.json:
        rows = [asdict(model) for model in models]
        print_json(
            {
                "url": library.url,
                "models": rows,
                "nameless_archives": nameless,
                "removed_models": removed,
            }
        )
        return 0
    width = max((len(model.name) for model in models), default=0)
    for model in models:
        size = "missing" if model.size_bytes is None else f"{model.size_bytes / 1e6:.1f} MB"
        origin = "deployed" if model.is_deployed else "added"
        print_lines(f"{model.name:{width}}  {model.target_model}  {size}  {origin}")
    for name in removed:
        print_lines(f"{name:{width}}  deployed, but not in the index; see `models restore`")
    for target_model in nameless:
        print_lines(f"{'':{width}}  {target_model}  (no name)")
    return 0


def _add(arguments: argparse.Namespace, library: ModelLibrary) -> int:
    change = library.add(arguments.name, arguments.source, **chosen(arguments, _Added))
    code = _report(change, library, arguments)
    if not arguments.json:
        recommend(f"models warm ENDPOINT --model {arguments.name}")
    return code


def _sync(arguments: argparse.Namespace, library: ModelLibrary) -> int:
    days = arguments.prune_after_days
    if days is not None:
        confirm(
            arguments,
            lambda: f"Delete archives below {library.url} without a name for {days:g} days?",
        )
    change = library.sync(
        arguments.source,
        prune_after=None if days is None else timedelta(days=days),
        check=arguments.check,
    )
    return _report(change, library, arguments)


def _remove(arguments: argparse.Namespace, library: ModelLibrary) -> int:
    question = _question_of_removal(arguments, library)
    if question:
        confirm(arguments, lambda: question)
    target_model = library.remove(arguments.name, delete_archive=arguments.delete_archive)
    _print({arguments.name: target_model}, arguments)
    return 0


def _restore(arguments: argparse.Namespace, library: ModelLibrary) -> int:
    _print({arguments.name: library.restore(arguments.name)}, arguments)
    return 0


def _question_of_removal(arguments: argparse.Namespace, library: ModelLibrary) -> str:
    """Return what to ask before a model is removed; empty if nothing is lost."""
    name = arguments.name
    if any(model.name == name and model.is_deployed for model in library.models()):
        also = ""
        command = f"models restore {name}"
        if arguments.delete_archive:
            also = " and its archive is deleted"
            command = f"models add {name} SOURCE"
        return (
            f"{name} belongs to a stack: its callers get errors{also}. `{command}` restores it "
            "immediately, and a deployment only if it changes the models or the keys of the "
            f"repository. To remove it for good, remove it from the app. Remove {name} from "
            f"{library.url} now?"
        )
    if arguments.delete_archive:
        return f"Delete the archive of {name} below {library.url}?"
    return ""


def _report(change: LibraryChange, library: ModelLibrary, arguments: argparse.Namespace) -> int:
    for warning in change.warnings:
        print_note(*f"warning[{warning.code}] {warning}".split("\n"))
    _print(change.target_models, arguments)
    sent = len(change.uploaded)
    total = len(change.target_models)
    print_note(f"{sent} of {total} archives uploaded to {library.url}")
    for target_model in change.deleted:
        print_note(f"pruned {target_model}")
    return 0


def _print(target_models: Mapping[str, str], arguments: argparse.Namespace) -> None:
    lines = (f"{name}  {target}" for name, target in target_models.items())
    show(arguments, {"target_models": dict(target_models)}, *lines)
