import aws_cdk as cdk

from app import DigitsStack
from constructs_triton.testing import TritonTemplateExtension, assert_endpoint


def test_endpoint():
    stack = DigitsStack(cdk.App(), "Digits")
    assert_endpoint(stack, name="digits", instance_types="ml.c6i.large", models=["digits"])


def test_template(snapshot):
    assert DigitsStack(cdk.App(), "Digits") == snapshot(extension_class=TritonTemplateExtension)
