"""Examples of the checks of config.pbtxt, folders and backends."""

from __future__ import annotations

from check_examples.onnx_models import relu
from check_examples.repositories import (
    BEGIN,
    CLASS,
    CONTROL,
    HEAD,
    IO,
    ONE_STEP,
    ONNX,
    PLAN,
    Example,
    added,
    ensemble,
    foreign,
    graph,
    one,
)
from check_examples.torch_and_plan import torchscript
from triton_model_check.model_config.target import Target

IGNORE = "triton-model-check: ignore"
PLACEHOLDER = 'parameters { key: "path" value { string_value: "${path}" } }\n'
_TENSORS = IO.replace('"X"', '"INPUT__0"').replace('"Y"', '"OUTPUT__0"')
_WITH_START = torchscript("INPUT__0: Tensor, S__1: Tensor", "torch.relu(INPUT__0)")
_PYTORCH = f'backend: "pytorch"\nmax_batch_size: 8\n{_TENSORS}'

EXAMPLES: dict[str, Example] = {
    "text-syntax": Example(one(HEAD.replace(":", "", 1)), one(HEAD)),
    "text-syntax: byte order mark": Example(one("\ufeff" + HEAD), one(HEAD)),
    "text-syntax: plus sign": Example(one(HEAD.replace("8", "+8", 1)), one(HEAD)),
    "text-syntax: underscore": Example(one(HEAD.replace("8", "1_000", 1)), one(HEAD)),
    "text-syntax: unknown escape": added(
        'metric_tags { key: "a" value: "\\d" }\n', 'metric_tags { key: "a" value: "\\\\d" }\n'
    ),
    "text-syntax: comment": added("// batches\n", "# batches\n"),
    "text-syntax: JSON": Example(one('{ "backend": "python" }'), one(HEAD)),
    "text-syntax: open list": added(
        'metric_tags [ { key: "a" value: "b" }\ndynamic_batching { }\n',
        'metric_tags [ { key: "a" value: "b" } ]\ndynamic_batching { }\n',
    ),
    "text-syntax: open list in braces": Example(
        one(HEAD.replace("[ 4 ]", "[ 4, 8 ", 1)), one(HEAD.replace("[ 4 ]", "[ 4, 8 ]", 1))
    ),
    "text-syntax: no comma": Example(
        one(HEAD.replace("[ 4 ]", "[ 4 -1 ]", 1)), one(HEAD.replace("[ 4 ]", "[ 4, -1 ]", 1))
    ),
    "text-syntax: unit": added(
        'dynamic_batching { max_queue_delay_microseconds: "5ms" }\n',
        "dynamic_batching { max_queue_delay_microseconds: 5000 }\n",
    ),
    "text-syntax: comma at the end": Example(one(HEAD.replace("[ 4 ]", "[ 4, ]", 1)), one(HEAD)),
    "text-size": added("# " + 1001 * "\\" + "\n", ""),
    "text-unknown-field": Example(one(HEAD.replace("input", "inputs", 1)), one(HEAD)),
    "text-unknown-field: parameter": added(
        'parameters { model_type: "x" }\n',
        'parameters { key: "model_type" value: { string_value: "x" } }\n',
    ),
    "text-enum": Example(one(HEAD.replace("TYPE_FP32", "FP32", 1)), one(HEAD)),
    "text-enum: in quotes": Example(one(HEAD.replace("TYPE_FP32", '"TYPE_FP32"', 1)), one(HEAD)),
    "text-field-twice": added("max_batch_size: 8\n", ""),
    "text-one-of": added("dynamic_batching { }\nsequence_batching { }\n", "dynamic_batching { }\n"),
    "text-template": Example(one(HEAD.replace("8", "${batch}", 1)), one(HEAD)),
    "text-placeholder": added(
        'parameters { key: "path" value { string_value: "${path}" } }\n',
        'parameters { key: "path" value { string_value: "/opt/ml/model/m/1" } }\n',
    ),
    "text-map-key-twice": added(
        'parameters { key: "mode" value { string_value: "fast" } }\n'
        'parameters { key: "mode" value { string_value: "slow" } }\n',
        'parameters { key: "mode" value { string_value: "slow" } }\n',
    ),
    "ignore-without-reason": added(
        f"# {IGNORE}[text-placeholder]\n{PLACEHOLDER}",
        f"# {IGNORE}[text-placeholder] set at start\n{PLACEHOLDER}",
    ),
    "ignore-unknown-code": added(
        f"# {IGNORE}[text-placeholder, text-placehoder] set at start\n{PLACEHOLDER}",
        f"# {IGNORE}[text-placeholder] set at start\n{PLACEHOLDER}",
    ),
    "ignore-unknown-code: syntax": added(
        f"# {IGNORE}[text-placeholder, text-syntax] set at start\n{PLACEHOLDER}",
        f"# {IGNORE}[text-placeholder] set at start\n{PLACEHOLDER}",
    ),
    "ignore-unused": added(
        f'# {IGNORE}[text-placeholder] set at start\nmetric_tags {{ key: "a" value: "b" }}\n', ""
    ),
    "layout-config-absent": Example(
        {"m/1/model.onnx": relu()},
        {
            "m/1/model.onnx": relu(),
            "m/config.pbtxt": f'backend: "onnxruntime"\nmax_batch_size: 8\n{IO}',
        },
        Target.named("server", image_version="22.06"),
    ),
    "layout-no-model": Example(
        {"models/m/config.pbtxt": HEAD, "models/m/1/model.py": CLASS, "src/app.py": "..."},
        one(HEAD),
    ),
    "layout-no-version: one folder too high": Example(
        {"models/m/config.pbtxt": HEAD, "models/m/1/model.py": CLASS}, one(HEAD)
    ),
    "layout-no-model: no folder of models": Example(
        {"docs/index.md": "...", "src/app.py": "..."}, one(HEAD)
    ),
    "layout-folder-is-model": Example({"config.pbtxt": HEAD, "1/model.py": CLASS}, one(HEAD)),
    "layout-no-version": Example({"m/config.pbtxt": HEAD, "m/model.py": CLASS}, one(HEAD)),
    "layout-no-version: a file": Example({"m/config.pbtxt": HEAD, "m/1": CLASS}, one(HEAD)),
    "layout-no-version: ensemble": Example(
        {name: text for name, text in ensemble(ONE_STEP).items() if name != "pipe/1"},
        ensemble(ONE_STEP),
    ),
    "layout-no-version-chosen": added(
        "version_policy { specific { versions: [ 2 ] } }\n",
        "version_policy { specific { versions: [ 1 ] } }\n",
    ),
    "layout-no-version-chosen: latest": added(
        "version_policy { latest { } }\n", "version_policy { latest { num_versions: 1 } }\n"
    ),
    "layout-version-absent": added(
        "version_policy { specific { versions: [ 1, 7 ] } }\n",
        "version_policy { specific { versions: [ 1 ] } }\n",
    ),
    "layout-version-name": Example(
        one(HEAD, **{"m/99999999999999999999/model.py": CLASS}),
        one(HEAD, **{"m/2/model.py": CLASS}),
    ),
    "layout-version-name: not a number": Example(
        {"m/config.pbtxt": HEAD, "m/1abc/model.py": CLASS},
        {"m/config.pbtxt": HEAD, "m/1/model.py": CLASS},
    ),
    "layout-version-name: negative": Example(
        {"m/config.pbtxt": HEAD, "m/-1/model.py": CLASS},
        {"m/config.pbtxt": HEAD, "m/1/model.py": CLASS},
    ),
    "layout-version-skipped": Example(
        one(HEAD, **{"m/02/model.py": CLASS}), one(HEAD, **{"m/2/model.py": CLASS})
    ),
    "layout-config-in-version": Example(
        one(HEAD, **{"m/1/config.pbtxt": HEAD.replace("8", "4")}), one(HEAD)
    ),
    "layout-config-in-version: none in the model's folder": Example(
        {"m/1/config.pbtxt": ONNX, "m/1/model.onnx": relu()},
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu()},
    ),
    "layout-config-is-folder": Example(
        {"m/config.pbtxt": None, "m/1/model.onnx": relu()}, {"m/1/model.onnx": relu()}
    ),
    "layout-config-unreadable": Example(
        {"m/config.pbtxt": "->../lost", "m/1/model.onnx": relu()},
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu()},
    ),
    "layout-special-file": Example(
        one(HEAD, **{"m/1/labels.txt": "->/dev/null"}), one(HEAD, **{"m/1/labels.txt": "cat"})
    ),
    "layout-special-file: config.pbtxt": Example(
        {"m/config.pbtxt": "->/dev/zero", "m/1/model.onnx": relu()},
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu()},
    ),
    "layout-name-differs": added('name: "other"\n', 'name: "m"\n'),
    "layout-name-differs: step": Example(
        ensemble(ONE_STEP, a=HEAD + 'name: "other"\n'), ensemble(ONE_STEP, a=HEAD + 'name: "a"\n')
    ),
    "backend-unknown": Example({"m/1/weights.bin": "x"}, {"m/1/model.onnx": relu()}),
    "backend-platform": Example(one(HEAD.replace("backend", "platform")), one(HEAD)),
    "backend-platform: default_model_filename": foreign(
        f'default_model_filename: "weights.bin"\nmax_batch_size: 8\n{IO}',
        f'backend: "identity"\ndefault_model_filename: "weights.bin"\nmax_batch_size: 8\n{IO}',
        "weights.bin",
    ),
    "backend-platform-pair": foreign(
        PLAN + 'backend: "pytorch"\n', PLAN + 'backend: "tensorrt"\n', "model.plan"
    ),
    "backend-platform-pair: no platform": foreign(
        f'backend: "tensorflow"\nmax_batch_size: 8\n{IO}',
        f'backend: "tensorflow"\nplatform: "tensorflow_graphdef"\nmax_batch_size: 8\n{IO}',
        "model.graphdef",
    ),
    "backend-of-ensemble: default_model_filename": graph(
        ONE_STEP + 'default_model_filename: "model.onnx"\n', ONE_STEP
    ),
    "backend-misspelled: NUL": Example(one(HEAD.replace('"python"', '"a\\0"')), one(HEAD)),
    "backend-runtime": added('runtime: "libtriton_nope.so"\n', 'runtime: "libtriton_python.so"\n'),
    "backend-of-ensemble": graph(ONE_STEP + 'backend: "python"\n', ONE_STEP),
    "backend-ensemble-platform": Example(
        ensemble(f'platform: "ensemble"\n{IO}'), ensemble(ONE_STEP)
    ),
    "backend-ensemble-platform: another platform": graph(
        ONE_STEP.replace('"ensemble"', '"tensorrt_plan"', 1), ONE_STEP
    ),
    "backend-max-batch-size": Example(one(HEAD.replace("8", "-1", 1)), one(HEAD)),
    "backend-misspelled": Example(one(HEAD.replace("python", "pythonn")), one(HEAD)),
    "backend-misspelled: platform": foreign(
        PLAN.replace("platform", "backend"),
        PLAN.replace("platform", "backend").replace("_plan", ""),
        "model.plan",
    ),
    "backend-repository-agent": added(
        'model_repository_agents { agents [ { name: "vault" } ] }\n',
        'model_repository_agents { agents [ { name: "checksum" } ] }\n',
        Target(default_model="m"),
    ),
    "backend-model-metrics": added(
        'model_metrics { metric_control [ { metric_identifier { family: "f" } } ] }\n',
        'model_metrics { metric_control [ { metric_identifier { family: "f" } histogram_options { '
        "buckets: [ 1 ] } } ] }\n",
    ),
    "backend-model-metrics: no family": added(
        "model_metrics { metric_control [ { histogram_options { buckets: [ 1 ] } } ] }\n",
        'model_metrics { metric_control [ { metric_identifier { family: "f" } histogram_options { '
        "buckets: [ 1 ] } } ] }\n",
    ),
    "backend-pytorch-names": foreign(
        'backend: "pytorch"\nmax_batch_size: 8\n' + IO.replace("X", "INPUT__0"),
        'backend: "pytorch"\nmax_batch_size: 8\n'
        + IO.replace("X", "INPUT__0").replace('"Y"', '"OUTPUT__0"'),
        "model.pt",
    ),
    "backend-pytorch-names: sequence": Example(
        {"m/config.pbtxt": _PYTORCH + CONTROL % BEGIN, "m/1/model.pt": _WITH_START},
        {
            "m/config.pbtxt": _PYTORCH + CONTROL % BEGIN.replace('"S"', '"S__1"'),
            "m/1/model.pt": _WITH_START,
        },
    ),
}
