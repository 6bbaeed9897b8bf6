"""The templates that are edited: endpoints with everything that a template can give them."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from shared_endpoint import IMAGE, TRUST, Resources, scaled, shared, trust

from constructs_triton_core.cloud_assembly.template import references

from .mutant import PLATFORM
from .removal import without

ACCOUNT = "123456789012"
ROOT = {"AWS": {"Fn::Sub": "arn:aws:iam::${AWS::AccountId}:root"}}


def ref(name: str) -> dict[str, Any]:
    return {"Ref": name}


def arn(name: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [name, "Arn"]}


def inside(bucket: str, prefix: str = "") -> dict[str, Any]:
    """The ARN of the objects of a bucket of the template."""
    return {"Fn::Join": ["", [arn(bucket), f"/{prefix}*"]]}


def url(bucket: str, prefix: str) -> dict[str, Any]:
    return {"Fn::Join": ["", ["s3://", ref(bucket), f"/{prefix}"]]}


def allow(actions: str | list[str], resource: Any, **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resource, **more}


def document(*statements: Any) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def resource(type: str, depends_on: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    found = {"Type": type, "Properties": properties}
    return {**found, "DependsOn": list(depends_on)} if depends_on else found


def key(*statements: Any) -> dict[str, Any]:
    """A KMS key whose policy leaves the decision to the policies of the account's roles."""
    by_account = allow("kms:*", "*", Principal=ROOT)
    return resource("AWS::KMS::Key", KeyPolicy=document(by_account, *statements))


def bucket(key_name: str) -> dict[str, Any]:
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": arn(key_name)}
    rules = [{"ServerSideEncryptionByDefault": default}]
    encryption = {"ServerSideEncryptionConfiguration": rules}
    return resource("AWS::S3::Bucket", BucketEncryption=encryption)


def bucket_policy(name: Any, *resources: Any) -> dict[str, Any]:
    """A policy of a bucket that forbids requests without TLS."""
    insecure = {"Bool": {"aws:SecureTransport": "false"}}
    deny = {"Effect": "Deny", "Action": "s3:*", "Principal": "*", "Condition": insecure}
    statements = [{**deny, "Resource": covered} for covered in resources]
    return resource("AWS::S3::BucketPolicy", Bucket=name, PolicyDocument=document(*statements))


def needed(resources: Resources, *roots: str) -> Resources:
    """The resources that these refer to or depend on, in the order of the template."""
    found: set[str] = set()
    waiting = [root for root in roots if root in resources]
    while waiting:
        name = waiting.pop()
        found.add(name)
        named = references(resources[name]) | set(resources[name].get("DependsOn", ()))
        waiting += (named & resources.keys()) - found
    return {name: declared for name, declared in resources.items() if name in found}


def realtime() -> Resources:
    """A scaled endpoint in a VPC, with captured data, core dumps,
    a volume key and rollback alarms.
    """
    return {
        **_network(),
        **_realtime_access(),
        **_realtime_data(),
        **_realtime_endpoint(),
        **_around(),
    }


def network() -> Resources:
    """The endpoint in its VPC without what it writes, and without scaling and alarms."""
    resources = realtime()
    for name in (*_realtime_data(), *_around(), "Alarm", "Boundary", "ReaderPolicy", "Reader"):
        resources = without(resources, name)
    return resources


def local() -> Resources:
    """The endpoint without its network."""
    return copy.deepcopy(_without_network())


@cache
def _without_network() -> Resources:
    resources = realtime()
    for name in _network():
        resources = without(resources, name)
    return resources


def _network() -> Resources:
    vpc, table = ref("Vpc"), ref("Table")
    subnets = {
        f"Subnet{name}": resource(
            "AWS::EC2::Subnet",
            VpcId=vpc,
            CidrBlock=f"10.0.{number}.0/24",
            AvailabilityZone=f"us-east-1{zone}",
        )
        for number, (name, zone) in enumerate((("A", "a"), ("B", "b")))
    }
    associations = {
        f"Association{name}": resource(
            "AWS::EC2::SubnetRouteTableAssociation",
            SubnetId=ref(f"Subnet{name}"),
            RouteTableId=table,
        )
        for name in ("A", "B")
    }
    service = {"Fn::Sub": "com.amazonaws.${AWS::Region}.s3"}
    return {
        "Vpc": resource("AWS::EC2::VPC", CidrBlock="10.0.0.0/16"),
        **subnets,
        "Table": resource("AWS::EC2::RouteTable", VpcId=vpc),
        **associations,
        "S3": resource(
            "AWS::EC2::VPCEndpoint",
            VpcId=vpc,
            RouteTableIds=[table],
            ServiceName=service,
            VpcEndpointType="Gateway",
        ),
        "Gateway": resource("AWS::EC2::InternetGateway"),
        "Attachment": resource(
            "AWS::EC2::VPCGatewayAttachment", VpcId=vpc, InternetGatewayId=ref("Gateway")
        ),
        "Route": resource(
            "AWS::EC2::Route",
            ("Attachment",),
            RouteTableId=table,
            DestinationCidrBlock="0.0.0.0/0",
            GatewayId=ref("Gateway"),
        ),
        "Group": resource("AWS::EC2::SecurityGroup", VpcId=vpc, GroupDescription="instances"),
    }


_INTERFACES = [
    "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
]
_PULL = ["ecr:GetAuthorizationToken", "ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage"]
_PULL += ["logs:CreateLogGroup"]  # SageMaker then creates the log group of the endpoint
_ENCRYPT = ["kms:Decrypt", "kms:GenerateDataKey"]


def _realtime_access() -> Resources:
    """The role, its three kinds of policies, its boundary, and a reader of captured data."""
    inline = {
        "PolicyName": "image",
        "PolicyDocument": document(allow([*_PULL, "ecr:GetDownloadUrlForLayer"], "*")),
    }
    models = allow("s3:GetObject", f"arn:aws:s3:::{PLATFORM}/models/*")
    return {
        "Boundary": resource("AWS::IAM::ManagedPolicy", PolicyDocument=document(allow("*", "*"))),
        "Role": resource(
            "AWS::IAM::Role",
            AssumeRolePolicyDocument=TRUST,
            Policies=[inline],
            PermissionsBoundary=ref("Boundary"),
        ),
        "Policy": resource(
            "AWS::IAM::Policy",
            PolicyName="data",
            Roles=[ref("Role")],
            PolicyDocument=document(
                models,
                allow(["s3:PutObject"], inside("Captured", "capture/")),
                allow(["s3:PutObject"], inside("Captured", "dumps/")),
                allow(_ENCRYPT, arn("DataKey")),
                allow("kms:CreateGrant", arn("VolumeKey")),
            ),
        ),
        "Managed": resource(
            "AWS::IAM::ManagedPolicy",
            Roles=[ref("Role")],
            PolicyDocument=document(
                allow(_INTERFACES, "*"), allow("cloudwatch:DescribeAlarms", "*")
            ),
        ),
        "Reader": resource("AWS::IAM::Role", AssumeRolePolicyDocument=trust("lambda")),
        "ReaderPolicy": resource(
            "AWS::IAM::Policy",
            PolicyName="read",
            Roles=[ref("Reader")],
            PolicyDocument=document(
                allow("s3:GetObject", inside("Captured", "capture/")),
                allow("kms:Decrypt", arn("DataKey")),
            ),
        ),
    }


def _realtime_data() -> Resources:
    service = {"Service": {"Fn::Sub": "logs.${AWS::Region}.amazonaws.com"}}
    return {
        "DataKey": key(),
        "VolumeKey": key(),
        "LogKey": key(
            allow(
                [*_ENCRYPT, "kms:Encrypt", "kms:ReEncrypt*", "kms:Describe*"],
                "*",
                Principal=service,
            )
        ),
        "Captured": bucket("DataKey"),
        "CapturedPolicy": bucket_policy(ref("Captured"), inside("Captured"), arn("Captured")),
        "PlatformPolicy": bucket_policy(
            PLATFORM, f"arn:aws:s3:::{PLATFORM}/*", f"arn:aws:s3:::{PLATFORM}"
        ),
        "Logs": resource(
            "AWS::Logs::LogGroup", ("LogKey",), LogGroupName="/acme/audit", KmsKeyId=arn("LogKey")
        ),
    }


def _realtime_endpoint() -> Resources:
    model = {"Fn::GetAtt": ["Model", "ModelName"]}
    variant = {
        "ModelName": model,
        "VariantName": "main",
        "InstanceType": "ml.g5.xlarge",
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1,
        "CoreDumpConfig": {"DestinationS3Uri": url("Captured", "dumps")},
    }
    capture = {
        "EnableCapture": True,
        "InitialSamplingPercentage": 100,
        "DestinationS3Uri": url("Captured", "capture"),
        "CaptureOptions": [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}],
    }
    network = {
        "Subnets": [ref("SubnetA"), ref("SubnetB")],
        "SecurityGroupIds": [{"Fn::GetAtt": ["Group", "GroupId"]}],
    }
    return {
        "Model": resource(
            "AWS::SageMaker::Model",
            ("Policy", "Managed"),
            ExecutionRoleArn=arn("Role"),
            PrimaryContainer={"Image": IMAGE, "ModelDataUrl": f"s3://{PLATFORM}/models/one.tar.gz"},
            VpcConfig=network,
        ),
        "Config": resource(
            "AWS::SageMaker::EndpointConfig",
            ProductionVariants=[variant],
            DataCaptureConfig=capture,
            KmsKeyId=arn("VolumeKey"),
        ),
        "Alarm": _alarm("Invocation5XXErrors"),
        "Endpoint": resource(
            "AWS::SageMaker::Endpoint",
            EndpointName="digits",
            EndpointConfigName={"Fn::GetAtt": ["Config", "EndpointConfigName"]},
            RetainAllVariantProperties=True,
            DeploymentConfig=_deployment(),
        ),
    }


def _deployment() -> dict[str, Any]:
    routing = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 60}
    return {
        "BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing},
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": ref("Alarm")}]},
    }


def _alarm(metric: str, **more: Any) -> dict[str, Any]:
    return resource(
        "AWS::CloudWatch::Alarm",
        Namespace="AWS/SageMaker",
        MetricName=metric,
        Dimensions=[
            {"Name": "EndpointName", "Value": "digits"},
            {"Name": "VariantName", "Value": "main"},
        ],
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=2,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
        **more,
    )


def _around() -> Resources:
    """Scaling, a dashboard, and an alarm that notifies a topic."""
    metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    dashboard = {
        "Fn::Join": [
            "",
            ['{"widgets": [{"type": "text", "properties": {"markdown": "', ref("Alarm"), '"}}]}'],
        ]
    }
    return {
        "Target": resource(
            "AWS::ApplicationAutoScaling::ScalableTarget",
            ("Endpoint",),
            MinCapacity=1,
            MaxCapacity=4,
            ResourceId="endpoint/digits/variant/main",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
            ServiceNamespace="sagemaker",
        ),
        "Scaling": resource(
            "AWS::ApplicationAutoScaling::ScalingPolicy",
            PolicyName="requests",
            PolicyType="TargetTrackingScaling",
            ScalingTargetId=ref("Target"),
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": 70,
                "PredefinedMetricSpecification": metric,
            },
        ),
        "Notices": resource("AWS::SNS::Topic"),
        "Latency": _alarm("ModelLatency", AlarmActions=[ref("Notices")]),
        "Dashboard": resource("AWS::CloudWatch::Dashboard", DashboardBody=dashboard),
    }


def queue() -> Resources:
    """An asynchronous endpoint whose requests, responses, failures and notifications have keys."""
    return {**_queue_access(), **_queue_data(), **_queue_endpoint()}


def _queue_access() -> Resources:
    caller = [
        allow("s3:PutObject", inside("Requests", "in/")),
        allow("s3:GetObject", inside("Responses", "out/")),
        allow("s3:GetObject", inside("Responses", "failures/")),
        allow(_ENCRYPT, arn("QueueKey")),
    ]
    return {
        "Role": resource("AWS::IAM::Role", AssumeRolePolicyDocument=TRUST),
        "Policy": resource(
            "AWS::IAM::Policy",
            PolicyName="data",
            Roles=[ref("Role")],
            PolicyDocument=document(
                allow("s3:GetObject", f"arn:aws:s3:::{PLATFORM}/models/*"),
                allow([*_PULL, "ecr:GetDownloadUrlForLayer"], "*"),
                allow("s3:GetObject", inside("Requests", "in/")),
                allow("s3:PutObject", inside("Responses", "out/")),
                allow("s3:PutObject", inside("Responses", "failures/")),
                allow(_ENCRYPT, arn("QueueKey")),
                allow("sns:Publish", ref("Succeeded")),
                allow("sns:Publish", ref("Failed")),
                allow(_ENCRYPT, arn("TopicKey")),
            ),
        ),
        "Caller": resource("AWS::IAM::Role", AssumeRolePolicyDocument=trust("lambda")),
        "CallerPolicy": resource(
            "AWS::IAM::Policy",
            PolicyName="call",
            Roles=[ref("Caller")],
            PolicyDocument=document(*caller),
        ),
    }


def _queue_data() -> Resources:
    topics = [ref("Succeeded"), ref("Failed")]
    subscribe = allow("sns:Subscribe", "*", Principal=ROOT)
    return {
        "QueueKey": key(),
        "TopicKey": key(),
        "Requests": bucket("QueueKey"),
        "RequestsPolicy": bucket_policy(ref("Requests"), inside("Requests"), arn("Requests")),
        "Responses": bucket("QueueKey"),
        "ResponsesPolicy": bucket_policy(ref("Responses"), inside("Responses"), arn("Responses")),
        "Succeeded": resource("AWS::SNS::Topic", KmsMasterKeyId=arn("TopicKey")),
        "Failed": resource("AWS::SNS::Topic", KmsMasterKeyId=arn("TopicKey")),
        "TopicPolicy": resource(
            "AWS::SNS::TopicPolicy", Topics=topics, PolicyDocument=document(subscribe)
        ),
    }


def _queue_endpoint() -> Resources:
    output = {
        "S3OutputPath": url("Responses", "out"),
        "S3FailurePath": url("Responses", "failures"),
        "NotificationConfig": {"SuccessTopic": ref("Succeeded"), "ErrorTopic": ref("Failed")},
    }
    variant = {
        "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
        "VariantName": "main",
        "InstanceType": "ml.g5.xlarge",
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1,
    }
    return {
        "Model": resource(
            "AWS::SageMaker::Model",
            ("Policy",),
            ExecutionRoleArn=arn("Role"),
            PrimaryContainer={"Image": IMAGE, "ModelDataUrl": f"s3://{PLATFORM}/models/one.tar.gz"},
        ),
        "Config": resource(
            "AWS::SageMaker::EndpointConfig",
            ProductionVariants=[variant],
            AsyncInferenceConfig={"OutputConfig": output},
        ),
        "Endpoint": resource(
            "AWS::SageMaker::Endpoint",
            EndpointName="queue",
            EndpointConfigName={"Fn::GetAtt": ["Config", "EndpointConfigName"]},
        ),
    }


def many() -> Resources:
    """An endpoint whose models are in a prefix, and are loaded when a request names them."""
    resources = queue()
    resources["Endpoint"]["Properties"]["EndpointName"] = "many"
    container = resources["Model"]["Properties"]["PrimaryContainer"]
    container.update(ModelDataUrl=f"s3://{PLATFORM}/models/", Mode="MultiModel")
    del resources["Config"]["Properties"]["AsyncInferenceConfig"]
    statements = resources["Policy"]["Properties"]["PolicyDocument"]["Statement"]
    statements.append(allow("s3:ListBucket", f"arn:aws:s3:::{PLATFORM}"))
    names = ("Role", "Policy", "Model", "Config", "Endpoint")
    kept = {name: resources[name] for name in names}
    kept["Policy"]["Properties"]["PolicyDocument"]["Statement"] = [*statements[:2], statements[-1]]
    kept["PlatformPolicy"] = bucket_policy(
        PLATFORM, f"arn:aws:s3:::{PLATFORM}/*", f"arn:aws:s3:::{PLATFORM}"
    )
    return kept


def components() -> Resources:
    """An endpoint for inference components, one of which scales to zero."""
    resources = shared(2, **scaled())
    resources["Policy"]["Properties"]["PolicyDocument"] = document(
        allow("s3:GetObject", f"arn:aws:s3:::{PLATFORM}/models/*"),
        allow([*_PULL, "ecr:GetDownloadUrlForLayer"], "*"),
    )
    url_of_model = f"s3://{PLATFORM}/models/one.tar.gz"
    resources["Model"]["Properties"]["PrimaryContainer"]["ModelDataUrl"] = url_of_model
    resources["Endpoint"]["Properties"]["EndpointName"] = "shared"
    return resources
