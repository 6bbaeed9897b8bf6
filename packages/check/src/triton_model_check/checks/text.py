"""Whether ``config.pbtxt`` can be parsed, and whether its placeholders are filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from triton_model_check.checks.layout import has_another_name
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, reported, warning
from triton_model_check.fixes.text_fixes import fix_of_fault, fix_of_repeated_key
from triton_model_check.model_config.text import line_and_column


def _fault(model: ModelUnderCheck, code: str) -> Iterator[Problem]:
    fault = model.folder.config_fault
    if fault is not None and fault.code == code:
        fix = fix_of_fault(fault, model.folder.config_text or "")
        yield Problem(fault.message, hint=fault.hint, line=fault.line, column=fault.column, fix=fix)


text_syntax = reported("text-syntax", _fault)
text_size = reported("text-size", _fault)
text_unknown_field = reported("text-unknown-field", _fault)
text_enum = reported("text-enum", _fault)
text_field_twice = reported("text-field-twice", _fault)
text_one_of = reported("text-one-of", _fault)
text_template = reported("text-template", _fault)

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
