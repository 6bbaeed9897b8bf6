"""The template, and what the endpoint is meant to have."""

from aws_cdk.assertions import Template

from constructs_triton.testing import TritonTemplateExtension, assert_endpoint, assert_scales

MODELS = ["language", "sentiment-de", "sentiment-en", "sentiment-fr"]


def test_template(stack, snapshot):
    """The template is as recorded.

    After a change that you want: python -m pytest --snapshot-update
    """
    assert stack == snapshot(extension_class=TritonTemplateExtension)


def test_endpoint(stack):
    """A request can name each of the models, on the instances that were chosen."""
    assert_endpoint(stack, models=MODELS, instance_types="ml.g5.xlarge")


def test_scaling(stack):
    """One to five instances, with GPUs that are in use for 60 percent of the time."""
    assert_scales(stack, on="GPUUtilization", target=60, between=(1, 5))


def test_alarms(stack):
    """Each alarm sends messages to the topic. One of them reports models that load slowly."""
    template = Template.from_stack(stack)
    topic = next(iter(template.find_resources("AWS::SNS::Topic")))
    template.all_resources_properties("AWS::CloudWatch::Alarm", {"AlarmActions": [{"Ref": topic}]})
    template.has_resource_properties(
        "AWS::CloudWatch::Alarm", {"MetricName": "ModelLoadingWaitTime"}
    )
