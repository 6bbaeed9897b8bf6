"""Folders: models, version directories, and what is looked for in them."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton.findings import Severity
from constructs_triton.model_config.model_under_check import ModelUnderCheck, RepositoryContext
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.spelling import quoted

__all__: list[str] = []

_VERSIONS = "triton core VersionsToLoad"


@rule(
    "layout-no-model",
    "repository",
    refuses=False,
    source="triton server docker/sagemaker/serve: models are loaded by name",
    hint="name the folder whose sub-folders are models, each with config.pbtxt or a version folder such as 1",
)
def no_model(context: RepositoryContext) -> Iterator[Problem]:
    """The folder holds at least one model.

    The server starts with an empty repository and then has nothing to answer with. Mostly it is the folder
    above the right one, or one below it.
    """
    folders = [name for name, is_link in context.directories.items() if not is_link]
    if context.folders or context.root is not None or (context.front_end and not folders):
        return
    yield Problem(f"holds no model, got {_few(sorted(context.directories))}")


def _few(names: list[str], most: int = 4) -> str:
    if not names:
        return "no folders"
    if len(names) <= most:
        return f"the folders {quoted(names)}"
    return f"the folders {', '.join(names[:most])} and {len(names) - most} more"


@rule(
    "layout-no-version",
    "model",
    source=_VERSIONS,
    hint="put the model's files into a folder called 1 inside it",
    needs_files=True,
)
def no_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model has at least one version directory, an ensemble too (an empty one is enough).

    Git keeps no empty folders: most ensembles in public repositories have lost theirs. Packing makes it anew,
    so that an ensemble without one is a mistake only where the folder is used as it lies there.
    """
    folder = model.folder
    if folder.version_directories or (folder.is_ensemble and model.context.is_packed):
        return
    hint = "make an empty folder called 1 in it, with a .keep file for git" if folder.is_ensemble else None
    if "1" in folder.entries:
        yield Problem("version 1 is a file, not a folder", path=folder.relative("1"), hint=hint)
    else:
        folders = [name for name, is_directory in folder.entries.items() if is_directory]
        got = f", got folders {quoted(sorted(folders))}" if folders else ""
        yield Problem(f"has no version directory{got}", path=folder.path, hint=hint)


@rule(
    "layout-no-version-chosen",
    source=_VERSIONS,
    hint="name a version that is there, or use latest",
    needs_files=True,
)
def no_version_chosen(model: ModelUnderCheck) -> Iterator[Problem]:
    """The version policy chooses at least one version that is there.

    ``specific`` skips versions that are absent; ``latest`` without ``num_versions`` asks for none at all.
    """
    if model.versions_to_load or not model.folder.version_directories:
        return
    policy = model.config.version_policy
    there = quoted(sorted(model.folder.version_directories))
    if policy.WhichOneof("policy_choice") == "latest":
        yield Problem("version_policy latest asks for 0 versions", ("version_policy",), "set num_versions: 1")
    else:
        wanted = ", ".join(str(version) for version in policy.specific.versions) or "none"
        yield Problem(f"version_policy names {wanted}, got versions {there}", ("version_policy", "specific"))


@rule(
    "layout-version-absent",
    when=("version_policy",),
    severity=Severity.WARNING,
    source=_VERSIONS,
    hint="leave it out or add it",
    needs_files=True,
)
def version_absent(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every version that the policy names is there.

    The server logs an absent one as an error and goes on with the others.
    """
    if not model.versions_to_load or model.config.version_policy.WhichOneof("policy_choice") != "specific":
        return
    there = set(model.folder.version_directories.values())
    for index, version in enumerate(model.config.version_policy.specific.versions):
        if version not in there:
            place = ("version_policy", "specific", "versions", index)
            yield Problem(f"version_policy names version {version}, which has no folder", place)


@rule(
    "layout-version-name",
    "model",
    source=_VERSIONS,
    hint="rename the folder to a plain number",
    needs_files=True,
)
def version_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a version directory to load is a plain number of at most 64 bits.

    Triton reads the number at the start of the name: ``1abc`` counts as version 1, whose folder is then not
    found; nor is that of a negative version. The Python backend waits for ever then. A number beyond 64 bits
    aborts the server. What lies in an ensemble's version directory is never looked for.
    """
    loaded = () if model.folder.is_ensemble else model.versions_to_load
    for name, number in sorted(model.folder.version_directories.items()):
        path = model.folder.relative(name)
        if number is None:
            yield Problem(f"version {name} is beyond 64 bits and aborts the server", path=path)
        elif name in loaded and (name != str(number) or number < 0):
            yield Problem(f'folder "{name}" counts as version {number} but is not found by it', path=path)


@rule(
    "layout-version-skipped",
    "model",
    severity=Severity.WARNING,
    source=_VERSIONS,
    hint="rename it without the zeros, or remove it",
    needs_files=True,
)
def version_skipped(model: ModelUnderCheck) -> Iterator[Problem]:
    """A folder that looks like a version is one.

    Triton skips numbers with leading zeros, with no more than a line in its log.
    """
    for name, is_directory in sorted(model.folder.entries.items()):
        if is_directory and len(name) > 1 and name[0] == "0" and name.isdigit():
            yield Problem(
                f'version folder "{name}" is skipped for its leading zero', path=model.folder.relative(name)
            )


@rule(
    "layout-config-is-folder",
    "model",
    source="triton core GetModelConfig",
    hint="make it a file, or remove it",
)
def config_is_folder(model: ModelUnderCheck) -> Iterator[Problem]:
    """``config.pbtxt`` is a file.

    A folder of that name aborts the server.
    """
    if model.folder.entries.get("config.pbtxt"):
        yield Problem("config.pbtxt is a folder", path=model.folder.config_path)


@rule(
    "layout-config-unreadable",
    "model",
    source="triton core ReadTextProto",
    hint="make the file readable, or replace the dangling link",
)
def config_unreadable(model: ModelUnderCheck) -> Iterator[Problem]:
    """``config.pbtxt`` can be read.

    A dangling link or missing rights end in "failed to open text file".
    """
    folder = model.folder
    if folder.has_config and not folder.entries["config.pbtxt"] and folder.config_text is None:
        yield Problem("config.pbtxt cannot be read", path=folder.config_path)


@rule("layout-name-differs", when=("name",), source="triton core InitializeModelInfo")
def name_differs(model: ModelUnderCheck) -> Iterator[Problem]:
    """``name`` is left out or equals the folder's name, capitals included.

    Exempt is what the multi-model loader serves under the name of the archive: its ``name`` is overwritten.
    The steps of an ensemble are never exempt.
    """
    if has_another_name(model):
        name, hint = model.config.name, f'write name: "{model.name}", leave it out, or rename the folder'
        if "${" in name:
            hint = "fill the template in and check the result"
        yield Problem(f'name differs from its folder "{model.name}", got "{name}"', ("name",), hint)


def has_another_name(model: ModelUnderCheck) -> bool:
    """Whether the server compares ``name`` with the folder's, and finds it different."""
    mapped = (
        model.target.mode == "multi-model" and model.context.front_end and model.name in model.context.served
    )
    name = model.config.name
    return bool(name) and name != model.name and not mapped and model.folder.path != "."
