"""The endpoint as a notebook makes it: boto3 calls, a name with a date,
and scaling set up by hand.
"""

import json
import tarfile

import boto3

NAME = "digits-2025-11-02"
REGION = "us-east-1"
IMAGE = (
    f"763104351884.dkr.ecr.{REGION}.amazonaws.com/sagemaker-tritonserver:25.09-py3"
)

s3, iam, sagemaker = (
    boto3.client(each, region_name=REGION) for each in ("s3", "iam", "sagemaker")
)
bucket = "sagemaker-us-east-1-123456789012"
s3.create_bucket(Bucket=bucket)
with tarfile.open("model.tar.gz", "w:gz") as archive:
    archive.add("models", ".")
s3.upload_file("model.tar.gz", bucket, f"{NAME}/model.tar.gz")
trust = {
    "Effect": "Allow",
    "Principal": {"Service": "sagemaker.amazonaws.com"},
    "Action": "sts:AssumeRole",
}
document = {"Version": "2012-10-17", "Statement": [trust]}
role = iam.create_role(
    RoleName="Notebook", AssumeRolePolicyDocument=json.dumps(document)
)["Role"]["Arn"]
everything = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}
iam.put_role_policy(
    RoleName="Notebook",
    PolicyName="everything",
    PolicyDocument=json.dumps(everything),
)
sagemaker.create_model(
    ModelName=NAME,
    ExecutionRoleArn=role,
    PrimaryContainer={
        "Image": IMAGE,
        "ModelDataUrl": f"s3://{bucket}/{NAME}/model.tar.gz",
        "Environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "digits"},
    },
)
sagemaker.create_endpoint_config(
    EndpointConfigName=NAME,
    ProductionVariants=[
        {
            "VariantName": "AllTraffic",
            "ModelName": NAME,
            "InstanceType": "ml.g5.xlarge",
            "InitialInstanceCount": 2,
            "InitialVariantWeight": 1,
        }
    ],
)
sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName=NAME)
scaling = boto3.client("application-autoscaling", region_name=REGION)
variant = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": f"endpoint/{NAME}/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
scaling.register_scalable_target(**variant, MinCapacity=2, MaxCapacity=6)
scaling.put_scaling_policy(
    **variant,
    PolicyName="by-hand",
    PolicyType="TargetTrackingScaling",
    TargetTrackingScalingPolicyConfiguration={
        "TargetValue": 600.0,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
        },
    },
)
