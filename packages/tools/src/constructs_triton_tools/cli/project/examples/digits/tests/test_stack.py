"""The template, and what the endpoint is meant to have."""

from constructs_triton.testing import TritonTemplateExtension, assert_endpoint, assert_scales


def test_template(stack, snapshot):
    """The template is as recorded.

    After a change that you want: python -m pytest --snapshot-update
    """
    assert stack == snapshot(extension_class=TritonTemplateExtension)


def test_endpoint(stack):
    """A request without the name of a model reaches the ensemble,
    on the instances that were chosen.
    """
    assert_endpoint(stack, models="digits", instance_types="ml.g5.xlarge")


def test_scaling(stack):
    """One to five instances, with GPUs that are in use for 60 percent of the time."""
    assert_scales(stack, on="GPUUtilization", target=60, between=(1, 5))
