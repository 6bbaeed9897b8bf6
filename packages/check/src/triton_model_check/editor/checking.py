"""Checks what an editor has open, as ``triton-model-check check`` does."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding, Place, Severity
from triton_model_check.choosing.settings import Settings
from triton_model_check.cli.check import add_checking, check_named
from triton_model_check.cli.check_paths import NamedModels
from triton_model_check.editor.model_files import ModelFile
from triton_model_check.model_config.text import SOURCE, read_text_fault
from triton_model_check.untrusted.unsaved_files import unsaved_files

Texts = Mapping[ModelFile, str]
"""What an editor has of files of one repository."""


class Checker:
    """The check with the options of the command line and of the editor."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments

    def with_options(self, options: Any) -> Checker:
        """Return the checker with the options of an editor: ``{"target": "kubernetes"}``.

        The names are those of the command line without their hyphens at the beginning. An option
        that may be repeated can be a list, and one without a value is ``true``.

        Raises:
            InvalidValueError: there is no such option, or it does not have this value.
        """
        if not isinstance(options, Mapping):
            return self
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
        add_checking(parser)
        try:
            arguments, unknown = parser.parse_known_args(
                list(_words(options)), copy.copy(self._arguments)
            )
        except argparse.ArgumentError as error:
            raise InvalidValueError(f"initializationOptions: {error}") from None
        if unknown:
            raise InvalidValueError(
                f"initializationOptions: there is no such option, got {unknown[0]!r}; "
                "see `triton-model-check lsp --help`"
            )
        return Checker(arguments)

    def check(self, repository: Path, texts: Texts) -> dict[Path, list[Finding]]:
        """Return the findings in the files of an editor, by their paths.

        Nothing is written, and no other file is newer than it is on disk.

        Raises:
            InvalidValueError: the settings of the project are wrong.
        """
        if not repository.is_dir():
            return {file.path: text_findings(text, file.name) for file, text in texts.items()}

        named = NamedModels(repository, frozenset(file.model for file in texts))
        with unsaved_files(encoded(texts)):
            checked = check_named(named, self._arguments, Settings.of(repository), is_saved=False)
        found: dict[Path, list[Finding]] = {file.path: [] for file in texts}
        for finding in checked.report.findings:
            path = repository / finding.place.file if finding.place else None
            if path in found:
                found[path].append(finding)
        return found


def encoded(texts: Texts) -> dict[str, bytes]:
    """Return the texts as the files that they would be, by path."""
    # A client can send half of a surrogate pair, which UTF-8 cannot express. "?" is one character
    # too, so what follows keeps its place.
    return {str(file.path): text.encode("utf-8", "replace") for file, text in texts.items()}


def text_findings(text: str, name: str) -> list[Finding]:
    """Return why a configuration that is in no repository cannot be parsed, if it cannot."""
    fault = read_text_fault(text)[1]
    if fault is None:
        return []
    line = fault.line or 1
    column = fault.column or 1
    place = Place(name, line, column, line, column + 1)
    return [
        Finding(
            fault.code,
            Severity.ERROR,
            name,
            fault.message,
            fault.hint,
            SOURCE,
            fault.line,
            fault.column,
            rejects=True,
            place=place,
        )
    ]


def _words(options: Mapping[str, Any]) -> Iterable[str]:
    """Yield options as the command line has them."""
    for name, value in options.items():
        values = value if isinstance(value, list) else [value]
        for each in values:
            if each is True:
                yield f"--{name}"
            elif each is not False and each is not None:
                yield f"--{name}={each}"
