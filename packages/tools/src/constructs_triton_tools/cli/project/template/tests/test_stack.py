"""The template, and what the endpoint is meant to have."""

from constructs_triton.testing import TritonTemplateExtension, assert_endpoint, assert_scales


def test_template(stack, snapshot):
    """The template is as recorded.

    After a change that you want: python -m pytest --snapshot-update
    """
    assert stack == snapshot(extension_class=TritonTemplateExtension)


def test_endpoint(stack):
    """The endpoint serves the model on the instances that were chosen."""
    assert_endpoint(stack, models=["scorer"], instance_types="ml.c5.xlarge")


def test_scaling(stack):
    """The target is 50 requests a second * 0.5 * 60 = 1,500 invocations per minute and instance."""
    assert_scales(stack, on="InvocationsPerInstance", target=1500, between=(1, 4))
