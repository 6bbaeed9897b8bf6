"""The hints of commands and of diagnosis, followed literally."""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from hint_cases.commands import CASES, Case, followed, write_files

from constructs_triton.cli import COMMANDS, main
from constructs_triton_core.facts.failures import known_failures
from triton_model_check.cli import main as check_main

_PROGRAMS = {"constructs-triton": main, "triton-model-check": check_main}
_COMMAND = re.compile(r"`constructs-triton ([^`]*)`")
_METHOD = re.compile(r"\b(?:grant|scale_on|auto_scale|retain)_\w+")
_CONSTRUCT = re.compile(r"\bTriton[A-Z]\w+(?:\.\w+)?")
_KEYWORD = re.compile(r"(?<![\w-])([a-z]\w+)=(?:True|False|\d+)")
_OF_TRITON = {"TritonPythonModel", "TritonError", "TritonModelException"}
#: Arguments and methods of tritonclient, onnx, docker, torch, transformers, librosa, s3fs, pandas,
#: Keras, SQLAlchemy, LightGBM, llama.cpp, botocore, the SageMaker SDK and the CDK, and an option
#: of mkfs.xfs.
_OF_OTHERS = {
    "sequence_end",
    "sequence_id",
    "allow_public_subnet",
    "allow_unknown_field",
    "base_score",
    "decoupled",
    "grant_read_write",
    "instance_count",
    "TritonConfig",
    "accept_eula",
    "align_corners",
    "anon",
    "apply_to_children",
    "batching",
    "check_trace",
    "clear_devices",
    "cloud_watch_role",
    "cross_account_keys",
    "cross_region_references",
    "device",
    "device_id",
    "disable_o_auth",
    "do_constant_folding",
    "do_sample",
    "drop_last",
    "drop_params",
    "dynamic",
    "dynamo",
    "early_stopping_rounds",
    "empty_on_delete",
    "enable_chunked_prefill",
    "by_name",
    "enable_math",
    "ignore_index",
    "max_overflow",
    "nrows",
    "pool_size",
    "skip_special_tokens",
    "enable_mem_efficient",
    "exist_ok",
    "flush",
    "force_download",
    "ftype",
    "full_check",
    "grant_consume_messages",
    "header",
    "hw_decoder_load",
    "ignore_mismatched_sizes",
    "ignore_unknown_fields",
    "keep_io_types",
    "llm_int8_enable_fp32_cpu_offload",
    "load_external_data",
    "log_severity_level",
    "maxWorkers",
    "max_new_tokens",
    "max_trials",
    "memory_efficient",
    "memory_size_in_mb",
    "minWorkers",
    "min_worker",
    "mmap",
    "model_loading_timeout",
    "n_gpu_layers",
    "nat_gateways",
    "nofile",
    "num_workers",
    "one_per_az",
    "opset",
    "opset_version",
    "padding",
    "per_channel",
    "port",
    "predict_disable_shape_check",
    "pretrained",
    "private_dns_enabled",
    "read_timeout",
    "require_full_compilation",
    "return_dict",
    "return_token_type_ids",
    "save_as_external_data",
    "scale",
    "sequence_start",
    "sr",
    "ssl",
    "stability_percentage",
    "strict",
    "target_sr",
    "tcp_keepalive",
    "timeout",
    "torchscript",
    "total",
    "truncation",
    "trust_remote_code",
    "use_cache",
    "use_external_data_format",
    "use_fast",
    "weights_only",
    "window_size",
}


def _run(words: list[str], program: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    try:
        code = _PROGRAMS[program](words)
    except SystemExit as ended:  # of the parser of arguments
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    return code, printed.out + printed.err


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
def test_followed_hint_leads_to_the_end_that_the_command_has(
    case: Case,
    tmp_path: Path,
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command fails, and the words of its hint end as expected."""
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # nothing may be called
    words = shlex.split(case.words)
    code, message = _run(words, case.program, capsys)
    assert code in (1, 2)
    assert case.text in message
    then = shlex.split(case.then) if case.text else followed(words, message)
    assert then != words
    code, printed = _run(then, case.program, capsys)
    assert (code, case.output in printed) == (case.code, True), (then, printed)


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _parsers(child)


def _missing(command: str) -> list[str]:
    """The words of a command that neither the program nor the command has."""
    name, *words = shlex.split(command)
    if words and f"{name} {words[0]}" in COMMANDS:
        name, words = f"{name} {words[0]}", words[1:]
    if name not in COMMANDS:
        return [name]
    parser = argparse.ArgumentParser()
    COMMANDS[name].load().add_arguments(parser)
    options = {option for each in _parsers(parser) for option in each._option_string_actions}
    missing = [each for each in words if each.startswith("-") and each not in options]
    actions = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return missing + [words[0] for each in actions if words and words[0] not in each.choices]


def test_commands_of_diagnosis_exist() -> None:
    """Each command in a fix of the catalogue of failures exists,
    with its action and its options.
    """
    found = [
        (each.id, command) for each in known_failures() for command in _COMMAND.findall(each.fix)
    ]
    assert len(found) >= 10
    assert [
        (failure, command, _missing(command)) for failure, command in found if _missing(command)
    ] == []


def _public_names() -> set[str]:
    """The public names, their attributes with and without them,
    and the keywords of all that is callable.
    """
    names: set[str] = set()
    for module in map(importlib.import_module, ("constructs_triton", "constructs_triton_client")):
        for name in dir(module):
            value = getattr(module, name)
            names.add(name)
            if not inspect.isclass(value):
                continue
            names |= {*dir(value), *(f"{name}.{each}" for each in dir(value))}
            names |= set(getattr(value, "__annotations__", ()))
            for _, method in inspect.getmembers(value, inspect.isroutine):
                try:
                    names |= set(inspect.signature(method).parameters)
                except (TypeError, ValueError):  # of a built-in method
                    continue
    return names


def test_constructs_and_keywords_of_diagnosis_exist() -> None:
    """Each construct, method and keyword with a value in a fix of the
    catalogue is a public name.
    """
    public = _public_names()
    found = [
        (each.id, name)
        for each in known_failures()
        for pattern in (_CONSTRUCT, _METHOD, _KEYWORD)
        for name in pattern.findall(each.fix)
    ]
    known = public | _OF_TRITON | _OF_OTHERS
    assert len(found) >= 15
    assert [(failure, name) for failure, name in found if name not in known] == []
