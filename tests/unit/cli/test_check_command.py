"""``constructs-triton check``: output, exit codes, colour."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from check_examples import Files, write
from check_examples.onnx_models import relu
from check_examples.repositories import CLASS, HEAD, IO, ONE_STEP, ensemble, one
from check_examples.torch_and_plan import plan

from constructs_triton.cli import main
from constructs_triton_tools.local import server_check
from constructs_triton_tools.local.sources.sources import read_source
from triton_model_check.checks.report import Report
from triton_model_check.model_config.server_answer import ServerAnswer
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

PYTHON_CONFIG = """backend: "python"
input [{ name: "x" data_type: TYPE_FP32 dims: [1] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [1] }]
"""
CONFIG = 'backend: "onnxruntime"\nmax_batch_size: -1\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one error."""
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.onnx").write_bytes(relu())
    (tmp_path / "m" / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def test_text_shows_the_line_and_a_caret(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finding is followed by its line with a caret below the column, and by the hint."""
    assert main(["check", str(repository)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("m/config.pbtxt:2:1: error[backend-max-batch-size]: ")
    assert lines[1:4] == [
        "   2 | max_batch_size: -1",
        "       ^",
        "    hint: write 0 for a model without batching",
    ]
    assert lines[-2] == f'1 error, 0 warnings: Triton 26.05 {_ONE} of "m" rejects it'
    assert lines[-1] == "  1 fixable with --fix --unsafe-fixes"


MODEL = {"m/1/model.onnx": relu()}
IMPORTS = (
    "import transformers\nclass TritonPythonModel:\n    def execute(self, "
    "requests):\n        return []\n"
)
GRAPHDEF = f'platform: "tensorflow_graphdef"\nmax_batch_size: 8\n{IO}'


@pytest.mark.parametrize(
    ("files", "code", "line"),
    [
        # Without the name of the file, the hint would be to add a field to a file that does not
        # exist.
        (
            {"m/1/.gitkeep": "", "m/config.pbtext": 'backend: "python"\n'},
            1,
            'hint: rename "config.pbtext" to "config.pbtxt"',
        ),
        # A ``.gitkeep`` is not the model file.
        (
            {"m/config.pbtxt": GRAPHDEF, "m/1/.gitkeep": ""},
            1,
            'hint: copy the model to "1/model.graphdef"',
        ),
        # The last line of a file is shown with a caret too if no line break follows.
        ({**MODEL, "m/config.pbtxt": CONFIG.rstrip("\n")}, 1, "2 | max_batch_size: -1"),
        # A model that imports what AWS's image lacks loads only in another image.
        (
            {"m/1/model.py": IMPORTS, "m/config.pbtxt": PYTHON_CONFIG},
            0,
            "0 errors, 1 warning: unknown: Triton 26.05 on a SageMaker single-model endpoint of",
        ),
        # Escape sequences in a file are not sent to the terminal.
        (
            {**MODEL, "m/config.pbtxt": 'name: "\x1b[31m"\nbackend: "python"'},
            1,
            "m/config.pbtxt:1:1: error",
        ),
    ],
    ids=["misnamed", "hidden", "last line", "import", "escape"],
)
def test_line_that_is_printed(
    files: Files, code: int, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hints, excerpts and the summary are about the files of the user,
    and have no control characters.
    """
    assert main(["check", str(write(files, tmp_path / "models"))]) == code
    printed = capsys.readouterr().out
    assert any(each.strip().startswith(line) for each in printed.splitlines())
    assert "\x1b" not in printed


def test_summary_lists_what_was_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The content of a TensorRT plan is not checked, so the verdict is unknown, with exit code 0
    unless the option says that unknown fails.
    """
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.plan").write_bytes(plan())
    (tmp_path / "m" / "config.pbtxt").write_text('platform: "tensorrt_plan"\n', encoding="utf-8")
    of_image = [str(tmp_path), "--image-version", "24.05"]
    assert main(["check", *of_image]) == 0
    assert capsys.readouterr().out.splitlines() == [
        (
            "0 errors, 0 warnings: unknown: Triton 24.05 on a SageMaker single-model "
            'endpoint of "m" accepts what was checked'
        ),
        "  m/1/model.plan: tensors not checked",
    ]
    assert main(["check", *of_image, "--fail-on-unknown"]) == 1
    capsys.readouterr()
    assert main(["check", *of_image, "--no-files", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "unknown"
    assert document["not_checked"] == [
        {"model": "m", "path": "m", "reason": "model files not checked"}
    ]


def test_json_contains_verdict_and_findings(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON has exactly the documented fields."""
    assert main(["check", str(repository), "--target", "sagemaker", "--gpus", "0", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "rejected"
    assert set(document) == {
        "version",
        "target",
        "image_version",
        "default_models",
        "models",
        "verdict",
        "findings",
        "not_checked",
        "ignored",
    }
    fields = {
        "code",
        "severity",
        "path",
        "line",
        "column",
        "message",
        "hint",
        "source",
        "place",
        "fix",
    }
    assert {frozenset(finding) for finding in document["findings"]} == {frozenset(fields)}


def test_exit_codes(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 without errors, even with warnings."""
    config = repository / "m" / "config.pbtxt"
    config.write_text('backend: "onnxruntime"\ninstance_group { count: -1 }\n', encoding="utf-8")
    assert main(["check", str(repository)]) == 0
    assert "warning[instance-count]" in capsys.readouterr().out


@pytest.mark.parametrize(("no_color", "is_coloured"), [("", True), ("1", False)])
def test_colour_on_a_terminal_unless_turned_off(
    repository: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    no_color: str,
    is_coloured: bool,
) -> None:
    """A terminal shows colours, unless NO_COLOR is set."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    main(["check", str(repository)])
    assert ("\x1b[" in capsys.readouterr().out) is is_coloured


def test_folder_of_models_may_be_one_archive(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two models are two archives of a multi-model endpoint; in one archive they are an error."""
    for name in ("m", "n"):
        (repository / name / "1").mkdir(parents=True, exist_ok=True)
        (repository / name / "1" / "model.onnx").write_bytes(relu())
        (repository / name / "config.pbtxt").write_text(
            'backend: "onnxruntime"\n', encoding="utf-8"
        )
    assert main(["check", str(repository), "--target", "sagemaker-multi-model"]) == 0
    assert main(["check", str(repository), "--target", "sagemaker-multi-model", "--archive"]) == 1
    assert "error[sagemaker-archive-order]" in capsys.readouterr().out


def test_called_models_are_those_of_all_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The option may be repeated, and its values are separated by commas."""
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_text('backend: "python"')
    options = ["--called-models", "m=one, two", "--called-models", "m=three"]
    assert main(["check", str(tmp_path), *options]) == 1
    printed = capsys.readouterr().out
    assert all(f'calls to call "{name}"' in printed for name in ("one", "two", "three"))


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        (["--target", "sagemaker"], "mode", "single"),
        (["--target", "server"], "mode", "single"),
        (["--target", "sagemaker-multi-model"], "mode", "multi-model"),
        (["--target", "kserve"], "shm_bytes", 64 << 20),
        (["--target", "docker", "--shm-size", "1g"], "shm_bytes", 1 << 30),
        (["--backends", "a, b"], "backends", ("a", "b")),
        (["--load-model", "m", "--load-model", "n"], "load_models", ("m", "n")),
        (["--model-config-name", "h100"], "model_config_name", "h100"),
        (["--gpus", "4"], "gpu_count", 4),
        (["--gpus", "0"], "gpu_count", 0),
        ([], "gpu_count", None),
        (["--image-version", "26.05"], "image_version", "26.05"),
        (["--default-model", "m"], "default_model", "m"),
        ([], "local_files", True),
        (["--no-files"], "local_files", False),
    ],
)
def test_each_option_reaches_the_check(
    repository: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], field: str, value: object
) -> None:
    """Each option sets its own field of the target."""
    targets: list[Target] = []
    check = ModelRepository.check

    def noting(self: ModelRepository, target: Target, **more: Any) -> Any:
        targets.append(target)
        return check(self, target, **more)

    monkeypatch.setattr(ModelRepository, "check", noting)
    main(["check", str(repository), *options])
    assert getattr(targets[0], field) == value


_CALLS = """import triton_python_backend_utils as pb_utils
def request(**arguments):
    return pb_utils.InferenceRequest(model_name='a', **arguments)
"""
_TWO = one(HEAD, **{"a/config.pbtxt": HEAD, "a/1/model.py": CLASS})
_DECOUPLED = HEAD + "model_transaction_policy { decoupled: true }\n"


_CLEAN = "0 errors, 0 warnings: Triton"
_ONE = "on a SageMaker single-model endpoint"
_SERVED = f"{_CLEAN} 26.05 {_ONE}"
_NOT_SERVED = "1 error, 0 warnings: it cannot be served"
_AT_ROOT = {"config.pbtxt": HEAD, "1/model.py": CLASS}


@pytest.mark.parametrize(
    ("files", "options", "summary"),
    [
        (one(HEAD), (), f'{_SERVED} of "m" loads it'),
        (ensemble(ONE_STEP), (), f'{_SERVED} of "pipe" loads it'),
        (ensemble(ONE_STEP), ("--target", "server"), f"{_CLEAN} 26.08 on a server loads it"),
        (one(HEAD), ("--target", "kserve"), f"{_CLEAN} 23.05 on KServe loads it"),
        (
            one(HEAD),
            ("--target", "docker", "--image-version", "24.10"),
            f"{_CLEAN} 24.10 in a container loads it",
        ),
        (
            ensemble(ONE_STEP),
            ("--target", "sagemaker"),
            f"1 error, 0 warnings: Triton 26.05 {_ONE} rejects it",
        ),
        (_TWO, (), f"{_CLEAN} 26.05 on a SageMaker multi-model endpoint loads it"),
        (
            {**_TWO, "b/config.pbtxt": HEAD, "b/1/model.py": CLASS + _CALLS},
            (),
            (
                f"{_CLEAN} 26.05 on SageMaker single-model endpoints, "
                'one for each of "b" and "m" loads it'
            ),
        ),
        (one(_DECOUPLED), ("--image-version", "24.09"), f'{_NOT_SERVED} {_ONE} of "m"'),
        (_AT_ROOT, ("--archive",), f"{_CLEAN} 26.05 on a SageMaker multi-model endpoint loads it"),
        (_AT_ROOT, (), f'{_CLEAN} 26.05 loads the model "models"'),
        (_AT_ROOT, ("--target", "server"), f'{_CLEAN} 26.08 on a server loads the model "models"'),
        (
            {"config.pbtxt": _DECOUPLED, "1/model.py": CLASS},
            ("--image-version", "24.09"),
            '1 error, 0 warnings: the model "models" cannot be served',
        ),
    ],
)
def test_endpoint_is_derived_from_the_folder(
    files: Files,
    options: tuple[str, ...],
    summary: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rules of Triton and of SageMaker apply, and the summary says for which image and type of
    endpoint; the folder of one model is no endpoint.
    """
    main(["check", str(write(files, tmp_path / "models")), *options])
    assert capsys.readouterr().out.splitlines()[-1] == summary


def test_an_error_of_every_endpoint_is_found_without_a_check_for_each_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broken file among many models takes two checks, and not one for each model."""
    files = {f"m{number}/config.pbtxt": f'backend: "python"\n{IO}' for number in range(9)}
    files |= {f"m{number}/1/model.py": CLASS for number in range(9)}
    write({**files, "m4/config.pbtxt": "backend = 1"}, tmp_path)
    asked: list[object] = []
    check = ModelRepository.check

    def counted(self: ModelRepository, *given: Any, **options: Any) -> Report:
        asked.append(given)
        return check(self, *given, **options)

    monkeypatch.setattr(ModelRepository, "check", counted)
    assert main(["check", str(tmp_path)]) == 1
    assert "1 error" in capsys.readouterr().out
    assert len(asked) == 2


def test_ignored_finding_of_several_endpoints_is_counted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of the endpoints, which the folder needs for ``b``, has the finding of its own model."""
    ignored = (
        "instance_group { count: -1 }  # triton-model-check: "
        "ignore[instance-count] derived by a script\n"
    )
    files = {**_TWO, "b/config.pbtxt": HEAD + ignored, "b/1/model.py": CLASS + _CALLS}
    write({**files, "m/config.pbtxt": HEAD + ignored}, tmp_path / "models")
    assert main(["check", str(tmp_path / "models")]) == 0
    summary = capsys.readouterr().out.splitlines()[0]
    assert summary.startswith(
        "0 errors, 0 warnings, 2 ignored: Triton 26.05 on SageMaker single-model endpoints"
    )


def test_one_folder_too_high_names_the_right_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hint names the folder that contains the models, with which the check passes."""
    write(ensemble(ONE_STEP), tmp_path / "shop" / "models")
    hint = (
        '    hint: use the folder "models" as the repository: '
        'it contains the folders "a" and "pipe"'
    )
    assert main(["check", str(tmp_path / "shop")]) == 1
    assert hint in capsys.readouterr().out.splitlines()
    (tmp_path / "shop" / "tests").mkdir()
    (tmp_path / "shop" / ".git" / "objects" / "1").mkdir(
        parents=True
    )  # looks like a model with a version
    assert main(["check", str(tmp_path / "shop")]) == 1
    assert hint in capsys.readouterr().out.splitlines()
    assert main(["check", str(tmp_path / "shop" / "models")]) == 0


def _answers(*answers: ServerAnswer) -> Callable[..., dict[str, ServerAnswer]]:
    return lambda *_: {each.model: each for each in answers}


def test_refusal_of_the_server_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It decides the verdict in text and JSON, and only its own code ignores it."""
    write(one(HEAD), tmp_path)
    refusal = ServerAnswer("m", "rejected", "no", release="24.10", hint="fix it")
    monkeypatch.setattr(server_check, "ask_server", _answers(refusal))
    command = ["check", str(tmp_path), "--server"]
    assert main(command) == 1
    assert capsys.readouterr().out.splitlines() == [
        "m/config.pbtxt: error[server-refused]: Triton 24.10 on this machine (the image has 26.05) "
        "refuses the model: no",
        "    hint: fix it",
        '1 error, 0 warnings: Triton 26.05 on a SageMaker single-model endpoint of "m" rejects it',
        "server: m: rejected: no",
    ]
    for words in (["--ignore", "server"], ["--ignore", "python,layout"], ["--select", "layout"]):
        assert main([*command, *words, "--json"]) == 1
        document = json.loads(capsys.readouterr().out)
        assert document["verdict"] == "rejected"
        assert document["server"] == {"m": "rejected: no"}
    assert main([*command, "--ignore", "server-refused"]) == 0


_PLAN = {"m/config.pbtxt": 'platform: "tensorrt_plan"\n', "m/1/model.plan": plan()}


@pytest.mark.parametrize(
    "case",
    [
        # The real backend of the image's release has read the file.
        (_PLAN, ServerAnswer("m", "loads", release="24.05"), "loads"),
        (_PLAN, ServerAnswer("m", "loads", release="24.10"), "unknown"),
        (_PLAN, ServerAnswer("m", "loads", release="24.05", loader="empty-backend"), "unknown"),
        (one(HEAD), ServerAnswer("m", "unknown", "no answer"), "unknown"),
        # The stand-in has another version than the image's runtime.
        (one(HEAD), ServerAnswer("m", "rejected", "no", loader="stand-in"), "unknown"),
        # Triton's core refuses a configuration that no backend would complete.
        (one(HEAD), ServerAnswer("m", "rejected", "no", loader="empty-backend"), "rejected"),
        (_PLAN, ServerAnswer("m", "rejected", "no", loader="empty-backend"), "unknown"),
        # NumPy is in the image.
        (one(HEAD), ServerAnswer("m", "rejected", "No module named 'numpy'"), "unknown"),
        (one(HEAD), ServerAnswer("m", "rejected", "No module named 'mine'"), "rejected"),
        (one(HEAD), ServerAnswer("m", "rejected", "libcuda.so.1: cannot open"), "unknown"),
    ],
)
def test_answer_of_the_server_decides_only_what_the_image_would_do(
    case: tuple[Files, ServerAnswer, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A stand-in, an empty backend and what this machine lacks leave the verdict unknown."""
    files, answer, verdict = case
    monkeypatch.setattr(server_check, "ask_server", _answers(answer))
    words = ["--server", "--image-version", "24.05", "--json"]
    main(["check", str(write(files, tmp_path)), *words])
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == verdict
    assert bool(document["not_checked"]) is (verdict == "unknown")


@pytest.mark.parametrize(
    ("files", "options", "command"),
    [
        (one(HEAD), (), ""),
        (_TWO, (), " --multi-model"),
        (_TWO, ("--default-model", "m"), " --model m"),
        (_TWO, ("--target", "server"), " --multi-model"),
        (ensemble(ONE_STEP), (), ""),
        (
            {**_TWO, "b/config.pbtxt": HEAD, "b/1/model.py": CLASS},
            ("--called-models", "b=m"),
            " --model a --called-models b=m",
        ),
    ],
)
def test_next_command_is_for_the_same_models(
    files: Files,
    options: tuple[str, ...],
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``local up`` gets what it needs to serve what was checked."""
    folder = write(files, tmp_path / "models")
    assert main(["check", str(folder), *options]) == 0
    note = capsys.readouterr().err.splitlines()[-1]
    assert note == f"next: constructs-triton local up {folder}{command}"
    chosen = command.split()
    assert read_source(folder, tmp_path, **_local_arguments(chosen))


def _local_arguments(words: list[str]) -> dict[str, Any]:
    return {
        "is_multi_model": "--multi-model" in words,
        "model": words[words.index("--model") + 1] if "--model" in words else None,
        "calls": {"b": ["m"]} if "--called-models" in words else None,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gpus", "-1"], "--gpus: must be at least 0, got -1; raise it to 0\n"),
        (["--gpus", "abc"], "--gpus: must be a whole number, at least 0, got 'abc'\n"),
        (
            ["--image-version", "new"],
            '--image-version: must be a Triton release (year and month), got "new"',
        ),
        (["--target", "both"], '--target: must be a target, got "both"; use one of'),
    ],
)
def test_wrong_options_are_reported(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    """With the option and the value, exit code 2."""
    with pytest.raises(SystemExit) as ended:
        main(["check", ".", *options])
    assert ended.value.code == 2
    assert f"argument {message}" in capsys.readouterr().err
