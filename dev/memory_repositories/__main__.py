"""Checks the memory of public systems on the machines that their authors name.

    PYTHONPATH=dev .venv/bin/python -m memory_repositories [OPTION ...] [NAME ...]

``NAME`` is a part of a system's repository or path. Files are taken from GitHub, or from git
directories ``OWNER+NAME`` in ``FOLDER``, into a folder that is deleted afterwards. The authors ran
their systems on these machines, so a warning about memory is wrong unless the description says why
it is right. The exit status is 1 if a warning differs from the description. ``--record`` writes
``results.json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from memory_repositories.sources import take_files
from memory_repositories.stand_ins import fill_templates, write_weights

_HERE = Path(__file__).parent
_CHECKER = [sys.executable, "-m", "triton_model_check"]


def main() -> int:
    """Check the systems that the arguments name, all by default."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--copies", type=Path, metavar="FOLDER", help="repositories fetched before")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the files here")
    parser.add_argument("--record", action="store_true", help="write results.json")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a part of a repository or path")
    arguments = parser.parse_args()

    results = {}
    for system in _chosen(arguments.names):
        with tempfile.TemporaryDirectory() as folder:
            parent = Path(folder)
            if arguments.keep is not None:
                parent = arguments.keep / _id(system).replace("/", "+").replace(" ", "_")
            result = _result(system, arguments.copies, parent / "models")
        results[_id(system)] = result
        _print(system, result)
    wrong = sum(not result["as_expected"] for result in results.values())
    print(f"{len(results) - wrong} of {len(results)} systems have the expected warnings")
    if arguments.record:
        text = json.dumps(results, indent=1, ensure_ascii=False)
        (_HERE / "results.json").write_text(text + "\n", "utf-8")
    return 1 if wrong else 0


def _chosen(names: Iterable[str]) -> list[dict[str, Any]]:
    systems: list[dict[str, Any]] = tomllib.loads((_HERE / "repositories.toml").read_text("utf-8"))[
        "system"
    ]
    wanted = list(names)
    if not wanted:
        return systems
    return [system for system in systems if any(name in _id(system) for name in wanted)]


def _id(system: Mapping[str, Any]) -> str:
    owner = system.get("repository", "constructs_triton")
    return f"{owner}:{system['path'].strip()} on {system['machine']}"


def _result(system: Mapping[str, Any], copies: Path | None, repository: Path) -> dict[str, Any]:
    """Return what the checker says about a system."""
    left_out = take_files(dict(system), copies, repository)
    fill_templates(repository, system.get("fill", {}))
    for stand_in in system.get("stand_in", ()):
        write_weights(repository / stand_in["file"], stand_in["mebibytes"])

    options = _options(system)
    answer = _run("memory", str(repository), *options, "--json")
    checked = _run("check", str(repository), *options, "--json")
    warnings = []
    others = set()
    for finding in checked["findings"]:
        if "memory" in finding["code"] or "shm" in finding["code"]:
            warnings.append({key: finding[key] for key in ("severity", "code", "message")})
        elif finding["severity"] == "error":
            others.add(finding["code"])
    found = sorted({warning["code"] for warning in warnings})
    not_counted = {line for each in answer["estimates"] for line in each["not_counted"]}
    return {
        "at_least_mib": _totals(answer),
        "limits_mib": _limits(answer),
        "not_counted": sorted(not_counted),
        "warnings": warnings,
        "other_errors": sorted(others),
        "left_out": sorted(left_out),
        "as_expected": found == sorted(system.get("expected", ())),
    }


def _options(system: Mapping[str, Any]) -> list[str]:
    options = []
    for key, given in system["options"].items():
        for value in given if isinstance(given, list) else [given]:
            options += [f"--{key.replace('_', '-')}", str(value)]
    return options


def _run(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([*_CHECKER, *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(arguments)}: {done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _totals(answer: Mapping[str, Any]) -> dict[str, int]:
    """Return the largest sum of each place, in MiB, of the models that are loaded together."""
    largest: dict[str, int] = defaultdict(int)
    for estimate in answer["estimates"]:
        sums: dict[str, int] = defaultdict(int)
        for part in estimate["parts"]:
            sums[part["place"]] += part["size"]
        for place, total in sums.items():
            largest[place] = max(largest[place], total // 2**20)
    return dict(largest)


def _limits(answer: Mapping[str, Any]) -> dict[str, int]:
    return {
        place: limit // 2**20
        for estimate in answer["estimates"]
        for place, limit in estimate["limits"].items()
    }


def _print(system: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    print(_id(system))
    for place, total in result["at_least_mib"].items():
        print(f"  {place}: at least {total} of {result['limits_mib'].get(place, '?')} MiB")
    for warning in result["warnings"]:
        print(f"  {warning['severity']} [{warning['code']}]: {warning['message']}")
    if result["other_errors"]:
        print(f"  other errors: {', '.join(result['other_errors'])}")
    for line in result["not_counted"]:
        print(f"  not counted: {line}")
    for stand_in in system.get("stand_in", ()):
        print(f"  stand-in: {stand_in['file']}, {stand_in['mebibytes']} MiB: {stand_in['known']}")
    if not result["as_expected"]:
        print(f"  NOT AS EXPECTED: {', '.join(system.get('expected', ())) or 'no warning'}")


if __name__ == "__main__":
    sys.exit(main())
