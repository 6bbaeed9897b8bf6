"""Writes the pages of the checks, and the examples that ``explain`` prints.

Run ``python dev/generate_checks_doc.py``.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from difflib import ndiff
from functools import cache
from itertools import groupby, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))

from check_examples import EXAMPLES, Example, Files, code_of, write

from constructs_triton_core.findings import Finding, Severity, Verdict
from triton_model_check.checks.chapters import RULES
from triton_model_check.checks.rules import Rule
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

PROJECT = Path(__file__).parents[1]
REFERENCE = PROJECT / "docs" / "reference"
DATA = PROJECT / "packages" / "check" / "src" / "triton_model_check" / "reporting" / "examples.json"
WIDTH = 84
#: Lines of a new file, characters of a line and words of its unchanged parts that an example shows.
MOST_LINES, SHORT, KEPT = 4, 60, 2
HEAD = """# The checks of a model repository

`constructs-triton check PATH` runs all checks, and so does every construct at synth. Each finding
has the code of its check. The link of a code leads to an example: what `check` prints for a small
repository, and the lines that fix it. `constructs-triton explain CODE` prints the same, with the
reason and the source.

- **error**: Triton rejects the model.
- **error, cannot be served**: Triton loads the model, but no endpoint of SageMaker can answer with
  it.
- **warning**: the model loads and serves, but causes trouble later.

## The verdict

The worst finding decides the verdict on the repository. Without an error, the verdict is `unknown`
if something that decides was not checked. The last line of `constructs-triton check`, its JSON,
SARIF, and `check_repository` have the same verdict. At synth, only errors stop the deployment.

| `verdict` of `--json` | last line | exit code | what to do |
|---|---|---|---|
"""
#: What to do on each verdict.
ADVICE = {
    Verdict.REJECTED: "fix the errors: the container does not start, or the model does not load",
    Verdict.CANNOT_BE_SERVED: "fix the errors: the deployment may succeed, but requests will fail",
    Verdict.UNKNOWN: "read what was not checked, and find it out before you deploy: the lines "
    "say what and why",
    Verdict.LOADS: "read the warnings, and deploy",
}
JSON = """
The last line names the version and the target: "Triton 26.08 on a server loads it". For the folder
of one model it names the model: "Triton 26.07 on a server loads the model "bert"". Below it is
every thing that was not checked, with the reason. With `--fail-on-unknown`, or `fail-on-unknown =
true` in the settings, the exit code of `unknown` is 1.

Without `--image-version`, the check is for the image that the construct would take on SageMaker,
and for NVIDIA's newest image whose content is known elsewhere (KServe: its own default).

`constructs-triton check --server` also loads the models in a Triton server on your machine. A model
that this server refuses is the error
[`server-refused`](checks/real_server.md#server-refused), and the verdict is `rejected`. `--ignore`
and `--select` change that only if they name this code. A model that a server of the image's release
loads with its own backend is no longer unknown because of its files.

The JSON has these fields:

| field | content |
|---|---|
| `version` | of the form of this JSON: 2. New fields do not change it |
| `target` | what the check is for, as `--target` has it; `null` if the folder fits no endpoint |
| `image_version` | version of the Triton image, given or assumed; `null` if the folder fits no \
endpoint |
| `default_models` | models of single-model endpoints |
| `models` | the models that PATH names; empty if the verdict is on the whole repository |
| `verdict` | as above |
| `findings` | `code`, `severity`, `path`, `line`, `column`, `message`, `hint`, `source`, \
`fix`, `place` |
| `not_checked` | what decides and was not checked: `model`, `path` and `reason` of each |
| `ignored` | the findings that comments, options or settings ignore; \
they do not change the verdict |
| `server` | with `--server`, what the server says of each model |

`place` is where an editor can show the finding, also if it has no line: `file`, `line`, `column`,
`end_line` and `end_column`. The file exists; for a folder or a model file, it is the `config.pbtxt`
of the model.

## Formats

`--output-format` chooses what `check` prints: `text`, `json` (the fields above, as `--json`),
`sarif` (code scanning of GitHub, and viewers of SARIF 2.1.0), `github` (annotations of a pull
request) or `gitlab` (a Code Quality report). `--output-file FILE` writes it to a file instead.
Paths are relative to PATH in `text` and `json`, and to the working folder in the others: run these
in the root of the checkout. SARIF has the verdicts in `properties` of the run, and a notification
for what was not checked. That is a notice in `github`, and an issue of the severity "info" in
`gitlab`.
"""
CHOICE = """
## Choose what is reported

`check` takes several paths. The path of a model's folder, or of any file in it, reports this model
and the models that need it; its whole repository is checked.

- `--select` and `--ignore` take codes and groups: the beginning of codes, such as `ensemble`, or a
  chapter of this page, such as `warmup`. `--statistics` prints how often each code was found.
- A comment in `config.pbtxt` or `model.py` ignores findings of its line, or of the next field if it
  has a line of its own. A finding without a line is at the first line of the file.

```text
# triton-model-check: ignore[text-placeholder] our start script replaces it
parameters { key: "path" value { string_value: "${path}" } }
```

The reason is required, and a comment that ignores nothing is a warning. Errors of the syntax cannot
be ignored. A comment counts wherever the checks run: in an app it does what
`RepositoryCheck.on(acknowledge=[...])` does, so a model with an ignored error is packed and
deployed.

`explain` prints what a code means, and how to fix what it reports. In Python, `check_repository`
returns the findings:

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

`--fix` corrects files where only one spelling can have been meant, such as an enum value in quotes
or `platform: "pytorch"`. With `--unsafe-fixes` it also does what needs a guess: it follows "did you
mean", and chooses one way of a hint that has several. `--diff` prints what they would change,
writes nothing, and exits with 1 if there is a change.

A fix changes only its place: comments, layout, encoding and line ends remain. It does not write
through a link that leaves the repository. What remains is reported as usual, and decides the exit
code. `--select` and `--ignore` choose what is fixed. The page of a check has the flag that it
needs; of one without a flag, `explain` prints the reason. In JSON, `fix` of a finding is `null`, or
has `safe` and `edits`: each replaces the characters of `path` from `start` to before `end` by
`text`.
"""
GROUP_HEAD = """# {title}

[All checks](../checks.md). `explain CODE` prints reason, source and fix.
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
    "called_models": "Models that Python models call",
    "python_names": "Python models: names and attributes",
    "python_load": "Python models: what they do when they load",
    "python_unbound": "Python models: names without a value",
    "python_class": "Python models: the class",
    "python_completion": "Python models: auto_complete_config",
    "python_modules": "Python models: imported modules",
    "python_results": "Python models: results of execute",
    "python_requests": "Python models: requests and responses",
    "python_calls": "Python models: calls of other models",
    "python_objects": "Python models: the backend's objects",
    "python_files": "Python models: their files",
    "python_environment": "Packed Python environments",
    "python_imports": "Python models: imported packages",
    "environment_packages": "Packages of packed Python environments",
    "environment_use": "How images use packed Python environments",
    "model_file": "Model files",
    "onnx": "ONNX models",
    "torchscript": "PyTorch models",
    "vllm": "vLLM models",
    "gpu_memory": "vLLM models: memory of the GPUs",
    "tensorrt_llm": "TensorRT-LLM models",
    "other_backends": "Settings of ONNX Runtime, TensorRT and FIL",
    "ensemble": "Ensembles: the graph",
    "ensemble_steps": "Ensembles: the models of the steps",
    "sagemaker": "SageMaker's front end",
    "target": "Image and GPUs of the target",
    "target_size": "Memory, disk and request size of the target",
    "shared_memory": "Shared memory of Python models",
    "server": "How a server is started",
    "real_server": "What a Triton server on your machine says",
}


def render() -> dict[str, str]:
    """Return the text of each page, by its path below ``docs/reference``."""
    order = list(CHAPTERS)
    rules = sorted(RULES.values(), key=lambda rule: order.index(rule.group))
    groups = {
        group: list(members) for group, members in groupby(rules, key=lambda rule: rule.group)
    }
    pages = {f"checks/{group}.md": _group_page(group, members) for group, members in groups.items()}
    return {"checks.md": _contents(groups), **pages}


def examples() -> dict[str, dict[str, list[str]]]:
    """Return of each check what the package has of its first example,
    for ``explain`` and for these pages.
    """
    return {code: _example(code) for code in RULES}


def _contents(groups: Mapping[str, Sequence[Rule]]) -> str:
    verdicts = (
        f"| `{each}` | {each.words} | {int(each not in ('loads', 'unknown'))} | {ADVICE[each]} |\n"
        for each in ADVICE
    )
    parts = [HEAD + "".join(verdicts) + JSON + CHOICE]
    for group, rules in groups.items():
        codes = ",\n".join(f"[`{rule.code}`](checks/{group}.md#{rule.code})" for rule in rules)
        parts.append(f"## {CHAPTERS[group]}\n\n{codes}\n")
    return "\n".join(parts).rstrip("\n") + "\n"


def _group_page(group: str, rules: Sequence[Rule]) -> str:
    parts = [GROUP_HEAD.format(title=CHAPTERS[group]), *(_section(rule) for rule in rules)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _effect(rule: Rule) -> str:
    """Return what the message does not say of the severity."""
    return "" if rule.rejects or rule.severity is Severity.WARNING else " Cannot be served."


def _fix(rule: Rule) -> str:
    """Return the flag that fixes what the rule finds; empty if nothing can."""
    if rule.fix_reason is not None:
        return ""
    keys = (key for key in EXAMPLES if code_of(key) == rule.code)
    fixes = [each.fix for key in keys for each in _findings(key) if each.code == rule.code]
    safe = {fix.is_safe for fix in fixes if fix is not None}
    return " or ".join(["`--fix`"] * (True in safe) + ["`--unsafe-fixes`"] * (safe != {True}))


def _section(rule: Rule) -> str:
    found, flags = _example(rule.code), _fix(rule)
    fixed = f" ({flags})" if flags else ""
    summary = rule.summary.replace("``", "`")
    lines = [f"## {rule.code}\n", f"{summary}{_effect(rule)}{fixed}\n"]
    shown = [line for each in found["printed"] for line in _wrapped(each, "    ")]
    changes = [line for each in found["changes"] for line in _wrapped(each, f"{each[:1]}    ")]
    return "\n".join([*lines, "```diff", *shown, *changes, "```\n"])


def _wrapped(line: str, indent: str) -> list[str]:
    """Return a line in the width of a page."""
    start = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line,
        WIDTH,
        subsequent_indent=start + indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


@cache
def _example(code: str) -> dict[str, list[str]]:
    """Return the target of a check's first example, what is printed,
    and the lines that the fix changes.
    """
    key = next((each for each in EXAMPLES if code_of(each) == code), None)
    if key is None:
        raise SystemExit(f"{code}: has no example; add one to dev/check_examples/")
    example = EXAMPLES[key]
    printed = [line for finding in _findings(key) for line in str(finding).splitlines()]
    changes = [
        each if len(each) < 200 else f"{each[:SHORT]} ..." for each in _changes(example, printed[0])
    ]
    if example.fixed_target is not None:
        before, after = _target(example.target or Target()), _target(example.fixed_target)
        changes += [f"-{before}", f"+{after}"] if before != after else []
    return {"printed": printed, "changes": changes}


@cache
def _findings(key: str) -> tuple[Finding, ...]:
    example = EXAMPLES[key]
    with TemporaryDirectory() as directory:
        repository = ModelRepository.from_directory(
            write(example.failing, Path(directory) / "models")
        )
        return repository.check(example.target, is_packed=False).findings


def _changes(example: Example, message: str) -> Iterator[str]:
    """Yield the lines that differ; a file has a line of its own unless only that
    of the message changes.
    """
    before, after = example.failing, example.fixed
    changed = [
        name for name in sorted({*before, *after}) if before.get(name, "") != after.get(name, "")
    ]
    for name in changed:
        old, new = (_content(files, name) for files in (before, after))
        is_named = changed != [name] or not message.startswith(name)
        if name in before and name in after:
            yield from [f" {name}"] * is_named
            yield from _shortened(
                [line[0] + line[2:] for line in ndiff(old, new) if line[0] in "-+"]
            )
        elif name in before:
            yield f"-{name}{_kind(before, name)}"
        else:
            yield f"+{name}{_kind(after, name)}"
            yield from (f"+  {line}" for line in new[:MOST_LINES])
            yield from ["+  ..."] * (len(new) > MOST_LINES)


def _shortened(lines: list[str]) -> list[str]:
    """Leave out what a long line and the line in its place have in common, but for a few words."""
    if [line[0] for line in lines] != ["-", "+"] or max(map(len, lines)) <= SHORT:
        return lines
    old, new = (line[1:].split(" ") for line in lines)
    start = _common(old, new)
    end = min(_common(old[::-1], new[::-1]), len(old) - start, len(new) - start)
    first, last = max(0, start - KEPT), max(0, end - KEPT)
    begin, rest = ["..."] * (first > 1), ["..."] * (last > 1)
    first, last = first if begin else 0, last if rest else 0
    return [
        sign + " ".join([*begin, *words[first : len(words) - last], *rest])
        for sign, words in (("-", old), ("+", new))
    ]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many words both begin with."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))])


def _content(files: Files, name: str) -> list[str]:
    content = files.get(name)
    is_text = isinstance(content, str) and not content.startswith("->")
    return content.splitlines() if isinstance(content, str) and is_text else []


def _kind(files: Files, name: str) -> str:
    content = files[name]
    if isinstance(content, bytes):
        return f" ({getattr(content, 'description', f'{len(content)} bytes')})"
    return "/" if content is None else f" {content}" * content.startswith("->")


def _target(target: Target) -> str:
    default = Target()
    given = {name: getattr(target, name) for name in Target.__dataclass_fields__}
    changed = [
        f"{name}={value!r}"
        for name, value in given.items()
        # What a server said is in the message, and no user writes it.
        if value != getattr(default, name) and name != "answers"
    ]
    return f"Target({', '.join(changed)})"


def main() -> None:
    """Write the pages."""
    # A check without an example ends the program here, before the old pages are deleted.
    found = examples()
    pages = render()

    shutil.rmtree(REFERENCE / "checks", ignore_errors=True)
    (REFERENCE / "checks").mkdir()
    DATA.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for path, text in pages.items():
        (REFERENCE / path).write_text(text, encoding="utf-8")
    print(f"checks.md: {len(RULES)} checks")


if __name__ == "__main__":
    main()
