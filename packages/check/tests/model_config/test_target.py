"""The endpoint that a model repository is checked for."""

from triton_model_check.model_config.target import Target


def test_nothing_known_is_the_default() -> None:
    """``Target()`` is a single-model endpoint with unknown hardware and image."""
    assert Target() == Target(gpu_count=None, image_version=None, local_files=True)


def test_target_of_an_instance_type() -> None:
    """The instance type determines the hardware; the disk is local NVMe storage if there is any."""
    target = Target.of(
        instance_type="ml.g4dn.12xlarge",
        image_version="26.05",
        platform="sagemaker-multi-model",
        volume_size_gb=30,
    )
    assert (target.gpu_count, target.gpu_memory_mib) == (4, 16384)
    assert (target.memory_gib, target.storage_gb) == (192, 900)
    assert (target.mode, target.image_version) == ("multi-model", "26.05")
    assert Target.of(instance_type="ml.m5.large", volume_size_gb=30).storage_gb == 30
    assert Target.of(instance_type="ml.g9.xlarge").gpu_count is None
