"""Writes ``docs/reference/checks.md`` and the folder ``checks`` beside it from the rules and their examples.

Run ``python dev/generate_checks_doc.py``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))

from check_examples import EXAMPLES, Example, Files, code_of, write

from constructs_triton_core.findings import Finding, Verdict
from triton_model_check.model_config.checks import RULES
from triton_model_check.model_config.rules import Rule
from triton_model_check.model_config.target import PLATFORMS, Target
from triton_model_check.model_repository import ModelRepository

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
HEAD = """# The checks of a model repository

`constructs-triton check PATH` runs all checks, and so does every construct at synth. Each finding has the
code of its check. The link of a code leads to an example: what `constructs-triton check` prints for a small
repository, and the change that fixes it. The project's tests run every example.

- **error**: Triton rejects the model.
- **error, cannot be served**: Triton loads the model, but no endpoint of SageMaker can answer with it.
- **warning**: the model loads and serves, but causes trouble later.

## The verdict

The worst finding decides the verdict on the repository. The last line of `constructs-triton check`, its JSON
and the message of `RepositoryError` at synth all have the same verdict:

| `verdict` of `--json` | last line | exit code | what to do |
|---|---|---|---|
"""
#: What to do on each verdict.
ADVICE = {
    Verdict.REJECTED: "fix the errors: the container does not start, or the model does not load",
    Verdict.CANNOT_BE_SERVED: "fix the errors: the deployment may succeed, but requests will fail",
    Verdict.LOADS: "read the warnings and what was not checked, and deploy",
}
JSON = """
The last line names the version and the target: "Triton 26.07 on a server loads it". If something was not
checked, it has "accepts what was checked" in place of "loads it". In a script, use the exit code, or compare
`verdict` with `loads`. The JSON has these fields:

| field | content |
|---|---|
| `version` | of the form of this JSON: 1. New fields do not change it |
| `target` | what the check is for, as `--target` has it; `null` if the folder fits no endpoint |
| `image_version` | version of the Triton image, given or assumed; `null` if it is not known |
| `default_models` | models of single-model endpoints |
| `verdict` | as above |
| `findings` | `code`, `severity`, `path`, `line`, `column`, `message`, `hint`, `source`, `fix`, `place` |
| `not_checked` | what was not checked, each with the reason |
| `ignored` | the findings that comments, options or settings ignore; they do not change the verdict |
| `server` | with `--server`, what the server says of each model; it does not change the verdict |

`place` is where an editor can show the finding, also if it has no line: `file`, `line`, `column`, `end_line`
and `end_column`. The file exists; for a folder or a model file, it is the `config.pbtxt` of the model.

## Formats

`--output-format` chooses what `check` prints, on every machine the same, and `--output-file FILE` writes it
to a file instead:

| format | for |
|---|---|
| `text` | people: each finding with its line (default) |
| `json` | scripts: the fields above; `--json` is the same |
| `sarif` | code scanning of GitHub, and viewers of SARIF 2.1.0 |
| `github` | a job of GitHub Actions, which shows the findings beside the lines of a pull request |
| `gitlab` | a Code Quality report of GitLab: `artifacts: reports: codequality: FILE` |

Paths are relative to PATH in `text` and `json`, and to the working folder in the others, as code hosts need
them: run these in the root of the checkout. GitHub shows 10 errors and 10 warnings of a step beside the code;
its log has all.

## How the verdicts are tested

The acceptance tests serve an example of each check whose verdict is `cannot-be-served` with Triton 24.10, and
send the requests that fail. Five checks have only their source: `target-storage` needs SageMaker,
`target-plan-of-several-gpus` needs GPUs, and `tree-features` needs the FIL backend. `text-size` is a limit of
the check itself, and `ignore-without-reason` a rule about its comments; Triton has neither.
"""
CHOICE = """
## Choose what is reported

`check` takes several paths. The path of a model's folder, or of any file in it, reports this model and the
models that need it; its whole repository is checked.

- `--select` and `--ignore` take codes and groups: the beginning of codes, such as `ensemble`, or a chapter of
  this page, such as `warmup`. `--statistics` prints how often each code was found.
- A comment in `config.pbtxt` or `model.py` ignores findings of its line, or of the next field if it has a
  line of its own. A finding without a line is at the first line of the file.

```text
# triton-model-check: ignore[text-placeholder] our start script replaces it
parameters { key: "path" value { string_value: "${path}" } }
```

The reason is required, and a comment that ignores nothing is a warning. Errors of the syntax cannot be
ignored. A comment counts wherever the checks run: in an app it does what
`RepositoryCheck.on(acknowledge=[...])` does, so a model with an ignored error is packed and deployed.

`explain` prints what a code means, and how to fix what it reports. In Python, `check_repository` returns the
findings:

```python
from triton_model_check import check_repository

report = check_repository("models", target="server")
assert [finding.code for finding in report.errors] == []
```

## Fixes

```text
triton-model-check models --diff
triton-model-check models --fix
triton-model-check models --fix --unsafe-fixes
```

`--fix` corrects files where only one spelling can have been meant, such as an enum value in quotes or
`platform: "pytorch"`. With `--unsafe-fixes` it also does what needs a guess: it follows "did you mean", and
chooses one way of a hint that has several. `--diff` prints what they would change, writes nothing, and exits
with 1 if there is a change.

A fix changes only its place: comments, layout, encoding and line ends remain. It does not write through a
link that leaves the repository. What remains is reported as usual, and decides the exit code. `--select` and
`--ignore` choose what is fixed. The tables below have the flag that each check needs; a check without one has
the reason on its page. In JSON, `fix` of a finding is `null`, or has `safe` and `edits`: each replaces the
characters of `path` from `start` to before `end` by `text`.
"""
GROUP_HEAD = """# {title}

[All checks](../checks.md). Each example shows what `constructs-triton check` prints, and the change that
fixes it. Files without content are the same before and after the change.
"""
CHAPTERS = {
    "text": "Syntax of config.pbtxt",
    "ignore_comments": "Comments that ignore findings",
    "layout": "Folders and versions",
    "files": "All files of a repository",
    "backend": "Backend, platform and shared fields",
    "tensors": "Inputs and outputs",
    "batch_io": "Batch inputs and outputs",
    "scheduler": "Schedulers and the response cache",
    "state": "Sequence state",
    "instances": "Instance groups",
    "warmup": "Warmup",
    "python_backend": "Python backend",
    "python_environment": "Packed Python environments and imports",
    "environment_packages": "Packages of packed Python environments",
    "environment_use": "How images use packed Python environments",
    "model_file": "Model files",
    "onnx": "ONNX models",
    "torchscript": "TorchScript models",
    "vllm": "vLLM models",
    "gpu_memory": "vLLM models: memory of the GPUs",
    "tensorrt_llm": "TensorRT-LLM models",
    "other_backends": "Settings of ONNX Runtime, TensorRT and FIL",
    "ensemble": "Ensembles: the graph",
    "ensemble_steps": "Ensembles: the models of the steps",
    "sagemaker": "SageMaker's front end",
    "target": "Image and instance type",
    "server": "How a server is started",
}


def render() -> dict[str, str]:
    """Return the text of each page, by its path below ``docs/reference``."""
    order = list(CHAPTERS)
    rules = sorted(RULES.values(), key=lambda rule: order.index(rule.group))
    groups = {group: list(members) for group, members in groupby(rules, key=lambda rule: rule.group)}
    pages = {f"checks/{group}.md": _group_page(group, members) for group, members in groups.items()}
    return {"checks.md": _contents(groups), **pages}


def _contents(groups: Mapping[str, Sequence[Rule]]) -> str:
    verdicts = (f"| `{each}` | {each.words} | {int(each != 'loads')} | {ADVICE[each]} |\n" for each in ADVICE)
    parts = [HEAD + "".join(verdicts) + JSON + CHOICE]
    for group, rules in groups.items():
        rows = [
            f"| [`{rule.code}`](checks/{group}.md#{rule.code}) | {_effect(rule)} | {_plain(rule.summary)} "
            f"| {_fix(rule)} |"
            for rule in rules
        ]
        parts += [
            f"## {CHAPTERS[group]}\n",
            "| code | severity | rule | fix |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    return "\n".join(parts).rstrip("\n") + "\n"


def _group_page(group: str, rules: Sequence[Rule]) -> str:
    parts = [GROUP_HEAD.format(title=CHAPTERS[group]), *(_section(rule) for rule in rules)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _plain(docstring: str) -> str:
    """Turn the double backquotes of a docstring into Markdown's single ones."""
    return docstring.replace("``", "`")


def _effect(rule: Rule) -> str:
    if rule.severity.value == "warning":
        return "warning"
    return "error" if rule.rejects else "error, cannot be served"


def _fix(rule: Rule) -> str:
    """Return the flag that fixes what the rule finds; empty if nothing can."""
    if rule.fix_reason is not None:
        return ""
    keys = (key for key in EXAMPLES if code_of(key) == rule.code)
    fixes = [each.fix for key in keys for each in _findings(key) if each.code == rule.code]
    safe = {fix.is_safe for fix in fixes if fix is not None}
    return " or ".join(["`--fix`"] * (True in safe) + ["`--unsafe-fixes`"] * (safe != {True}))


def _where(rule: Rule) -> str:
    """Return for which targets and image versions the rule holds; empty if for all."""
    targets = "" if rule.platforms == PLATFORMS else ", ".join(f"`{each}`" for each in rule.platforms)
    first = f"from {rule.since} on" if rule.since else ""
    last = f"before {rule.before}" if rule.before else ""
    images = " and ".join(filter(None, (first, last)))
    parts = (("Targets", targets), ("Images", images))
    return "".join(f"{name}: {value}. " for name, value in parts if value)


def _section(rule: Rule) -> str:
    lines = [f"## {rule.code}\n", f"{_plain(rule.summary)} {_plain(rule.reason)}\n"]
    lines.append(f"Severity: {_effect(rule)}. {_where(rule)}Source: {rule.source}.\n")
    lines.append(f"Fix: {_fix(rule)}.\n" if rule.fix_reason is None else f"No fix: {rule.fix_reason}.\n")
    for key in EXAMPLES:
        if code_of(key) == rule.code:
            lines += _example(key)
    return "\n".join(lines)


def _example(key: str) -> list[str]:
    example = EXAMPLES[key]
    lines = [] if example.target is None else [f"For `{_target(example.target)}`:\n"]
    lines += ["```text", *_printed(key), "```\n", "```diff", *_changed(example), "```\n"]
    if example.fixed_target is not None:
        lines.append(f"Fixed for `{_target(example.fixed_target)}`.\n")
    return lines


def _printed(key: str) -> list[str]:
    """What the command line prints for the failing repository."""
    return [line for finding in _findings(key) for line in str(finding).splitlines()]


@cache
def _findings(key: str) -> tuple[Finding, ...]:
    example = EXAMPLES[key]
    with TemporaryDirectory() as directory:
        repository = ModelRepository.from_directory(write(example.failing, Path(directory) / "models"))
        return repository.check(example.target, is_packed=False).findings


def _changed(example: Example) -> list[str]:
    failing, fixed = _shown(example.failing, example.fixed), _shown(example.fixed, example.failing)
    if failing == fixed:
        return [f" {line}" for line in failing]
    return [line.rstrip() for line in list(unified_diff(failing, fixed, n=len(failing), lineterm=""))[3:]]


def _target(target: Target) -> str:
    default = Target()
    given = {name: getattr(target, name) for name in Target.__dataclass_fields__}
    changed = [f"{name}={value!r}" for name, value in given.items() if value != getattr(default, name)]
    return f"Target({', '.join(changed)})"


def _shown(files: Files, other: Files) -> list[str]:
    """List the files, with the content of those that differ from the other repository."""
    lines = []
    for name in sorted(files):
        content = files[name]
        if content is None:
            lines.append(f"{name}/")
        elif isinstance(content, bytes):
            lines.append(f"{name} ({getattr(content, 'description', f'{len(content)} bytes')})")
        elif content.startswith("->"):
            lines.append(f"{name} {content}")
        else:
            lines.append(name)
            if other.get(name) != content:
                lines += [f"    {line}" for line in content.splitlines()]
    return lines


def main() -> None:
    """Write the pages."""
    shutil.rmtree(REFERENCE / "checks", ignore_errors=True)
    (REFERENCE / "checks").mkdir()
    for path, text in render().items():
        (REFERENCE / path).write_text(text, encoding="utf-8")
    print(f"checks.md: {len(RULES)} checks")


if __name__ == "__main__":
    main()
