"""Build both ensembles: `python build_models.py [--plan model.plan] [--environment
processing_env.tar.gz]`.

Writes `models/model_tf_dali` and `models/model_trt_python`, which become the article's two
archives, and `stand_ins/`, what runs in their place on a machine without DALI, TensorFlow and a
GPU. Exits with 75 (EX_TEMPFAIL) if the weights cannot be downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import model_configs
from onnx_graph import write_encoder
from weights import FetchError, WrongBytesError, fetch

from constructs_triton import ConstructsTritonError
from triton_model_check.model_repository import ModelRepositoryBuilder

HERE = Path(__file__).resolve().parent
DALI = HERE.parent / "dali_inception"
NETWORK = HERE.parent / "small_network"
LABELS = "inception_labels.txt"


def write_picture_ensemble(target: Path) -> None:
    """Write DALI and Inception v3, with their files if they exist: see the README."""
    builder = ModelRepositoryBuilder()
    builder.add_model(
        model_configs.decode_pictures(), _if_there(HERE / "model_files" / "model.dali")
    )
    graph = model_configs.PICTURES / "inception_graphdef"
    builder.add_model(
        model_configs.recognize_pictures(),
        _if_there(graph / "1" / "model.graphdef"),
        files={LABELS: graph / LABELS},
    )
    builder.add_model(model_configs.classify_pictures())
    builder.write_to(target, overwrite=True)


def write_sentence_ensemble(
    target: Path,
    checkpoint: Path,
    encoder: model_configs.Encoder,
    plan: Path | None,
    environment: Path | None,
) -> None:
    """Write the tokenizer, BERT and the pooling of a checkpoint."""
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    hidden, length = int(config["hidden_size"]), int(config["max_position_embeddings"])
    packed = {} if environment is None else {model_configs.ENVIRONMENT: environment}
    # all-MiniLM-L6-v2 has positions for 512 tokens, and its model card says that it was trained
    # with 256.
    tokenize = model_configs.tokenize_sentences(min(length, 256), has_environment=bool(packed))
    encode = model_configs.encode_tokens(encoder, hidden)
    pool = model_configs.pool_tokens(hidden)
    with tempfile.TemporaryDirectory() as scratch:
        graph = Path(scratch, "model.onnx")
        if encoder == "onnxruntime":
            write_encoder(checkpoint, graph)
        builder = ModelRepositoryBuilder()
        files = {"1/tokenizer.json": checkpoint / "tokenizer.json", **packed}
        builder.add_model(tokenize, HERE / "backend" / "tokenize.py", files=files)
        builder.add_model(encode, graph if encoder == "onnxruntime" else plan)
        builder.add_model(pool, HERE / "backend" / "pool.py")
        builder.add_model(model_configs.embed_sentences(tokenize, encode, pool))
        builder.write_to(target, overwrite=True)


def write_stand_ins(target: Path, checkpoint: Path) -> None:
    """Write Pillow in the place of DALI, a small network in that of Inception, and BERT as ONNX."""
    sys.path.insert(0, str(NETWORK))
    import onnx  # noqa: PLC0415 - only for this
    from network_as_onnx import inception  # noqa: PLC0415 - found by the line above

    shutil.rmtree(target, ignore_errors=True)
    (target / "dali").mkdir(parents=True)
    shutil.copy(HERE / "backend" / "decode.py", target / "dali" / "model.py")
    shutil.copy(NETWORK / "preprocessing.py", target / "dali")
    onnx.save(inception(imagenet=True), str(target / "inception_graphdef.onnx"))
    write_encoder(checkpoint, target / "bert-trt.onnx")


def _if_there(path: Path) -> Path | None:
    return path if path.exists() else None


def build(arguments: argparse.Namespace) -> None:
    """Write all folders, replacing existing ones."""
    checkpoint = arguments.checkpoint or fetch()
    write_picture_ensemble(arguments.output / "model_tf_dali")
    target = arguments.output / "model_trt_python"
    write_sentence_ensemble(
        target, checkpoint, arguments.encoder, arguments.plan, arguments.environment
    )
    write_stand_ins(arguments.stand_ins, checkpoint)
    sys.stdout.write(f"{arguments.output}: model_tf_dali, model_trt_python\n")


def main() -> int:
    """Read the command line; return 0 after writing the folders."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=HERE / "models", help="folder of both ensembles"
    )
    parser.add_argument(
        "--stand-ins", type=Path, default=HERE / "stand_ins", help="folder for local runs"
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        help="folder with config.json, model.safetensors and tokenizer.json",
    )
    parser.add_argument(
        "--encoder", choices=model_configs.ENCODERS, default="tensorrt", help="runs BERT"
    )
    parser.add_argument("--plan", type=Path, help="what compile_tensorrt.sh wrote")
    parser.add_argument("--environment", type=Path, help="what `constructs-triton env build` wrote")
    parser.add_argument(
        "--onnx", type=Path, help="write only the ONNX file, for compile_tensorrt.sh"
    )
    arguments = parser.parse_args()
    if arguments.plan is not None and arguments.encoder != "tensorrt":
        parser.error("--plan is for --encoder tensorrt")
    try:
        if arguments.onnx is not None:
            write_encoder(arguments.checkpoint or fetch(), arguments.onnx)
        else:
            build(arguments)
    except FetchError as error:
        sys.stderr.write(f"error: {error}\n")
        return os.EX_TEMPFAIL
    except (ConstructsTritonError, WrongBytesError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
