"""Build the model repository: `python build_models.py [--encoder tensorrt --plan model.plan] [...]`.

Exits with 75 (EX_TEMPFAIL) if the weights cannot be downloaded.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from model_configs import ENCODERS, ENVIRONMENT, Encoder, encoder, ensemble, pooling, tokenizer
from onnx_graph import write_encoder
from weights import FetchError, WrongBytesError, fetch

from constructs_triton import ConstructsTritonError
from constructs_triton.model_config import ModelConfig
from constructs_triton.model_repository.builder import ModelRepositoryBuilder

HERE = Path(__file__).parent
DIGITS = HERE.parents[2] / "assets" / "model_repositories" / "digits"


def build(target: Path, *, kind: Encoder, environment: Path | None, plan: Path | None) -> None:
    """Write both ensembles into the folder ``target``, replacing its content."""
    builder = ModelRepositoryBuilder()
    with tempfile.TemporaryDirectory() as scratch:
        add_sentences(builder, Path(scratch), kind, environment, plan)
        add_digits(builder)
        repository = builder.write_to(target, overwrite=True)
    sys.stdout.write(f"{target}: {', '.join(repository.models)}\n")


def add_sentences(
    builder: ModelRepositoryBuilder, scratch: Path, kind: Encoder, environment: Path | None, plan: Path | None
) -> None:
    """Add the tokenizer, the BERT encoder, the pooling, and their ensemble."""
    model = fetch()
    packed = {} if environment is None else {ENVIRONMENT: environment}
    tokenize = tokenizer(has_environment=bool(packed))
    bert = encoder(kind, has_environment=bool(packed))
    pool = pooling()
    builder.add_model(
        tokenize,
        HERE / "backend" / "tokenize.py",
        files={"1/tokenizer.json": model / "tokenizer.json", **packed},
    )
    if kind == "tensorrt":
        builder.add_model(bert, plan)
    else:
        graph = scratch / "model.onnx"
        write_encoder(model, graph)
        if kind == "onnxruntime":
            builder.add_model(bert, graph)
        else:
            builder.add_model(bert, HERE / "backend" / "encode.py", files={"1/model.onnx": graph, **packed})
    builder.add_model(pool, HERE / "backend" / "pool.py")
    builder.add_model(ensemble(tokenize, bert, pool))


def add_digits(builder: ModelRepositoryBuilder) -> None:
    """Add the second ensemble, one for pictures: the handwritten digits of this project's demo."""
    for folder in sorted(DIGITS.iterdir()):
        config = ModelConfig.read(folder)
        builder.add_model(config, files={} if config.platform == "ensemble" else {"1": folder / "1"})


def main() -> int:
    """Read the command line; return 0 after writing the repository."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=HERE / "models", help="folder of the repository")
    parser.add_argument("--encoder", choices=ENCODERS, default="python", help="what runs BERT")
    parser.add_argument("--environment", type=Path, help=f"conda-pack archive, becomes {ENVIRONMENT}")
    parser.add_argument("--plan", type=Path, help="TensorRT engine, with --encoder tensorrt")
    parser.add_argument("--onnx", type=Path, help="write only the ONNX graph, for compile_tensorrt.sh")
    arguments = parser.parse_args()
    if (arguments.encoder == "tensorrt") != (arguments.plan is not None):
        parser.error("--encoder tensorrt and --plan belong together")
    try:
        if arguments.onnx is not None:
            write_encoder(fetch(), arguments.onnx)
        else:
            build(
                arguments.output,
                kind=arguments.encoder,
                environment=arguments.environment,
                plan=arguments.plan,
            )
    except FetchError as error:
        sys.stderr.write(f"error: {error}\n")
        return os.EX_TEMPFAIL
    except (ConstructsTritonError, WrongBytesError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
