"""The commands that write files, each with a small folder to work in."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["WRITERS", "Writer"]

PROJECT = Path(__file__).resolve().parents[2]
for _folder in ("packages/check/tests/artifacts", "packages/tools/tests/building/hub"):
    sys.path.insert(0, str(PROJECT / _folder))

_DIGITS = PROJECT / "assets" / "model_repositories" / "digits"
_PICTURE = (
    PROJECT
    / "packages/tools/src/constructs_triton_tools/cli/project/examples/digits/tests/seven.png"
)
_BENCHMARK = PROJECT / "examples" / "published_systems" / "bert_benchmark" / "benchmark.csv"
_PYTHON_MODEL = "class TritonPythonModel:\n    def execute(s, r): return []\n"
_FAULTY = """backend = "python"
input[{name:"x" data_type:TYPE_FP32 dims:[1]}]
output[{name:"y" data_type:TYPE_FP32 dims:[1]}]
"""
_ROLE = "arn:aws:iam::123456789012:role/jobs"
_JOB = {
    "JobName": "bert",
    "JobDescription": "",
    "JobType": "Advanced",
    "JobArn": "arn:aws:sagemaker:us-east-1:123456789012:inference-recommendations-job/bert",
    "RoleArn": _ROLE,
    "Status": "COMPLETED",
    "CreationTime": "2026-01-05T00:00:00",
    "LastModifiedTime": "2026-01-05T00:00:00",
    "InputConfig": {},
    "InferenceRecommendations": [
        {
            "RecommendationId": "a",
            "Metrics": {"MaxInvocations": 1335, "ModelLatency": 499, "CostPerHour": 0.94},
            "EndpointConfiguration": {
                "EndpointName": "e",
                "VariantName": "v",
                "InstanceType": "ml.g4dn.2xlarge",
            },
            "ModelConfiguration": {},
        }
    ],
}


@dataclass(frozen=True)
class Writer:
    """A command that writes.

    Args:
        name: Its name in tables.
        words: The arguments; the current folder is that which ``fill`` has filled.
        fill: Writes what the command reads.
        module: The module of Python that is the command.
        varying: Patterns of files whose content differs from run to run.
        needs: What must run beside it: ``account``, ``hub`` or ``endpoint``.
        ends_at: For a server: what it prints when it is ready. It is stopped then.
        exit_codes: Those of a run that succeeds.
        complete_first: Files that are complete before the last one is written.
        is_once: Whether it refuses to do again what is done.
        variables: Further variables of the environment.
    """

    name: str
    words: tuple[str, ...]
    fill: Callable[[Path], None]
    module: str = "constructs_triton.cli"
    varying: tuple[str, ...] = ()
    needs: str = ""
    ends_at: str = ""
    exit_codes: tuple[int, ...] = (0,)
    complete_first: tuple[str, ...] = ()
    is_once: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


# --- what the commands read -----------------------------------------------------------------------


def _nothing(_: Path) -> None:
    pass


def _faulty_models(folder: Path) -> None:
    for name in ("first", "second", "third"):
        model = folder / "models" / name
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(_FAULTY)
        (model / "1" / "model.py").write_text(_PYTHON_MODEL)


def _digits(folder: Path) -> None:
    shutil.copytree(_DIGITS, folder / "models")


def _picture(folder: Path) -> None:
    shutil.copy(_PICTURE, folder / "seven.png")


def _onnx_file(folder: Path) -> None:
    from onnx import TensorProto, helper, save  # noqa: PLC0415 - only for this command

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    imports = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=imports, ir_version=8), folder / "net.onnx")


def _requirements(folder: Path) -> None:
    from handmade_wheels import write_wheels  # noqa: PLC0415 - from the tests

    write_wheels(folder / "wheels")
    (folder / "requirements.txt").write_text("pure\n")


def _benchmark(folder: Path) -> None:
    shutil.copy(_BENCHMARK, folder / "benchmark.csv")


def _job(folder: Path) -> None:
    (folder / "job.json").write_text(json.dumps(_JOB))


def _app(folder: Path) -> None:
    from constructs_triton.cli import main  # noqa: PLC0415 - takes a second

    with redirect_stdout(io.StringIO()):
        main(["project", "new", str(folder / "app")])
    for path in (folder / "app").iterdir():
        path.rename(folder / path.name)
    (folder / "app").rmdir()


def _assembly(folder: Path) -> None:
    shutil.copytree(_synthesized(), folder / "cdk.out")


def _synthesized() -> Path:
    """Return the assembly of a new project, which is synthesized once."""
    import subprocess  # noqa: PLC0415 - only for this
    import tempfile  # noqa: PLC0415

    if not _SYNTHESIZED:
        project = Path(tempfile.mkdtemp(prefix="machine-faults-"))
        _app(project)
        subprocess.run([sys.executable, "app.py"], cwd=project, check=True, env=_cdk(project))
        _SYNTHESIZED.append(project / "cdk.out")
    return _SYNTHESIZED[0]


_SYNTHESIZED: list[Path] = []


def _cdk(project: Path) -> dict[str, str]:
    import os  # noqa: PLC0415

    return {**os.environ, "CDK_OUTDIR": str(project / "cdk.out"), "CDK_VALIDATION": "false"}


def _captured(folder: Path) -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 400], "data": [0.5] * 400}
    answer = {"model_name": "m", "outputs": [{**tensor, "name": "y"}]}
    lines = [_capture_record({"inputs": [tensor]}, answer, number) for number in range(5)]
    (folder / "captured").mkdir()
    (folder / "captured" / "00-00-000-0.jsonl").write_text("".join(lines))


def _capture_record(request: object, answer: object, number: int) -> str:
    def part(mode: str, value: object) -> dict[str, str]:
        kind = {"observedContentType": "application/json", "mode": mode, "encoding": "JSON"}
        return {**kind, "data": json.dumps(value)}

    data = {"endpointInput": part("INPUT", request), "endpointOutput": part("OUTPUT", answer)}
    event = {"eventId": str(number), "inferenceTime": "2026-01-05T08:30:00Z"}
    record = {"captureData": data, "eventMetadata": event, "eventVersion": "0"}
    return json.dumps(record) + "\n"


# --- the commands ---------------------------------------------------------------------------------

_RATES = ("--rates", "5", "--step-seconds", "1", "--warm-up-seconds", "0", "--step-requests", "5")
_ANY_LATENCY = ("--latency-ms", "100000")
_AT_ENDPOINT = ("--endpoint-url", "URL", "--input", "image=@seven.png", "--batch")

_TYPES = ("ml.g4dn.xlarge", "ml.g4dn.2xlarge", "ml.g4dn.12xlarge")
_PRICES = tuple(word for name in _TYPES for word in ("--price", f"{name}=1"))

WRITERS = (
    Writer("check --fix", ("check", "models", "--fix"), _faulty_models),
    Writer("check --diff", ("check", "models", "--diff"), _faulty_models, exit_codes=(1,)),
    Writer(
        "check --output-file",
        ("check", "models", "--output-format", "sarif", "--output-file", "report.sarif"),
        _faulty_models,
        exit_codes=(0, 1),
    ),
    Writer("pack", ("pack", "models", "-o", "archives"), _digits),
    Writer("model new", ("model", "new", "net.onnx"), _onnx_file, is_once=True),
    Writer("project new", ("project", "new", "app"), _nothing, is_once=True),
    Writer(
        "env build",
        ("env", "build", "requirements.txt", "--find-links", "wheels", "-o", "env.tar.gz"),
        _requirements,
        variables={"UV_OFFLINE": "1"},
        complete_first=("requirements.py3.12.lock",),
    ),
    Writer("graph", ("graph", "cdk.out", "-o", "app.svg"), _assembly),
    Writer(
        "plan --plot",
        (
            *("plan", "benchmark.csv", "--requests-per-second", "100", "--plot", "plan.svg"),
            *_PRICES,
        ),
        _benchmark,
    ),
    Writer(
        "simulate --plot",
        (
            *("simulate", "--pattern", "spike", "--low", "2000", "--high", "15000"),
            *("--throughput", "1335", "--target", "667.5", "--min-capacity", "2"),
            *("--max-capacity", "25", "--plot", "simulated.svg"),
        ),
        _nothing,
    ),
    Writer(
        "plan recommender request",
        (
            *("plan", "recommender", "request", "--job-name", "bert", "--role-arn", _ROLE),
            *("--model-name", "bert", "--instance-type", "ml.g5.xlarge", "-o", "job.json"),
            *("--domain", "NATURAL_LANGUAGE_PROCESSING", "--task", "FILL_MASK"),
            *("--framework", "PYTORCH"),
        ),
        _nothing,
    ),
    Writer(
        "plan recommender import",
        ("plan", "recommender", "import", "job.json", "-o", "measured.csv"),
        _job,
    ),
    Writer(
        "capture read",
        ("capture", "read", "captured", "--record", "recorded.json", "--requests", "mix.jsonl"),
        _captured,
    ),
    Writer(
        "synth",
        (),
        _app,
        module="app",
        variables={"CDK_OUTDIR": "cdk.out", "CDK_VALIDATION": "false"},
    ),
    Writer(
        "rehearse --output-file",
        (
            *("rehearse", "none", "cdk.out", "--failures", "none", "--orders", "1"),
            *("--format", "json", "--output-file", "report.json"),
        ),
        _assembly,
        varying=("report.json",),
        exit_codes=(0, 1),
    ),
    Writer(
        "models copy",
        ("models", "copy", "acme/Llama-Gated", "weights", "--revision", "COMMIT"),
        _nothing,
        needs="hub",
        is_once=True,
    ),
    Writer(
        "adopt",
        ("adopt", "notebook", "-o", "app", "--no-synth", "--switch", "new-endpoint"),
        _nothing,
        needs="account",
        varying=("app/answers/*.json",),
        is_once=True,
    ),
    Writer(
        "invoke --record",
        ("invoke", "digits", *_AT_ENDPOINT, "--record", "recorded.json"),
        _picture,
        needs="endpoint",
        varying=("recorded.json", "recorded_arrays/*"),
    ),
    Writer(
        "load-test",
        (
            "load-test",
            "digits",
            *_AT_ENDPOINT,
            *_RATES,
            *_ANY_LATENCY,
            "-o",
            "rates.csv",
            "--plot",
            "ramp.svg",
        ),
        _picture,
        needs="endpoint",
        varying=("rates.csv", "ramp.svg"),
    ),
    Writer(
        "local up",
        ("local", "up", "models", "--port", "0", "--bucket-folder", "buckets"),
        _digits,
        ends_at="ready",
    ),
    Writer("check --server", ("check", "models", "--server"), _digits),
)
