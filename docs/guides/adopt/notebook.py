import tarfile

import boto3

sagemaker, s3 = boto3.client("sagemaker"), boto3.client("s3")
scaling = boto3.client("application-autoscaling")
bucket = "sagemaker-us-east-1-123456789012"  # sagemaker.Session().default_bucket()
role = "arn:aws:iam::123456789012:role/service-role/AmazonSageMaker-ExecutionRole"

with tarfile.open("model.tar.gz", "w:gz") as archive:
    archive.add("repository", ".")
s3.upload_file("model.tar.gz", bucket, "scorer/model.tar.gz")
sagemaker.create_model(
    ModelName="scorer-2025-11-02-10-15",
    ExecutionRoleArn=role,
    PrimaryContainer={
        "Image": "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.09-py3-cpu",
        "ModelDataUrl": f"s3://{bucket}/scorer/model.tar.gz",
        "Environment": {
            "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "scorer",
            "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwx",
        },
    },
)
variant = {
    "VariantName": "AllTraffic",
    "ModelName": "scorer-2025-11-02-10-15",
    "InstanceType": "ml.c6i.large",
    "InitialInstanceCount": 2,
    "InitialVariantWeight": 1,
}
sagemaker.create_endpoint_config(
    EndpointConfigName="scorer-2025-11-02-10-15", ProductionVariants=[variant]
)
sagemaker.create_endpoint(
    EndpointName="scorer", EndpointConfigName="scorer-2025-11-02-10-15"
)

scaled = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/scorer/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
scaling.register_scalable_target(**scaled, MinCapacity=1, MaxCapacity=4)
metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
scaling.put_scaling_policy(
    **scaled,
    PolicyName="requests",
    PolicyType="TargetTrackingScaling",
    TargetTrackingScalingPolicyConfiguration={
        "TargetValue": 900.0,
        "PredefinedMetricSpecification": metric,
    },
)
