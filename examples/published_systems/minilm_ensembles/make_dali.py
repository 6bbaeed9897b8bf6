"""Writes the article's DALI pipeline ``model_files/model.dali``: ``python make_dali.py [--device
cpu]``.

Needs nvidia-dali (``pip install nvidia-dali-cuda120``). By default JPEG files are decoded on the
GPU, as in the article. That file can only be written on a machine with a GPU. ``--device cpu``
decodes on the CPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from nvidia.dali import fn, pipeline_def, types

MODEL_FILES = Path(__file__).resolve().parent / "model_files"
DECODERS = {"gpu": "mixed", "cpu": "cpu"}


@pipeline_def(batch_size=3, num_threads=1)
def preprocessing(decoder: str):  # type: ignore[no-untyped-def]  # a node of DALI's graph
    """Convert JPEG files to FP32 [299, 299, 3], normalized with ImageNet's mean
    and standard deviation.
    """
    images = fn.external_source(device="cpu", name="DALI_INPUT_0")
    images = fn.decoders.image(images, device=decoder, output_type=types.RGB)
    images = fn.resize(images, resize_x=299, resize_y=299)
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="HWC",
        crop=(299, 299),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
    )


def main() -> None:
    """Serialize the pipeline."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="default: gpu")
    device = parser.parse_args().device
    MODEL_FILES.mkdir(exist_ok=True)
    pipeline = preprocessing(DECODERS[device], device_id=0 if device == "gpu" else None)
    pipeline.serialize(filename=str(MODEL_FILES / "model.dali"))


if __name__ == "__main__":
    main()
