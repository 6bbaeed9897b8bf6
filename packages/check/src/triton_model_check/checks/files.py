"""All files of a repository that packing puts into archives, whatever reads them."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from triton_model_check.checks.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.model.packed_files import (
    PackedFiles,
    is_composed,
    same_on_some_disks,
)
from triton_model_check.model_files.wrong_content import POINTER_HINT, POINTER_MESSAGE, is_pointer

POINTER_CODE = "file-git-lfs-pointer"
_warning = partial(warning, scope="repository", needs_files=True)


def pointers_of(model: ModelUnderCheck) -> tuple[str, ...]:
    """Return the paths of the model's files that are Git LFS pointers."""
    files = model.context.packed_files.get(model.name)
    if files is None:
        return ()
    pointers = files.findings.git_lfs_pointers
    if model.target.local_files:
        return pointers
    # The other files are stored elsewhere: what is here in their place does not run.
    return tuple(path for path in pointers if path == model.config_place)


def pointer_path(model: ModelUnderCheck, *parts: str) -> str | None:
    """Return the path of a file if it is a Git LFS pointer,
    where another rule reports nothing then.
    """
    if not is_pointer(model.folder.head(*parts)):
        return None
    return posixpath.normpath(model.folder.relative(*parts))


@rule(
    POINTER_CODE,
    "model",
    rejects=False,
    source="Git LFS specification: The Pointer",
    hint=POINTER_HINT,
)
def git_lfs_pointer(model: ModelUnderCheck) -> Iterator[Problem]:
    """No file is a Git LFS pointer.

    Without ``git lfs pull``, Git leaves a few lines of text in place of each large file. Triton
    rejects a model file, ``model.py`` or ``config.pbtxt`` of that content. Other files, such as the
    weights that ``model.py`` reads, fail only while the model is loaded or called.
    ``actions/checkout`` pulls the files with ``lfs: true``. The rule skips files that
    ``.tritonignore`` leaves out.
    """
    for path in pointers_of(model):
        hint = None if model.target.is_sagemaker else f"{POINTER_HINT}, or check with --no-files"
        yield Problem(POINTER_MESSAGE, path=path, hint=hint)


def _of_checkout(context: RepositoryContext) -> Mapping[str, PackedFiles]:
    """The files by model, unless they come from an archive, which is the same on every machine."""
    is_given = context.is_archive or context.complete_bytes is not None
    return {} if is_given else context.packed_files


@_warning(
    "file-line-endings",
    source="gitattributes(5): text, eol",
    hint=(
        "commit a .gitattributes with `* text=auto eol=lf` and clone again, "
        "or save the files with LF"
    ),
)
def line_endings(context: RepositoryContext) -> Iterator[Problem]:
    """The lines of ``config.pbtxt`` and of Python files end with LF, not with CR LF.

    Git for Windows writes CR LF by default. Triton and Python read such files, but the archive has
    another digest than that of a checkout on Linux, so a deployment uploads the models again and
    replaces the instances. The rule reads the first line of each file, and reports all files in one
    finding. It skips servers, which read no archive.
    """
    if not (context.is_packed or context.target.is_sagemaker):
        return
    found: list[str] = []
    for files in _of_checkout(context).values():
        found += files.findings.with_windows_lines
    if not found:
        return

    number = f" in {len(found)} files" if len(found) > 1 else ""
    message = (
        f"lines end with CR LF{number}, so a checkout on another system may give another archive"
    )
    yield Problem(message, path=found[0], line=1)


@_warning(
    "file-names-collide",
    source="Apple APFS and Microsoft NTFS: names of files",
    hint="rename one of them",
)
def names_collide(context: RepositoryContext) -> Iterator[Problem]:
    """Names in a folder do not differ only in case or Unicode form.

    Linux distinguishes ``Model.py`` from ``model.py``. Most disks of macOS and Windows do not, so a
    checkout there has only one of the files, and the archive another content.
    """
    files = _of_checkout(context)
    models = [name for name in context.folders if name in files]
    groups: list[Sequence[str]] = [*same_on_some_disks(models)]
    for model_files in files.values():
        groups += model_files.findings.same_on_some_disks

    for group in groups:
        others = ", ".join(f'"{path}"' for path in group[:-1])
        message = (
            f"differs only in case or Unicode form from {others}: macOS and Windows keep only one"
        )
        yield Problem(message, path=group[-1])


@_warning("file-name-form", source="Unicode Standard Annex 15: Unicode Normalization Forms")
def name_form(context: RepositoryContext) -> Iterator[Problem]:
    r"""The name of a file is in the Unicode form NFC.

    A letter such as ``é`` is one character in NFC (``\u00e9``), and two in NFD (``e\u0301``), which
    some disks of macOS write. Both look the same, but the archives have different digests, and
    Linux finds the file only by the form that it has.
    """
    files = _of_checkout(context)
    paths = [name for name in context.folders if name in files and not is_composed(name)]
    for model_files in files.values():
        paths += model_files.findings.not_composed

    for path in paths:
        name = path.rpartition("/")[2]
        message = f"the name is not in the Unicode form NFC, got {name!a}"
        if context.is_packed or context.target.is_sagemaker:
            message += ": in NFC, the archive is another one"
        hint = f"rename it to {unicodedata.normalize('NFC', name)!a}"
        yield Problem(message, hint=hint, path=path)
