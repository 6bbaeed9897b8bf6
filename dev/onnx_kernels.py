"""Write ``onnx_kernels.json``: which operators each ONNX Runtime implements on the CPU.

    python dev/onnx_kernels.py FOLDER MODELS 1.8.1@python3.8 1.15.1 1.16.0 1.28.0 ...

The versions are installed below FOLDER, as for ``onnxruntime_limits.py``. From 1.16 on, a version
lists its kernels. An older one is asked about each model below MODELS, which
``onnx_corpus/backend_models.py`` writes: a kernel of 1.16 is in it if it loads a model that uses
this kernel, and not known to be in it otherwise.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from onnx.shape_inference import infer_shapes
from onnx_corpus.runtimes import install, run

from triton_model_check.model_files.onnx_kernels import single_use

FACTS = Path(__file__).parents[1] / "packages/check/src/triton_model_check/facts/onnx_kernels.json"
FIRST_WITH_LIST = (1, 16)
_LIST = Path(__file__).with_name("onnx_corpus") / "kernel_list.py"
_LOAD = Path(__file__).with_name("onnx_corpus") / "load.py"
_SOURCE = (
    "get_all_opkernel_def() of the ONNX Runtime wheels {listed}: first and last operator set, "
    "first release with the kernel and first without it, and the types of each constraint; before "
    "them, models of one operator that {probed} load"
)

Types = tuple[tuple[str, tuple[str, ...]], ...]


class Kernel(NamedTuple):
    """A kernel, with the first and the last operator set that it is for."""

    domain: str
    operator: str
    first: int
    last: int | None
    types: Types


def main(folder: Path, models: Path, versions: Iterable[str]) -> None:
    """Ask all versions, and write the facts."""
    listed: dict[str, set[Kernel]] = {}
    loaded: dict[str, set[str]] = {}
    for entry in versions:
        version, _, python = entry.partition("@")
        installed = install(folder, version, python or sys.executable)
        if _number(version)[:2] >= FIRST_WITH_LIST:
            rows = run(installed, _LIST, python or sys.executable)
            listed[version] = set(map(_kernel, rows))
        else:
            answers = run(installed, _LOAD, python or sys.executable, str(models))
            loaded[version] = {name for name, answer in answers.items() if "error" not in answer}
    rows = {**_listed_rows(listed)}
    oldest = min(listed, key=_number)
    found = _proven_rows(listed[oldest], loaded, models)
    for kernel, release in found.items():
        rows[kernel] = (release, rows.get(kernel, (None, None))[1])
    _write(rows, sorted(listed, key=_number), sorted(loaded, key=_number))


def _kernel(row: Any) -> Kernel:
    domain, operator, (first, last), types = row
    named = tuple(
        sorted((name, tuple(sorted(map(_plain, given)))) for name, given in types.items())
    )
    return Kernel(domain, operator, first, last if last < 1 << 30 else None, named)


def _plain(name: str) -> str:
    return name.removeprefix("tensor(").removesuffix(")") if name.startswith("tensor(") else name


def _listed_rows(listed: Mapping[str, set[Kernel]]) -> dict[Kernel, tuple[str, str | None]]:
    """Return each kernel with the first release that has it, and the first one that has not."""
    versions = sorted(listed, key=_number)
    rows: dict[Kernel, tuple[str, str | None]] = {}
    for index, version in enumerate(versions):
        for kernel in listed[version]:
            rows.setdefault(kernel, (_named(version, versions), None))
        for kernel in listed[versions[index - 1]] - listed[version] if index else ():
            rows[kernel] = (rows[kernel][0], _named(version, versions))
    return rows


def _named(version: str, versions: Iterable[str]) -> str:
    """Return ``"1.17"`` for the first version of this minor release that was asked."""
    minor = _number(version)[:2]
    first = min((each for each in versions if _number(each)[:2] == minor), key=_number)
    return ".".join(map(str, minor)) if version == first else version


def _proven_rows(
    kernels: Iterable[Kernel], loaded: Mapping[str, set[str]], models: Path
) -> dict[Kernel, str]:
    """Return kernels, with the types that older releases load, and the first of these releases."""
    by_operator = defaultdict(list)
    for kernel in kernels:
        by_operator[kernel.domain, kernel.operator].append(kernel)
    uses: dict[Kernel, list[tuple[str, Mapping[str, str]]]] = defaultdict(list)
    for path in sorted(models.glob("*/model.onnx")):
        for kernel, types in _matching(path, by_operator):
            uses[kernel].append((path.parent.name, types))
    found: dict[Kernel, str] = {}
    for kernel, given in uses.items():
        remaining = dict(kernel.types)
        for version in sorted(loaded, key=_number, reverse=True):
            used = [types for name, types in given if name in loaded[version]]
            remaining = {
                name: tuple(each for each in allowed if any(t[name] == each for t in used))
                for name, allowed in remaining.items()
            }
            if not used or not all(remaining.values()):
                break
            found[kernel._replace(types=tuple(remaining.items()))] = _named(version, loaded)
    return found


def _matching(path: Path, by_operator: Any) -> Iterator[tuple[Kernel, Mapping[str, str]]]:
    try:
        use = single_use(infer_shapes(onnx.load(path)))
    except Exception:  # what the package does not accept proves nothing
        return
    if use is None:
        return
    domain, operator, since, types = use
    for kernel in by_operator[domain, operator]:
        is_for = since == kernel.first or (kernel.last or 0) >= since > kernel.first
        if is_for and all(types.get(name) in allowed for name, allowed in kernel.types):
            yield kernel, types


def _write(
    rows: Mapping[Kernel, tuple[str, str | None]], listed: list[str], probed: list[str]
) -> None:
    domains: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for kernel, (added, removed) in sorted(rows.items(), key=lambda row: _order(*row)):
        types = {name: " ".join(allowed) for name, allowed in kernel.types}
        row = [kernel.first, kernel.last, added, removed, types]
        domains[kernel.domain][kernel.operator].append(json.dumps(row))
    minors = dict.fromkeys(_named(version, listed) for version in listed)
    sources = {"kernels": _SOURCE.format(listed=", ".join(listed), probed=", ".join(probed))}
    lines = [
        "{",
        f'  "as_of": "{datetime.now(UTC):%Y-%m-%d}",',
        f'  "sources": {json.dumps(sources)},',
        f'  "asked": {json.dumps(list(minors))},',
        '  "kernels": {',
    ]
    parts = []
    for domain, operators in sorted(domains.items()):
        if domain in ("ai.onnx", "ai.onnx.ml"):
            inner = ",\n".join(
                f"      {json.dumps(name)}: [{', '.join(found)}]"
                for name, found in sorted(operators.items())
            )
            parts.append(f"    {json.dumps(domain)}: {{\n{inner}\n    }}")
    FACTS.write_text("\n".join([*lines, ",\n".join(parts), "  }", "}", ""]), encoding="utf-8")


def _order(kernel: Kernel, releases: tuple[str, str | None]) -> Any:
    return (kernel.domain, kernel.operator, kernel.first, kernel.last or 0, _number(releases[0])), (
        kernel.types
    )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:])
