"""What exists before the notebook: the default bucket of the SageMaker SDK,
and the role of Studio.
"""

import json

import boto3

iam = boto3.client("iam")
trust = {
    "Effect": "Allow",
    "Principal": {"Service": "sagemaker.amazonaws.com"},
    "Action": "sts:AssumeRole",
}
iam.create_role(
    RoleName="AmazonSageMaker-ExecutionRole",
    Path="/service-role/",
    AssumeRolePolicyDocument=json.dumps(
        {"Version": "2012-10-17", "Statement": [trust]}
    ),
)
iam.attach_role_policy(
    RoleName="AmazonSageMaker-ExecutionRole",
    PolicyArn="arn:aws:iam::aws:policy/AmazonSageMakerFullAccess",
)
boto3.client("s3").create_bucket(Bucket="sagemaker-us-east-1-123456789012")
