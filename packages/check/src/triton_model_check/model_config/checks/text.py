"""Whether ``config.pbtxt`` can be parsed, and whether its placeholders are filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from triton_model_check.model_config.checks.generation.tensorrt_llm import is_part_of_tensorrt_llm
from triton_model_check.model_config.checks.layout import has_another_name
from triton_model_check.model_config.fixing.text_fixes import fix_of_fault
from triton_model_check.model_config.model_under_check import ModelUnderCheck
from triton_model_check.model_config.rules import Problem, rule, warning
from triton_model_check.model_config.text import SOURCE, line_and_column


def _fault(code: str, model: ModelUnderCheck) -> Iterator[Problem]:
    fault = model.folder.config_fault
    if fault is not None and fault.code == code:
        fix = fix_of_fault(fault, model.folder.config_text or "")
        yield Problem(fault.message, hint=fault.hint, line=fault.line, column=fault.column, fix=fix)


@rule("text-syntax", "fault", source=SOURCE)
def syntax(model: ModelUnderCheck) -> Iterator[Problem]:
    """``config.pbtxt`` follows the protobuf text format.

    Triton reports only "failed to read text proto"; the line and column are in its log.
    """
    return _fault("text-syntax", model)


@rule("text-size", "fault", rejects=False, source="bounds of this check; Triton has none")
def size(model: ModelUnderCheck) -> Iterator[Problem]:
    """``config.pbtxt`` has at most 1 MiB, 100,000 words, signs and lines, and 50,000 backslashes.

    At most 100 backslashes follow each other. Reading a larger file would take seconds or minutes. The
    largest configurations of public repositories have some thousand words. Triton has no such limit and may
    serve the model, but nothing else of it is checked, so the constructs refuse it.
    """
    return _fault("text-size", model)


@rule("text-unknown-field", "fault", source=SOURCE)
def unknown_field(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every field is one of Triton's ``model_config.proto``.

    Triton rejects an unknown field. It does not ignore it.
    """
    return _fault("text-unknown-field", model)


@rule("text-enum", "fault", source=SOURCE)
def enum_value(model: ModelUnderCheck) -> Iterator[Problem]:
    """Enum values are spelled as in the schema, in capitals and without quotes.

    For example, ``FP32`` is the name on the wire, and ``TYPE_FP32`` the name in a configuration.
    """
    return _fault("text-enum", model)


@rule("text-field-twice", "fault", source=SOURCE)
def field_twice(model: ModelUnderCheck) -> Iterator[Problem]:
    """A field that is not repeated occurs once.

    Triton rejects a second value even if both are equal.
    """
    return _fault("text-field-twice", model)


@rule("text-one-of", "fault", source=SOURCE)
def one_of(model: ModelUnderCheck) -> Iterator[Problem]:
    """Only one of several fields that exclude each other is set.

    ``dynamic_batching``, ``sequence_batching`` and ``ensemble_scheduling`` exclude each other, and so do the
    version policies.
    """
    return _fault("text-one-of", model)


@rule("text-template", "fault", source=SOURCE)
def template(model: ModelUnderCheck) -> Iterator[Problem]:
    """The file is a configuration, not a template.

    Many public repositories contain templates with placeholders such as ``${max_batch_size}``, which a script
    fills in. Triton reports them as a syntax error.
    """
    return _fault("text-template", model)


_PLACEHOLDER = re.compile(r"\$\{[^{}\n]*\}")


@warning(
    "text-placeholder",
    source="observed in public model repositories",
    hint="replace the placeholder, or acknowledge this if the model reads it",
)
def placeholder(model: ModelUnderCheck) -> Iterator[Problem]:
    """No placeholder such as ``${model_path}`` is left in a string.

    A placeholder in a string parses, and the model starts with the placeholder as its setting. If ``name``
    contains one, ``layout-name-differs`` reports it instead. TensorRT-LLM replaces most of its placeholders
    by defaults; ``tensorrt-llm-placeholder`` reports the others.
    """
    if ("${" in model.config.name and has_another_name(model)) or is_part_of_tensorrt_llm(model):
        return
    text = model.folder.config_text or ""
    hit = _PLACEHOLDER.search(text) if "${" in text else None
    if hit and "#" not in text[text.rfind("\n", 0, hit.start()) + 1 : hit.start()]:
        line, column = line_and_column(text, hit.start())
        yield Problem(
            f"a string contains an unfilled placeholder, got {hit.group()}", line=line, column=column
        )
