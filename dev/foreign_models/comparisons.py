"""Compares the checker with the two records: the server's and that of five ONNX Runtimes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from foreign_models import checker, contract_record, runtime_record
from foreign_models.contract_cases import ContractCase
from foreign_models.fit import has_known_types, misfit
from foreign_models.packages import ForeignFile
from foreign_models.verdicts import Disagreement, Said, Truth, disagreement

_PROCESSES = 2
#: In place of an image version: the verdict of ``model new``.
NEW = "model new"

Compared = tuple[tuple[str, str], Disagreement | None]


def compare_contract(cases: Sequence[ContractCase], onnx_runtime: str) -> Iterator[Compared]:
    """Yield each contract case with how the checker differs from the server.

    Raises:
        ValueError: the server was not asked about a case as it is now.
    """
    verdicts = contract_record.recorded()
    old = contract_record.outdated(cases, verdicts)
    if old:
        raise ValueError(f"{', '.join(old)}: was changed; run `make foreign-models-record`")
    with tempfile.TemporaryDirectory(prefix="contract-") as folder:
        paths = {case.name: Path(folder) / case.name for case in cases}
        for case in cases:
            case.write(paths[case.name])
        said = checker.check(list(paths.values()), contract_record.IMAGE, onnx_runtime)
    for case in cases:
        verdict = verdicts[case.name]
        truth = contract_record.truth_of(case.name, verdicts)
        real = f"{verdict['load']} {verdict.get('status', '')} {verdict.get('answer', '')}"
        answer = said[paths[case.name]]
        yield (case.name, ""), disagreement(case.name, "", truth, real[:300], answer)


def compare_files(files: Sequence[ForeignFile], onnx_runtime: str) -> Iterator[Compared]:
    """Yield each file, for ``model new`` and for each image, with how the checker differs."""
    recorded = runtime_record.recorded()
    with tempfile.TemporaryDirectory(prefix="files-") as folder:
        repositories = {file: Path(folder) / str(index) for index, file in enumerate(files)}
        with ThreadPoolExecutor(_PROCESSES) as pool:
            created = pool.map(
                lambda file: checker.model_new(file.cached, repositories[file], onnx_runtime), files
            )
            configs = dict(zip(files, created, strict=True))
        for file, config in configs.items():
            yield _compared_new(file, config, recorded)
            if isinstance(config, Said):
                _write_bare(file, repositories[file])
        models = [file for file in files if _is_checked(file, configs[file])]
        for image in runtime_record.RUNTIMES.values():
            said = checker.check([repositories[file] for file in models], image, onnx_runtime)
            for file in models:
                verdict = recorded.get(file.name, {}).get(image)
                truth, real = _truth(file, configs[file], verdict)
                answer = said[repositories[file]]
                yield (file.name, image), disagreement(file.name, image, truth, real, answer)


def _compared_new(
    file: ForeignFile,
    config: Mapping[str, Any] | Said,
    recorded: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> Compared:
    """Compare whether ``model new`` writes a configuration: it must if any runtime loads it."""
    said = config if isinstance(config, Said) else Said("loads")
    if file.served_by == "none":
        # Whether it is refused is for the check to say.
        truth, real = Truth.DOUBTFUL, ""
    elif file.served_by == "onnxruntime":
        verdicts = recorded[file.name].values()
        loads = [verdict for verdict in verdicts if "error" not in verdict]
        is_known = any(has_known_types(verdict) for verdict in loads)
        truth = Truth.VALID if is_known else Truth.DOUBTFUL
        real = f"{len(loads)} of {len(verdicts)} ONNX Runtimes load it"
    else:
        truth, real = Truth.VALID, f"the backend {file.served_by} serves such files"
    return (file.name, NEW), disagreement(file.name, NEW, truth, real, said)


def _is_checked(file: ForeignFile, config: Mapping[str, Any] | Said) -> bool:
    """Whether there is something to check: without a configuration, ONNX files alone."""
    return file.served_by == "onnxruntime" or not isinstance(config, Said)


def _write_bare(file: ForeignFile, repository: Path) -> None:
    """Write an ONNX model without a configuration, which Triton then completes by itself."""
    shutil.rmtree(repository, ignore_errors=True)
    (repository / "m" / "1").mkdir(parents=True)
    (repository / "m" / "1" / "model.onnx").symlink_to(file.cached)


def _truth(
    file: ForeignFile, config: Mapping[str, Any] | Said, verdict: Mapping[str, Any] | None
) -> tuple[Truth, str]:
    if file.served_by == "none":
        return Truth.REJECTED, "no backend of Triton reads such a file"
    if verdict is None:
        return Truth.VALID, f"the backend {file.served_by} serves such files"
    if "error" in verdict:
        return Truth.REJECTED, verdict["error"]
    if not has_known_types(verdict):
        return Truth.DOUBTFUL, "a type that the backend may not know"
    reason = None if isinstance(config, Said) else misfit(config, verdict)
    if reason is not None:
        return Truth.REJECTED, f"the backend refuses the configuration of `model new`: {reason}"
    return Truth.VALID, "ONNX Runtime loads it"
