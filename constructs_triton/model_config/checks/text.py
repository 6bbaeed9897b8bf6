"""Whether ``config.pbtxt`` can be read at all, and whether it was finished."""

from __future__ import annotations

import re
from collections.abc import Iterator

from constructs_triton.findings import Severity
from constructs_triton.model_config.checks.layout import has_another_name
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.model_config.text import SOURCE, line_and_column

__all__: list[str] = []


def _fault(code: str, model: ModelUnderCheck) -> Iterator[Problem]:
    fault = model.folder.config_fault
    if fault is not None and fault.code == code:
        yield Problem(fault.message, hint=fault.hint, line=fault.line, column=fault.column)


@rule("text-syntax", "fault", source=SOURCE)
def syntax(model: ModelUnderCheck) -> Iterator[Problem]:
    """``config.pbtxt`` follows the protobuf text format.

    The server says only "failed to read text proto"; the place is in its log.
    """
    return _fault("text-syntax", model)


@rule("text-unknown-field", "fault", source=SOURCE)
def unknown_field(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every field is one of Triton's ``model_config.proto``.

    An unknown field is refused, never skipped, so a typing error cannot pass for a setting.
    """
    return _fault("text-unknown-field", model)


@rule("text-enum", "fault", source=SOURCE)
def enum_value(model: ModelUnderCheck) -> Iterator[Problem]:
    """Enum values are spelt as in the schema, in capitals and without quotes.

    ``FP32`` is the name on the wire; a configuration says ``TYPE_FP32``.
    """
    return _fault("text-enum", model)


@rule("text-field-twice", "fault", source=SOURCE)
def field_twice(model: ModelUnderCheck) -> Iterator[Problem]:
    """A field that holds one value is given once.

    The server refuses a second one even where both are equal.
    """
    return _fault("text-field-twice", model)


@rule("text-one-of", "fault", source=SOURCE)
def one_of(model: ModelUnderCheck) -> Iterator[Problem]:
    """Of fields that exclude each other only one is given, for example of the schedulers.

    ``dynamic_batching``, ``sequence_batching`` and ``ensemble_scheduling`` exclude each other; so do the
    version policies.
    """
    return _fault("text-one-of", model)


@rule("text-template", "fault", source=SOURCE)
def template(model: ModelUnderCheck) -> Iterator[Problem]:
    """The file is a configuration, not a template of one.

    Many public repositories hold templates with placeholders such as ``${max_batch_size}`` that a script
    fills in; the server refuses them as a syntax error.
    """
    return _fault("text-template", model)


_PLACEHOLDER = re.compile(r"\$\{[^}\n]*\}")


@rule(
    "text-placeholder",
    severity=Severity.WARNING,
    source="observed in public model repositories",
    hint="fill it in, or acknowledge this if the model reads it itself",
)
def placeholder(model: ModelUnderCheck) -> Iterator[Problem]:
    """No placeholder such as ``${model_path}`` is left in a string.

    Inside a string it parses, and the model is started with the placeholder as its setting. A template whose
    ``name`` is refused for one is told that alone.
    """
    if "${" in model.config.name and has_another_name(model):
        return
    text = model.folder.config_text or ""
    hit = _PLACEHOLDER.search(text) if "${" in text else None
    if hit and "#" not in text[text.rfind("\n", 0, hit.start()) + 1 : hit.start()]:
        line, column = line_and_column(text, hit.start())
        yield Problem(f"unfilled placeholder in a string, got {hit.group()}", line=line, column=column)
