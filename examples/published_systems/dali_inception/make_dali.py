"""Writes the DALI pipeline: ``python make_dali.py``, into ``article/dali/1`` and ``model_files``.

Not run by the tests: it needs nvidia-dali (``pip install nvidia-dali-cuda120`` for the image 24.09,
``nvidia-dali-cuda130`` for 26.05; take the DALI release of the image) and a GPU.
"""

from __future__ import annotations

from pathlib import Path

from nvidia.dali import fn, pipeline_def, types

HERE = Path(__file__).resolve().parent


@pipeline_def(batch_size=256, num_threads=12, device_id=0)
def inception_preprocessing():  # type: ignore[no-untyped-def]  # a node of DALI's graph
    """Convert JPEG files to FP32 [299, 299, 3] from -1 to 1, decoded and resized on the GPU."""
    files = fn.external_source(device="cpu", name="DALI_INPUT_0")
    images = fn.decoders.image(files, device="mixed", output_type=types.RGB)
    images = fn.resize(images, resize_x=299, resize_y=299)
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="HWC", mean=[127.5] * 3, std=[127.5] * 3
    )


def main() -> None:
    """Serialize the pipeline for both repositories."""
    for folder in (HERE / "article" / "dali" / "1", HERE / "model_files"):
        folder.mkdir(exist_ok=True)
        inception_preprocessing().serialize(filename=str(folder / "model.dali"))


if __name__ == "__main__":
    main()
