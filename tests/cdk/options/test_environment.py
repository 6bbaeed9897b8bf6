"""The container's environment variables, their checks against the image, and SageMaker's limits."""

from typing import Any

import pytest
from aws_cdk import Size

from constructs_triton.cdk.options.environment import (
    TritonEnvironment,
    check_limits,
    check_variables,
)
from constructs_triton_core.errors import InvalidValueError
from triton_model_check.facts.environment import variables

TOKEN = "${Token[TOKEN.12]}"
P = "SAGEMAKER_TRITON_"


def test_default_only_turns_the_verbose_log_off() -> None:
    """By default only the variable that turns the verbose log off is set."""
    assert TritonEnvironment().to_variables(image_version="26.05") == {f"{P}LOG_VERBOSE": "false"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"default_model_name": "resnet"}, {f"{P}DEFAULT_MODEL_NAME": "resnet"}),
        ({"inference_type": "generate"}, {f"{P}INFERENCE_TYPE": "generate"}),
        ({"model_namespacing": False}, {f"{P}DISABLE_MODEL_NAMESPACING": "false"}),
        ({"thread_count": 16}, {f"{P}THREAD_COUNT": "16"}),
        ({"buffer_manager_thread_count": 0}, {f"{P}BUFFER_MANAGER_THREAD_COUNT": "0"}),
        ({"model_load_gpu_limit": 0.8}, {f"{P}MODEL_LOAD_GPU_LIMIT": "0.8"}),
        ({"shm_default_byte_size": 1 << 26}, {f"{P}SHM_DEFAULT_BYTE_SIZE": "67108864"}),
        ({"shm_growth_byte_size": 1 << 20}, {f"{P}SHM_GROWTH_BYTE_SIZE": "1048576"}),
        ({"shm_default_byte_size": Size.mebibytes(64)}, {f"{P}SHM_DEFAULT_BYTE_SIZE": "67108864"}),
        ({"log_verbose": 2}, {f"{P}LOG_VERBOSE": "2"}),
        ({"log_info": False}, {f"{P}LOG_INFO": "false"}),
        ({"log_warning": True}, {f"{P}LOG_WARNING": "true"}),
        ({"log_error": True}, {f"{P}LOG_ERROR": "true"}),
        (
            {"allow_metrics": True, "metrics_port": 8002},
            {f"{P}ALLOW_METRICS": "true", f"{P}METRICS_PORT": "8002"},
        ),
        (
            {"allow_grpc": True, "grpc_port": 8001},
            {f"{P}ALLOW_GRPC": "true", f"{P}GRPC_PORT": "8001"},
        ),
        ({"ping_mode": "live"}, {f"{P}OVERRIDE_PING_MODE": "live", f"{P}PING_MODE": "live"}),
        (
            {"additional_models": ["pre", "post"], "additional_args": ["--exit-timeout-secs=30"]},
            {f"{P}ADDITIONAL_ARGS": "--load-model=pre --load-model=post --exit-timeout-secs=30"},
        ),
        ({"extra": {"TRITON_SERVER_CPU_ONLY": "1"}}, {"TRITON_SERVER_CPU_ONLY": "1"}),
        (
            {"thread_count": TOKEN, "default_model_name": TOKEN},
            {f"{P}THREAD_COUNT": TOKEN, f"{P}DEFAULT_MODEL_NAME": TOKEN},
        ),
    ],
)
def test_keyword_becomes_its_variable(settings: dict[str, Any], expected: dict[str, str]) -> None:
    """The value of each keyword is written as the image's script reads it."""
    written = TritonEnvironment(**settings).to_variables(image_version="26.05")
    assert {name: value for name, value in written.items() if name in expected} == expected
    assert set(written) - set(expected) <= {f"{P}LOG_VERBOSE"}


def test_every_variable_of_the_table_is_a_keyword() -> None:
    """The table has a variable for each keyword, and the reverse."""
    assert set(variables()) | {"additional_models", "extra"} == set(
        TritonEnvironment.__dataclass_fields__
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"thread_count": 0},
            r"^environment\.thread_count: must be at least 1 thread, got 0; raise it to 1$",
        ),
        (
            {"model_load_gpu_limit": 80},
            r"model_load_gpu_limit: must be from 0 to 1, got 80; lower it to 1$",
        ),
        (
            {"shm_default_byte_size": 1024},
            r"shm_default_byte_size: must be at least 1048576 bytes, got 1024",
        ),
        ({"shm_growth_byte_size": 0}, r"shm_growth_byte_size: must be at least 1 byte, got 0"),
        (
            {"shm_default_byte_size": Size.kibibytes(1)},
            r"shm_default_byte_size: must be at least 1048576 bytes, got 1024; "
            r"raise it to 1048576$",
        ),
        (
            {"shm_growth_byte_size": Size.mebibytes(-1.8881545897087533e289)},
            r"shm_growth_byte_size: a size token cannot be converted",
        ),
        (
            {"shm_default_byte_size": [64]},
            r"must be a size, got \[64\]; write Size\.mebibytes\(64\)$",
        ),
        ({"thread_count": True}, r"thread_count: must be a number, got True"),
        ({"thread_count": 1.5}, r"thread_count: must be a whole number, got 1\.5; write 1$"),
        ({"allow_metrics": "yes"}, r"allow_metrics: must be True or False, got 'yes'"),
        ({"default_model_name": 3}, r'default_model_name: must be a string, got 3; write "3"$'),
        (
            {"additional_models": [3]},
            r"environment\.additional_models\[0\]: must be a string, got 3",
        ),
        ({"extra": None}, r"environment\.extra: must be a mapping of names to strings, got None"),
        ({"metrics_port": 70000}, r"metrics_port: must be from 1 to 65535, got 70000"),
        ({"tensorflow_version": 3}, r"tensorflow_version: must be from 1 to 2, got 3"),
        ({"log_verbose": -1}, r"log_verbose: must be at least 0, got -1"),
        (
            {"thread_count": "8"},
            r'thread_count: must be a number, got "8"; write it without quotes$',
        ),
        (
            {"thread_count": -1.8881545897087533e289},
            r"thread_count: a number token cannot be converted",
        ),
        (
            {"inference_type": "generat"},
            r'must be one of "infer", .* got "generat"; did you mean "generate"\?$',
        ),
        ({"ping_mode": "dead"}, r'must be one of "ready", "live", got "dead"'),
        (
            {"default_model_name": "my model"},
            r'default_model_name: must match .* got "my model"; use one word',
        ),
        ({"additional_args": ["--a b"]}, r"environment\.additional_args\[0\]: must match"),
        ({"additional_models": "pre"}, r'must be a list, got "pre"; write \["pre"\]$'),
        ({"additional_models": ["*"]}, r"environment\.additional_models\[0\]"),
        (
            {"extra": {f"{P}THREAD_COUNT": "8"}},
            r"must be set by its keyword, .*set thread_count instead$",
        ),
        ({"extra": {f"{P}PING_MODE": "ready"}}, r"set ping_mode instead$"),
    ],
)
def test_value_the_image_would_refuse_is_refused(settings: dict[str, Any], message: str) -> None:
    """A value out of range, of a wrong type or with white space raises an error."""
    with pytest.raises(InvalidValueError, match=message):
        TritonEnvironment(**settings)


def test_variable_newer_than_the_image_is_refused() -> None:
    """The error names the oldest release that reads the variable,
    and does not break a decoupled model.
    """
    environment = TritonEnvironment(inference_type="generate")
    hint = r"use image 25\.04 or later, or remove it if the model is not decoupled"
    with pytest.raises(InvalidValueError, match=rf"image 24\.09 does not read .*{hint}$"):
        environment.to_variables(image_version="24.09")
    assert environment.check(image_version="25.04") == []


def test_plain_mapping_has_the_same_checks() -> None:
    """Findings of a plain mapping name the variable in place of the keyword."""
    given = {
        f"{P}INFERENCE_TYPE": "generate",
        f"{P}PING_MODE": "ready",
        f"{P}TENSORFLOW_VERSION": "2",
    }
    found = check_variables(given, image_version="24.09", multi_model=True)
    typed = TritonEnvironment(inference_type="generate", ping_mode="ready", tensorflow_version=2)
    same = typed.check(image_version="24.09", multi_model=True)
    assert sorted((each.code, each.severity) for each in found) == sorted(
        (each.code, each.severity) for each in same
    )
    assert {each.path for each in found} == {
        f'environment["{P}INFERENCE_TYPE"]',
        f'environment["{P}PING_MODE"]',
    }
    (warning,) = check_variables(given, image_version="25.04")
    assert warning.message == f"image 25.04 no longer reads {P}TENSORFLOW_VERSION"
    overridden = check_variables({f"{P}OVERRIDE_PING_MODE": "ready"}, multi_model=True)
    assert [each.code for each in overridden] == ["ping-mode-multi-model"]
    assert check_variables({f"{P}PING_MODE": TOKEN}, image_version=TOKEN, multi_model=True) == []


@pytest.mark.parametrize("name", [f"{P}SHM_DEFAULT_BYTE_SIZE", f"{P}SHM_GROWTH_BYTE_SIZE"])
def test_a_size_with_a_unit_is_an_error(name: str) -> None:
    """Triton would read 16M as 16 bytes; the hint has the number that is meant."""
    (finding,) = check_variables({name: "16M"}, image_version="26.05")
    assert (finding.code, finding.severity) == ("environment-size-not-a-number", "error")
    assert finding.path == f'environment["{name}"]'
    assert 'ignores a unit, got "16M"' in finding.message
    assert "such as 16777216, or use TritonEnvironment" in finding.hint
    for size in ("16777216", TOKEN):
        assert check_variables({name: size}, image_version="26.05") == []


def test_variable_that_the_image_no_longer_reads_warns() -> None:
    """Triton 25.03 and later do not read the TensorFlow version."""
    environment = TritonEnvironment(tensorflow_version=2)
    (finding,) = environment.check(image_version="25.04")
    assert (finding.code, finding.severity) == ("environment-variable-without-effect", "warning")
    assert environment.check(image_version="24.09") == []


def test_unknown_version_skips_the_checks_by_version() -> None:
    """Your own image, or one whose version is a token, gets all variables that are set."""
    environment = TritonEnvironment(inference_type="generate")
    assert environment.check(image_version=None) == environment.check(image_version=TOKEN) == []
    assert environment.to_variables(image_version=TOKEN)[f"{P}INFERENCE_TYPE"] == "generate"


def test_additional_models_take_the_form_the_release_reads() -> None:
    """Before 23.07 the image reads no additional arguments, so another variable contains them."""
    environment = TritonEnvironment(additional_models=["pre"])
    assert (
        environment.to_variables(image_version="23.07")[f"{P}ADDITIONAL_ARGS"] == "--load-model=pre"
    )
    old = environment.to_variables(image_version="23.02")
    assert (old.get(f"{P}ADDITIONAL_ARGS"), old[f"{P}LOG_INFO"]) == (None, "true --load-model=pre")
    quiet = TritonEnvironment(additional_models=["pre"], log_info=False).to_variables(
        image_version="23.02"
    )
    assert quiet[f"{P}LOG_INFO"] == "false --load-model=pre"


def test_multi_model_always_sets_the_servers_ping_mode() -> None:
    """Without it one model that fails to load would make the endpoint permanently unhealthy."""
    for environment in (TritonEnvironment(), TritonEnvironment(ping_mode="live")):
        written = environment.to_variables(image_version="26.05", multi_model=True)
        assert written[f"{P}PING_MODE"] == "live"
    assert f"{P}PING_MODE" not in TritonEnvironment().to_variables(image_version="26.05")


@pytest.mark.parametrize(
    ("settings", "code", "severity"),
    [
        ({"ping_mode": "ready"}, "ping-mode-multi-model", "error"),
        ({"additional_models": ["pre"]}, "additional-models-multi-model", "error"),
        ({"default_model_name": "a"}, "environment-variable-without-effect", "warning"),
        ({"inference_type": "generate"}, "environment-variable-without-effect", "warning"),
    ],
)
def test_settings_that_contradict_multi_model(
    settings: dict[str, Any], code: str, severity: str
) -> None:
    """Settings that a multi-model endpoint ignores or fails with are findings there only."""
    environment = TritonEnvironment(**settings)
    (finding,) = environment.check(image_version="26.05", multi_model=True)
    assert (finding.code, finding.severity) == (code, severity)
    assert environment.check(image_version="26.05") == []


@pytest.mark.parametrize(
    ("name", "code", "hint"),
    [
        (f"{P}TREAD_COUNT", "environment-variable-unknown", f'did you mean "{P}THREAD_COUNT"?'),
        (f"{P}MAX_BATCH_DELAY", "environment-variable-unknown", ""),
        ("SAGEMAKER_BIND_TO_PORT", "environment-variable-reserved", "remove it"),
    ],
)
def test_odd_names_in_extra_warn(name: str, code: str, hint: str) -> None:
    """Warnings suggest a similar variable of the image, or name a variable that SageMaker sets."""
    (finding,) = TritonEnvironment(extra={name: "1"}).check(image_version="26.05")
    assert (finding.code, finding.severity) == (code, "warning")
    assert hint in finding.hint
    assert TritonEnvironment(extra={"MY_OWN": "1"}).check() == []


def test_sagemakers_limits() -> None:
    """There may be 100 variables of 1024 characters, 32 KiB together;
    names have allowed characters.
    """
    check_limits({f"A{index}": "x" for index in range(100)})
    for environment, message in (
        ({f"A{index}": "x" for index in range(101)}, "must have 0 to 100 entries, got 101"),
        ({"A": "x" * 1025}, "at most 1024 characters"),
        (
            {f"A{index}": "x" * 1000 for index in range(40)},
            "together: must be from 0 to 32768 bytes",
        ),
        ({"1A": "x"}, "no digit first"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            check_limits(environment)
    check_limits({"A": TOKEN * 200})
