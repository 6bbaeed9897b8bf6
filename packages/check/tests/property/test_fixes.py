"""The fixes of every example of a rule: each corrects its finding and only that."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples import EXAMPLES, Files, code_of, write
from check_examples.onnx_models import relu
from check_examples.repositories import HEAD, IO, ONE_STEP, ONNX, TWO_OUTPUTS, ensemble, pipe, step
from fix_contract import add_comments, assert_ends, broken_promises, check

from triton_model_check.checks.chapters import RULES
from triton_model_check.model_config.target import Target

FEWEST_FIXABLE = 40
_SECOND_OUTPUT = '} output_map { key: "Z" value: "Z" } }'
#: For fixes that the example of their rule does not have.
_MORE: dict[str, Files] = {
    "ensemble-unproduced: misspelled": ensemble(pipe(step("a", "x", "Y"))),
    "ensemble-unread: misspelled": ensemble(pipe(step("a", "X", "y"))),
    "ensemble-unread: one of two": ensemble(
        ONE_STEP.replace("} }", _SECOND_OUTPUT), a=HEAD.replace(IO, TWO_OUTPUTS)
    ),
    "ensemble-unknown-model: misspelled": ensemble(ONE_STEP.replace('"a"', '"A"')),
    "ensemble-unknown-tensor: misspelled": ensemble(ONE_STEP.replace('key: "X"', 'key: "x"')),
    "text-map-key-twice: the same value": {
        name: content.replace('"fast"', '"slow"') if isinstance(content, str) else content
        for name, content in EXAMPLES["text-map-key-twice"].failing.items()
    },
    "onnx-output-name: misspelled": {
        "m/config.pbtxt": ONNX.replace('"Y"', '"y"'),
        "m/1/model.onnx": relu(),
    },
    "python-tensor-name: misspelled": {
        name: content.replace('"id"', '"y"') if isinstance(content, str) else content
        for name, content in EXAMPLES["python-tensor-name"].failing.items()
    },
}
REPOSITORIES: dict[str, tuple[Files, Target | None]] = {
    **{key: (example.failing, example.target) for key, example in EXAMPLES.items()},
    **{key: (files, EXAMPLES[code_of(key)].target) for key, files in _MORE.items()},
}


@pytest.mark.parametrize("key", sorted(REPOSITORIES))
def test_fix_keeps_its_promises(key: str, tmp_path: Path) -> None:
    """Each fix alone keeps its promises, also with comments;
    all together end after a few rounds.
    """
    files, target = REPOSITORIES[key]
    root = write(files, tmp_path / "models")
    assert broken_promises(root, target) == []
    add_comments(root)
    assert broken_promises(root, target) == []
    assert_ends(root, target)


def fixable_codes(folder: Path) -> set[str]:
    """Write all examples into a folder, and return the codes of the findings that have a fix."""
    fixable = set()
    for number, (key, (files, target)) in enumerate(REPOSITORIES.items()):
        found = check(write(files, folder / str(number)), target).findings
        fixable |= {each.code for each in found if each.fix and each.code == code_of(key)}
    return fixable


def test_every_rule_has_a_fix_or_a_reason(tmp_path: Path) -> None:
    """A rule with a fix gives no reason against one, and every other rule gives one."""
    fixable = fixable_codes(tmp_path)
    assert len(fixable) >= FEWEST_FIXABLE
    assert {code for code, rule in RULES.items() if rule.fix_reason is None} == fixable
