import aws_cdk as cdk
from aws_cdk.assertions import Template
from constructs_triton.testing import TritonTemplateExtension

from app import DigitsStack


def test_instance_type():
    template = Template.from_stack(DigitsStack(cdk.App(), "Digits"))
    variant = {"InitialInstanceCount": 1, "InstanceType": "ml.c6i.large", "VariantName": "AllTraffic"}
    config = template.find_resources("AWS::SageMaker::EndpointConfig")
    (found,) = (each["Properties"]["ProductionVariants"][0] for each in config.values())
    assert found.items() >= variant.items()


def test_template(snapshot):
    assert DigitsStack(cdk.App(), "Digits") == snapshot(extension_class=TritonTemplateExtension)
