"""Whether ``config.pbtxt`` can be parsed, and whether its placeholders are filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from triton_model_check.checks.layout import has_another_name
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.text_fixes import fix_of_fault, fix_of_repeated_key
from triton_model_check.model_config.text import line_and_column

_TEXT_PROTO = "triton core ReadTextProto; protobuf C++ text format"


def _fault(model: ModelUnderCheck, code: str) -> Iterator[Problem]:
    fault = model.folder.config_fault
    if fault is not None and fault.code == code:
        fix = fix_of_fault(fault, model.folder.config_text or "")
        yield Problem(fault.message, hint=fault.hint, line=fault.line, column=fault.column, fix=fix)


@rule("text-syntax", "fault", source=_TEXT_PROTO)
def text_syntax(model: ModelUnderCheck) -> Iterator[Problem]:
    """``config.pbtxt`` follows the protobuf text format.

    Triton reports only "failed to read text proto"; the line and column are in its log.
    """
    return _fault(model, "text-syntax")


@rule("text-size", "fault", rejects=False, source="bounds of this check; Triton has none")
def text_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """``config.pbtxt`` has at most 1 MiB, 100,000 words, signs and lines, and 50,000 backslashes.

    At most 100 backslashes follow each other. Reading a larger file would take seconds or minutes.
    The largest configurations of public repositories have some thousand words. Triton has no such
    limit and may serve the model, but nothing else of it is checked, so the constructs refuse it.
    """
    return _fault(model, "text-size")


@rule("text-unknown-field", "fault", source=_TEXT_PROTO)
def text_unknown_field(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every field is one of Triton's ``model_config.proto``.

    Triton rejects an unknown field. It does not ignore it.
    """
    return _fault(model, "text-unknown-field")


@rule("text-enum", "fault", source=_TEXT_PROTO)
def text_enum(model: ModelUnderCheck) -> Iterator[Problem]:
    """Enum values are spelled as in the schema, in capitals and without quotes.

    For example, ``FP32`` is the name on the wire, and ``TYPE_FP32`` the name in a configuration.
    """
    return _fault(model, "text-enum")


@rule("text-field-twice", "fault", source=_TEXT_PROTO)
def text_field_twice(model: ModelUnderCheck) -> Iterator[Problem]:
    """A field that is not repeated occurs once.

    Triton rejects a second value even if both are equal.
    """
    return _fault(model, "text-field-twice")


@rule("text-one-of", "fault", source=_TEXT_PROTO)
def text_one_of(model: ModelUnderCheck) -> Iterator[Problem]:
    """Only one of several fields that exclude each other is set.

    ``dynamic_batching``, ``sequence_batching`` and ``ensemble_scheduling`` exclude each other, and
    so do the version policies.
    """
    return _fault(model, "text-one-of")


@rule("text-template", "fault", source=_TEXT_PROTO)
def text_template(model: ModelUnderCheck) -> Iterator[Problem]:
    """The file is a configuration, not a template.

    Many public repositories contain templates with placeholders such as ``${max_batch_size}``,
    which a script fills in. Triton reports them as a syntax error.
    """
    return _fault(model, "text-template")


_KEY = re.compile(r"""\bkey\s*:\s*("[^"\n]*"|'[^'\n]*'|\w+)""")
_MOST_REPEATED = 50  # a generated file can have a hundred thousand
_PLACEHOLDER = re.compile(r"\$\{[^{}\n]*\}")


@warning(
    "text-placeholder",
    source="observed in public model repositories",
    hint="replace the placeholder, or acknowledge this if the model reads it",
)
def placeholder(model: ModelUnderCheck) -> Iterator[Problem]:
    """No placeholder such as ``${model_path}`` is left in a string.

    A placeholder in a string parses, and the model starts with the placeholder as its setting. If
    ``name`` contains one, ``layout-name-differs`` reports it instead. TensorRT-LLM replaces most of
    its placeholders by defaults; ``tensorrt-llm-placeholder`` reports the others.
    """
    if ("${" in model.config.name and has_another_name(model)) or model.context.has_tensorrt_llm:
        return
    text = model.folder.config_text or ""
    hit = _PLACEHOLDER.search(text) if "${" in text else None
    if hit and "#" not in text[text.rfind("\n", 0, hit.start()) + 1 : hit.start()]:
        line, column = line_and_column(text, hit.start())
        yield Problem(
            f"a string contains an unfilled placeholder, got {hit.group()}",
            line=line,
            column=column,
        )


@warning(
    "text-map-key-twice",
    source="protobuf text format: a key that a map has twice takes the last value; Triton 24.10",
    hint="remove the earlier entry, or give one of the two another key",
)
def map_key_twice(model: ModelUnderCheck) -> Iterator[Problem]:
    """A map has every key once, such as those of ``input_map`` and ``parameters``.

    Triton loads such a file and uses the last value. So an ensemble that maps two of its tensors to
    one input of a step reads only the second one, and a parameter that was appended replaces the
    one above it.
    """
    text = model.folder.config_text or ""
    locations = model.folder.locations if _may_repeat_a_key(text) else None
    if locations is None:
        return
    for repeated in islice(locations.repeated_keys(), _MOST_REPEATED):
        earlier = locations.spans(repeated.earlier)
        later = locations.spans(repeated.later)
        if earlier is None or later is None:
            continue
        line, _ = line_and_column(text, later.name[0])
        message = f'{repeated.later[-2]}: key "{repeated.key}" is given twice'
        yield Problem(
            f"{message}; Triton uses the last value, on line {line}",
            repeated.earlier,
            fix=fix_of_repeated_key(text, earlier, later),
        )


def _may_repeat_a_key(text: str) -> bool:
    """Whether a key is in the text twice, in one map or in two.

    To find the place of every field takes much longer, and most files need no places.
    """
    keys = [match.strip("\"'") for match in _KEY.findall(text)]
    return len(set(keys)) < len(keys)
