"""``constructs-triton models``: change the models of a multi-model endpoint without redeploying."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton.errors import InvalidValueError, MissingDependencyError, RepositoryError
from constructs_triton.s3_prefix import check_model_name

if TYPE_CHECKING:
    from constructs_triton.cli.model_prefix import ArchiveFile, ModelPrefix
    from constructs_triton.model_repository import ModelRepository

_ACTIONS = {
    "list": "list the models and their archives",
    "add": "add a model, or replace its archive",
    "remove": "remove a model from the index",
    "sync": "add all models of a repository",
}
_CONCURRENT_UPLOADS = 4
_DAY_SECONDS = 24 * 60 * 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "List, add and remove the models of a multi-model endpoint without redeploying it. Models are "
        "archives below an S3 prefix; index.json maps each model's name to its archive."
    )
    place = argparse.ArgumentParser(add_help=False)
    where = place.add_mutually_exclusive_group(required=True)
    where.add_argument("--bucket", metavar="BUCKET", help="S3 bucket of the models")
    where.add_argument("--stack", metavar="STACK", help="deployed stack whose bucket and prefix to use")
    place.add_argument(
        "--prefix", default="models/", metavar="PREFIX", help="key prefix in the bucket (default: models/)"
    )
    place.add_argument(
        "--resource", metavar="ID", help="logical ID of the models' resource, if the stack has several"
    )
    place.add_argument(
        "--region", metavar="REGION", help="AWS Region (default: that of your AWS configuration)"
    )
    place.add_argument("--profile", metavar="PROFILE", help="profile of your AWS configuration")
    place.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    parsers = {
        name: actions.add_parser(
            name, parents=[place], help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        for name, summary in _ACTIONS.items()
    }
    _declare_add(parsers["add"])
    _declare_remove(parsers["remove"])
    _declare_sync(parsers["sync"])


def _declare_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the model in the index")
    parser.add_argument("source", type=Path, metavar="SOURCE", help="a model repository, or a .tar.gz")
    parser.add_argument("--model", metavar="NAME", help="model of SOURCE to add, if it has several")
    parser.add_argument("--no-check", action="store_true", help="add models even if the check finds errors")


def _declare_remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the model in the index")
    parser.add_argument(
        "--delete-archive",
        action="store_true",
        help="delete the archive too; requests that are using it may fail",
    )


def _declare_sync(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="REPOSITORY", help="a model repository")
    parser.add_argument("--no-check", action="store_true", help="add models even if the check finds errors")
    parser.add_argument(
        "--prune-after-days",
        type=float,
        metavar="DAYS",
        help="delete archives that this command added and that no name has used for DAYS, at least 1",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    retention_days = getattr(arguments, "prune_after_days", None)
    if retention_days is not None and retention_days < 1:
        raise InvalidValueError(
            f"--prune-after-days: must be at least 1, got {retention_days:g}; use 1 or more, because "
            "during an update an endpoint may still load an archive whose name was removed today"
        )
    actions = {"list": _list, "add": _add, "remove": _remove, "sync": _sync}
    return actions[arguments.action](arguments, _prefix(arguments))


def _prefix(arguments: argparse.Namespace) -> ModelPrefix:
    try:
        import boto3  # noqa: PLC0415 - not for --help
    except ImportError:
        raise MissingDependencyError(
            "boto3 is not installed; run `pip install 'constructs-triton[client]'`"
        ) from None
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - likewise

    from constructs_triton.cli.model_prefix import ModelPrefix, find_prefix  # noqa: PLC0415 - likewise

    try:
        session = boto3.Session(region_name=arguments.region, profile_name=arguments.profile)
        if arguments.stack is not None:
            return find_prefix(session, arguments.stack, arguments.resource)
        return ModelPrefix(session, arguments.bucket, arguments.prefix)
    except BotoCoreError as error:
        raise InvalidValueError(f"AWS: cannot be reached ({error}); set --region or --profile") from error


# The actions.


def _list(arguments: argparse.Namespace, prefix: ModelPrefix) -> int:
    models, nameless = prefix.models(), prefix.nameless()
    if arguments.json:
        rows = [asdict(model) for model in models]
        print(json.dumps({"url": prefix.url, "models": rows, "nameless_archives": nameless}, indent=2))
        return 0
    width = max((len(model.name) for model in models), default=0)
    for model in models:
        size = "missing" if model.size_bytes is None else f"{model.size_bytes / 1e6:.1f} MB"
        origin = "deployed" if model.is_deployed else "added"
        print(f"{model.name:{width}}  {model.target_model}  {size}  {origin}")
    for target_model in nameless:
        print(f"{'':{width}}  {target_model}  (no name)")
    return 0


def _add(arguments: argparse.Namespace, prefix: ModelPrefix) -> int:
    check_model_name("NAME", arguments.name)
    with tempfile.TemporaryDirectory(prefix="constructs-triton-") as scratch:
        archive = _archive_of(arguments, Path(scratch))
        return _place(arguments, prefix, {arguments.name: archive})


def _sync(arguments: argparse.Namespace, prefix: ModelPrefix) -> int:
    from constructs_triton.model_repository import ModelRepository  # noqa: PLC0415 - not for --help

    repository = ModelRepository.from_directory(arguments.source)
    for name in repository.top_level_models():
        check_model_name(f"model {name!r}", name)
    _refuse_errors(repository, arguments)
    with tempfile.TemporaryDirectory(prefix="constructs-triton-") as scratch:
        archives = {name: _pack(repository, name, Path(scratch)) for name in repository.top_level_models()}
        _place(arguments, prefix, archives)
    if arguments.prune_after_days is not None:
        for target_model in prefix.prune(arguments.prune_after_days * _DAY_SECONDS):
            print(f"pruned {target_model}", file=sys.stderr)
    return 0


def _remove(arguments: argparse.Namespace, prefix: ModelPrefix) -> int:
    target_model = prefix.forget(arguments.name, is_deleting=arguments.delete_archive)
    _print({arguments.name: target_model}, arguments)
    return 0


def _place(arguments: argparse.Namespace, prefix: ModelPrefix, archives: Mapping[str, ArchiveFile]) -> int:
    """Upload several archives at a time, and change the index when all are uploaded."""
    with ThreadPoolExecutor(_CONCURRENT_UPLOADS) as pool:
        placed = list(pool.map(prefix.upload, archives, archives.values()))
    target_models = {name: target for name, (target, _) in zip(archives, placed, strict=True)}
    prefix.name(target_models)
    _print(target_models, arguments)
    sent = sum(is_sent for _, is_sent in placed)
    print(f"{sent} of {len(placed)} archives uploaded to {prefix.url}", file=sys.stderr)
    return 0


def _print(target_models: Mapping[str, str], arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(json.dumps({"target_models": dict(target_models)}, indent=2))
    else:
        print("\n".join(f"{name}  {target}" for name, target in target_models.items()))


# Archives to upload.


def _archive_of(arguments: argparse.Namespace, scratch: Path) -> ArchiveFile:
    from constructs_triton.cli.model_prefix import ArchiveFile  # noqa: PLC0415 - boto3, not for --help
    from constructs_triton.model_repository import ModelRepository  # noqa: PLC0415 - likewise

    if arguments.source.is_dir():
        repository = ModelRepository.from_directory(arguments.source)
        _refuse_errors(repository, arguments)
        return _pack(repository, arguments.model or _only_model(repository), scratch)
    from constructs_triton.model_repository.archive_outline import outline_archive  # noqa: PLC0415 - likewise

    outline = outline_archive(arguments.source)
    _refuse_errors(outline.repository, arguments)
    return ArchiveFile(arguments.source, outline.archive.digest)


def _only_model(repository: ModelRepository) -> str:
    names = repository.top_level_models()
    if len(names) != 1:
        raise InvalidValueError(
            f"{repository.path}: must contain one top-level model, got {', '.join(names) or 'none'}; "
            "choose one with --model, or add all with `constructs-triton models sync`"
        )
    return names[0]


def _pack(repository: ModelRepository, model: str, scratch: Path) -> ArchiveFile:
    from constructs_triton.cli.model_prefix import ArchiveFile  # noqa: PLC0415 - boto3, not for --help
    from constructs_triton.model_repository import pack  # noqa: PLC0415 - likewise

    archive = pack(repository, repository.closure(model), scratch)
    return ArchiveFile(archive.path, archive.digest)


def _refuse_errors(repository: ModelRepository, arguments: argparse.Namespace) -> None:
    if arguments.no_check:
        return
    from constructs_triton.model_config.target import Target  # noqa: PLC0415 - not for --help
    from constructs_triton.model_repository.cached_repository import CachedRepository  # noqa: PLC0415 - likewise

    found = CachedRepository(repository).check(Target(mode="multi-model"))
    if found.errors:
        raise RepositoryError(str(repository.path), found.errors)
    for warning in found.warnings:
        print(f"warning[{warning.code}] {warning}", file=sys.stderr)
