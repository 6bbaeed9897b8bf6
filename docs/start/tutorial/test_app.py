import aws_cdk as cdk

from app import DigitsStack
from constructs_triton.testing import TritonTemplateExtension, assert_endpoint


def test_endpoint():
    stack = DigitsStack(cdk.App(), "Digits")
    assert_endpoint(stack, name="digits", instance_types="ml.c6i.large")


def test_template(snapshot):
    stack = DigitsStack(cdk.App(), "Digits")
    assert stack == snapshot(extension_class=TritonTemplateExtension)
