"""Writes the DALI pipeline ``model.dali``: ``python make_dali.py [--device cpu]``.

Needs nvidia-dali: ``pip install nvidia-dali-cuda120`` for the image 24.09 and for your machine, or
``nvidia-dali-cuda130`` for 26.05. By default JPEG files are decoded on the GPU, as in the article.
That file can only be written on a machine with a GPU. ``--device cpu`` decodes on the CPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from nvidia.dali import fn, pipeline_def, types

HERE = Path(__file__).resolve().parent
DECODERS = {"gpu": "mixed", "cpu": "cpu"}


@pipeline_def(batch_size=256, num_threads=12)
def inception_preprocessing(decoder: str):  # type: ignore[no-untyped-def]  # a node of DALI's graph
    """Convert JPEG files to FP32 [299, 299, 3] from -1 to 1."""
    files = fn.external_source(device="cpu", name="DALI_INPUT_0")
    images = fn.decoders.image(files, device=decoder, output_type=types.RGB)
    images = fn.resize(images, resize_x=299, resize_y=299)
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="HWC", mean=[127.5] * 3, std=[127.5] * 3
    )


def main() -> None:
    """Serialize the pipeline for both repositories."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="default: gpu")
    device = parser.parse_args().device
    pipeline = inception_preprocessing(DECODERS[device], device_id=0 if device == "gpu" else None)
    for folder in (HERE / "article" / "dali" / "1", HERE / "model_files"):
        folder.mkdir(parents=True, exist_ok=True)
        pipeline.serialize(filename=str(folder / "model.dali"))


if __name__ == "__main__":
    main()
