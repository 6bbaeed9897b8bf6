"""Updates that failed or lost something on AWS, reduced from public reports.

Each has the resources before and after, the smallest that show what the report is about. Its name
is the report's place: repository and number on GitHub.
"""

from __future__ import annotations

from typing import Any

Resources = dict[str, Any]


def _r(type: str, depends: list[str] | None = None, **properties: Any) -> Resources:
    more = {} if depends is None else {"DependsOn": depends}
    return {"Type": type, "Properties": properties, **more}


def _ref(name: str) -> dict[str, str]:
    return {"Ref": name}


def _att(name: str, attribute: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [name, attribute]}


def _role(service: str = "lambda.amazonaws.com") -> Resources:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": "sts:AssumeRole",
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    return _r("AWS::IAM::Role", AssumeRolePolicyDocument=policy)


def _function(role: str = "Role", **properties: Any) -> Resources:
    return _r(
        "AWS::Lambda::Function",
        Role=_att(role, "Arn"),
        Runtime="python3.13",
        Handler="index.handler",
        Code={"ZipFile": "def handler(event, context):\n    return 'ok'\n"},
        **properties,
    )


QUEUE = _r("AWS::SQS::Queue")
FUNCTION = {"Role": _role(), "F": _function()}
API = {"Api": _r("AWS::ApiGateway::RestApi", Name="shop")}
ROOT = _att("Api", "RootResourceId")


def _method(resource: Any) -> Resources:
    return _r(
        "AWS::ApiGateway::Method",
        RestApiId=_ref("Api"),
        ResourceId=resource,
        HttpMethod="GET",
        AuthorizationType="NONE",
        Integration={"Type": "MOCK"},
    )


def _stage(name: str) -> Resources:
    return {
        **API,
        "Get": _method(ROOT),
        "Deployment": _r("AWS::ApiGateway::Deployment", ["Get"], RestApiId=_ref("Api")),
        "Stage": _r(
            "AWS::ApiGateway::Stage",
            RestApiId=_ref("Api"),
            DeploymentId=_ref("Deployment"),
            StageName=name,
        ),
    }


def _usage_plan(stage: str) -> Resources:
    plan = _r(
        "AWS::ApiGateway::UsagePlan",
        ["Api"],
        ApiStages=[{"ApiId": _ref("Api"), "Stage": stage}],
        UsagePlanName="shop",
    )
    return {**_stage(stage), "Plan": plan}


def _part(path: str) -> Resources:
    name = "".join(filter(str.isalnum, path)).title()
    return {
        **API,
        f"Part{name}": _r(
            "AWS::ApiGateway::Resource", RestApiId=_ref("Api"), ParentId=ROOT, PathPart=path
        ),
        f"Get{name}": _method(_ref(f"Part{name}")),
    }


def _http_route(name: str) -> Resources:
    return {
        "Api": _r("AWS::ApiGatewayV2::Api", Name="shop", ProtocolType="HTTP"),
        name: _r("AWS::ApiGatewayV2::Route", ApiId=_ref("Api"), RouteKey="GET /test"),
    }


def _mapping(api: str) -> Resources:
    return {
        "Api1": _r("AWS::ApiGatewayV2::Api", Name="one", ProtocolType="HTTP"),
        "Api2": _r("AWS::ApiGatewayV2::Api", Name="two", ProtocolType="HTTP"),
        "Stage1": _r("AWS::ApiGatewayV2::Stage", ApiId=_ref("Api1"), StageName="$default"),
        "Stage2": _r("AWS::ApiGatewayV2::Stage", ApiId=_ref("Api2"), StageName="$default"),
        "Domain": _r("AWS::ApiGatewayV2::DomainName", DomainName="api.example.com"),
        "Mapping": _r(
            "AWS::ApiGatewayV2::ApiMapping",
            ["Stage1", "Stage2"],
            ApiId=_ref(api),
            DomainName=_ref("Domain"),
            Stage="$default",
        ),
    }


def _redis(**properties: Any) -> Resources:
    common: dict[str, Any] = {
        "ReplicationGroupDescription": "cache",
        "Engine": "redis",
        "CacheNodeType": "cache.t4g.small",
        "NumNodeGroups": 1,
        "TransitEncryptionEnabled": True,
        "AutomaticFailoverEnabled": True,
    }
    return {"Cache": _r("AWS::ElastiCache::ReplicationGroup", **common, **properties)}


def _resolver(name: str) -> Resources:
    api = _att("Graph", "ApiId")
    schema = "type Query { me: String }"
    return {
        "Graph": _r("AWS::AppSync::GraphQLApi", Name="shop", AuthenticationType="API_KEY"),
        "Schema": _r("AWS::AppSync::GraphQLSchema", ApiId=api, Definition=schema),
        "Source": _r("AWS::AppSync::DataSource", ApiId=api, Name="none", Type="NONE"),
        name: _r(
            "AWS::AppSync::Resolver",
            ["Schema"],
            ApiId=api,
            TypeName="Query",
            FieldName="me",
            DataSourceName=_att("Source", "Name"),
        ),
    }


def _mapping_of_queue(name: str) -> Resources:
    return {
        **FUNCTION,
        "Queue": QUEUE,
        name: _r(
            "AWS::Lambda::EventSourceMapping",
            EventSourceArn=_att("Queue", "Arn"),
            FunctionName=_ref("F"),
        ),
    }


def _service(**properties: Any) -> Resources:
    container = {"Name": "web", "Image": "nginx", "Memory": 512}
    return {
        "Cluster": _r("AWS::ECS::Cluster"),
        "Task": _r(
            "AWS::ECS::TaskDefinition",
            ContainerDefinitions=[container],
            RequiresCompatibilities=["EC2"],
        ),
        "Service": _r(
            "AWS::ECS::Service",
            Cluster=_ref("Cluster"),
            TaskDefinition=_ref("Task"),
            ServiceName="web",
            DesiredCount=1,
            **properties,
        ),
    }


def _providers(is_association: bool) -> Resources:
    names = ["FARGATE", "FARGATE_SPOT"]
    container = {"Name": "web", "Image": "nginx"}
    own = {} if is_association else {"CapacityProviders": names}
    found = {
        "Cluster": _r("AWS::ECS::Cluster", **own),
        "Task": _r(
            "AWS::ECS::TaskDefinition",
            ContainerDefinitions=[container],
            RequiresCompatibilities=["FARGATE"],
            NetworkMode="awsvpc",
            Cpu="256",
            Memory="512",
        ),
        "Service": _r(
            "AWS::ECS::Service",
            Cluster=_ref("Cluster"),
            TaskDefinition=_ref("Task"),
            CapacityProviderStrategy=[{"CapacityProvider": "FARGATE_SPOT", "Weight": 1}],
            NetworkConfiguration={"AwsvpcConfiguration": {"Subnets": ["subnet-0123456789abcdef0"]}},
        ),
    }
    if is_association:
        found["Providers"] = _r(
            "AWS::ECS::ClusterCapacityProviderAssociations",
            Cluster=_ref("Cluster"),
            CapacityProviders=names,
            DefaultCapacityProviderStrategy=[],
        )
    return found


def _table(key: str, *indexes: str) -> Resources:
    names = [key, *indexes]
    body: dict[str, Any] = {
        "TableName": "orders",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n in names],
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
    }
    if indexes:
        body["GlobalSecondaryIndexes"] = [
            {
                "IndexName": f"by-{name}",
                "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
            for name in indexes
        ]
    return {"Table": _r("AWS::DynamoDB::Table", **body)}


def _emr(mode: str) -> Resources:
    rest = {
        "EnableAtRestEncryption": True,
        "EnableInTransitEncryption": False,
        "AtRestEncryptionConfiguration": {"S3EncryptionConfiguration": {"EncryptionMode": mode}},
    }
    return {
        "Security": _r(
            "AWS::EMR::SecurityConfiguration",
            Name="dev_emr",
            SecurityConfiguration={"EncryptionConfiguration": rest},
        )
    }


def _component(command: str) -> Resources:
    return {
        "Component": _r(
            "AWS::ImageBuilder::Component",
            Name="tools",
            Platform="Linux",
            Version="1.0.0",
            Data=f"schemaVersion: 1.0\nphases:\n  - name: build\n    steps: [{command}]\n",
        )
    }


def _version(name: str) -> Resources:
    return {
        **FUNCTION,
        name: _r("AWS::Lambda::Version", FunctionName=_ref("F")),
        "Alias": _r(
            "AWS::Lambda::Alias",
            FunctionName=_ref("F"),
            FunctionVersion=_att(name, "Version"),
            Name="prod",
        ),
    }


def _aurora(version: str, *, is_on_member: bool, group: str = "") -> Resources:
    family: dict[str, Any] = {"EngineVersion": version} if is_on_member else {}
    member: dict[str, Any] = {"DBParameterGroupName": _ref(group)} if group else {}
    found = {
        "Db": _r(
            "AWS::RDS::DBCluster",
            Engine="aurora-postgresql",
            EngineVersion=version,
            MasterUsername="clerk",
            ManageMasterUserPassword=True,
        ),
        "Writer": _r(
            "AWS::RDS::DBInstance",
            Engine="aurora-postgresql",
            DBClusterIdentifier=_ref("Db"),
            DBInstanceClass="db.t4g.medium",
            **family,
            **member,
        ),
    }
    for number in ("14", "15") if group else ():
        found[f"Group{number}"] = _r(
            "AWS::RDS::DBParameterGroup",
            Family=f"aurora-postgresql{number}",
            Description=f"for {number}",
        )
    return found


def _manifest(name: str) -> Resources:
    return {
        name: _r(
            "Custom::AWSCDK-EKS-KubernetesResource",
            ServiceToken="arn:aws:lambda:us-east-1:111111111111:function:kubectl",
            Manifest='[{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"tiller"}}]',
            ClusterName="sandbox",
            RoleArn="arn:aws:iam::111111111111:role/kubectl",
        )
    }


def _deployment_configuration(installs_sdk: bool) -> Resources:
    def call(action: str) -> str:
        return (
            '{"service":"CodeDeploy","action":"' + action + '","parameters":'
            '{"deploymentConfigName":"slow","computePlatform":"Lambda"},'
            '"physicalResourceId":{"id":"slow"}}'
        )

    return {
        "Configuration": _r(
            "Custom::AWS",
            ServiceToken="arn:aws:lambda:us-east-1:111111111111:function:sdk",
            Create=call("createDeploymentConfig"),
            Update=call("createDeploymentConfig"),
            Delete=call("deleteDeploymentConfig"),
            InstallLatestAwsSdk=installs_sdk,
        )
    }


def _network(block: str) -> Resources:
    return {
        "Vpc": _r("AWS::EC2::VPC", CidrBlock=f"{block}.0.0/16"),
        "Igw": _r("AWS::EC2::InternetGateway"),
        "Attachment": _r(
            "AWS::EC2::VPCGatewayAttachment", VpcId=_ref("Vpc"), InternetGatewayId=_ref("Igw")
        ),
        "Subnet": _r("AWS::EC2::Subnet", VpcId=_ref("Vpc"), CidrBlock=f"{block}.0.0/24"),
        "Table": _r("AWS::EC2::RouteTable", VpcId=_ref("Vpc")),
        "Association": _r(
            "AWS::EC2::SubnetRouteTableAssociation",
            SubnetId=_ref("Subnet"),
            RouteTableId=_ref("Table"),
        ),
        "Route": _r(
            "AWS::EC2::Route",
            ["Attachment"],
            RouteTableId=_ref("Table"),
            DestinationCidrBlock="0.0.0.0/0",
            GatewayId=_ref("Igw"),
        ),
        "Address": _r("AWS::EC2::EIP", Domain="vpc"),
        "Nat": _r(
            "AWS::EC2::NatGateway",
            ["Route", "Association"],
            SubnetId=_ref("Subnet"),
            AllocationId=_att("Address", "AllocationId"),
        ),
    }


def _managed_policy(name: str) -> Resources:
    statement = {"Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    return {
        name: _r(
            "AWS::IAM::ManagedPolicy",
            ManagedPolicyName="ads-cdk-deploy",
            PolicyDocument=document,
        )
    }


def _plan_key(name: str) -> Resources:
    return {
        **_usage_plan("prod"),
        "Key": _r("AWS::ApiGateway::ApiKey", Enabled=True),
        name: _r(
            "AWS::ApiGateway::UsagePlanKey",
            KeyId=_ref("Key"),
            KeyType="API_KEY",
            UsagePlanId=_ref("Plan"),
        ),
    }


def _target_group(port: int) -> Resources:
    return {
        "Vpc": _r("AWS::EC2::VPC", CidrBlock="10.0.0.0/16"),
        "Group": _r(
            "AWS::ElasticLoadBalancingV2::TargetGroup",
            Name="web",
            Port=port,
            Protocol="HTTP",
            VpcId=_ref("Vpc"),
        ),
    }


def _listener(name: str) -> Resources:
    subnets = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
    answer = {"StatusCode": "200"}
    return {
        "Balancer": _r("AWS::ElasticLoadBalancingV2::LoadBalancer", Subnets=subnets),
        name: _r(
            "AWS::ElasticLoadBalancingV2::Listener",
            LoadBalancerArn=_ref("Balancer"),
            Port=80,
            Protocol="HTTP",
            DefaultActions=[{"Type": "fixed-response", "FixedResponseConfig": answer}],
        ),
    }


def _subnets(*numbers: int) -> Resources:
    found = {"Vpc": _r("AWS::EC2::VPC", CidrBlock="10.0.0.0/16")}
    for number in (1, 2, 3):
        if number in numbers:
            found[f"Subnet{number}"] = _r(
                "AWS::EC2::Subnet",
                VpcId=_ref("Vpc"),
                CidrBlock=f"10.0.{number}.0/24",
                AvailabilityZone=f"us-east-1{'abc'[number - 1]}",
            )
    found["Group"] = _r(
        "AWS::RDS::DBSubnetGroup",
        DBSubnetGroupDescription="group",
        SubnetIds=[_ref(f"Subnet{number}") for number in numbers],
    )
    found["Db"] = _r(
        "AWS::RDS::DBInstance",
        Engine="postgres",
        DBInstanceClass="db.t4g.micro",
        AllocatedStorage="20",
        MasterUsername="clerk",
        ManageMasterUserPassword=True,
        DBSubnetGroupName=_ref("Group"),
    )
    return found


def _notification(name: str) -> Resources:
    return {
        "Topic": _r("AWS::SNS::Topic"),
        name: _r(
            "AWS::CodeStarNotifications::NotificationRule",
            Name="pipeline",
            DetailType="FULL",
            EventTypeIds=["codepipeline-pipeline-pipeline-execution-failed"],
            Resource="arn:aws:codepipeline:us-east-1:111111111111:shop",
            Targets=[{"TargetType": "SNS", "TargetAddress": _ref("Topic")}],
        ),
    }


def _filters(pattern: str) -> Resources:
    stream = "arn:aws:kinesis:us-east-1:111111111111:stream/logs"
    found = {"Logs": _r("AWS::Logs::LogGroup"), "Role": _role("logs.amazonaws.com")}
    for number in (1, 2):
        found[f"Filter{number}{pattern if number == 1 else ''}"] = _r(
            "AWS::Logs::SubscriptionFilter",
            LogGroupName=_ref("Logs"),
            DestinationArn=stream,
            RoleArn=_att("Role", "Arn"),
            FilterPattern=pattern if number == 1 else "",
        )
    return found


_VPC = "vpc-0123456789abcdef0"


def _mounted(**subnets: str) -> Resources:
    """A file system with mount targets in subnets, which are in two Availability Zones."""
    zones = {"SubnetA": "us-east-1a", "SubnetB": "us-east-1b", "SubnetC": "us-east-1a"}
    found = {"Files": _r("AWS::EFS::FileSystem")}
    for number, (subnet, zone) in enumerate(zones.items()):
        found[subnet] = _r(
            "AWS::EC2::Subnet",
            VpcId=_VPC,
            CidrBlock=f"10.0.{number}.0/24",
            AvailabilityZone=zone,
        )
    for name, subnet in subnets.items():
        found[name] = _r(
            "AWS::EFS::MountTarget",
            FileSystemId=_ref("Files"),
            SubnetId=_ref(subnet),
            SecurityGroups=["sg-0123456789abcdef0"],
        )
    return found


def _alias(name: str) -> Resources:
    root = {"Fn::Sub": "arn:aws:iam::${AWS::AccountId}:root"}
    statement = {
        "Effect": "Allow",
        "Action": "kms:*",
        "Resource": "*",
        "Principal": {"AWS": root},
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    return {
        "Key": _r("AWS::KMS::Key", KeyPolicy=policy),
        name: _r("AWS::KMS::Alias", AliasName="alias/test", TargetKeyId=_ref("Key")),
    }


def _balanced(scheme: str, group: str = "Group") -> Resources:
    balancer = "AWS::ElasticLoadBalancingV2"
    action = {"Type": "forward", "TargetGroupArn": _ref(group)}
    return {
        "Balancer": _r(
            f"{balancer}::LoadBalancer",
            Scheme=scheme,
            Subnets=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
        ),
        group: _r(
            f"{balancer}::TargetGroup", Port=80, Protocol="HTTP", VpcId=_VPC, TargetType="ip"
        ),
        "Listener": _r(
            f"{balancer}::Listener",
            LoadBalancerArn=_ref("Balancer"),
            Port=80,
            Protocol="HTTP",
            DefaultActions=[action],
        ),
    }


def _security_group(description: str) -> Resources:
    group = _r(
        "AWS::EC2::SecurityGroup",
        GroupName="dc3-stage-cbprojects-sg",
        GroupDescription=description,
        VpcId=_VPC,
    )
    return {"Group": group}


def _knowledge(name: str) -> Resources:
    model = "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0"
    collection = "arn:aws:aoss:us-east-1:123456789012:collection/abcdefghijklmnopqrst"
    fields = {"VectorField": "v", "TextField": "t", "MetadataField": "m"}
    storage = {"CollectionArn": collection, "VectorIndexName": "i", "FieldMapping": fields}
    base = _r(
        "AWS::Bedrock::KnowledgeBase",
        Name="MyKnowledgeBase",
        RoleArn="arn:aws:iam::123456789012:role/knowledge",
        KnowledgeBaseConfiguration={
            "Type": "VECTOR",
            "VectorKnowledgeBaseConfiguration": {"EmbeddingModelArn": model},
        },
        StorageConfiguration={
            "Type": "OPENSEARCH_SERVERLESS",
            "OpensearchServerlessConfiguration": storage,
        },
    )
    return {name: base}


def private_endpoints(*names: str, has_private_dns: bool = True) -> Resources:
    endpoint = _r(
        "AWS::EC2::VPCEndpoint",
        VpcId=_VPC,
        ServiceName="com.amazonaws.us-east-1.states",
        VpcEndpointType="Interface",
        PrivateDnsEnabled=has_private_dns,
        SubnetIds=["subnet-0123456789abcdef0"],
    )
    return dict.fromkeys(names, endpoint)


def user_pool(*further: Resources, **email: bool) -> Resources:
    return {
        "Pool": _r(
            "AWS::Cognito::UserPool",
            Schema=[{"Name": "email", "Required": True, **email}, *further],
        )
    }


REPORTS: dict[str, tuple[Resources, Resources]] = {
    "aws/serverless-application-model#1560": (_usage_plan("v1"), _usage_plan("v2")),
    "aws/aws-cdk#25172": (_part("{id}"), _part("{name}")),
    "anomalyco/sst#513": (_http_route("RouteA"), _http_route("RouteB")),
    "aws-cloudformation/cloudformation-coverage-roadmap#1151": (_mapping("Api1"), _mapping("Api2")),
    "aws-cloudformation/cloudformation-coverage-roadmap#2356": (
        _redis(ReplicationGroupId="my-redis", AuthToken="x" * 20, ReplicasPerNodeGroup=1),
        _redis(ReplicationGroupId="my-redis", UserGroupIds=["clerks"], ReplicasPerNodeGroup=1),
    ),
    "aws-cloudformation/cloudformation-coverage-roadmap#918": (
        _redis(ReplicasPerNodeGroup=1),
        _redis(ReplicasPerNodeGroup=2),
    ),
    "aws/aws-cdk#13269": (_resolver("ResolverA"), _resolver("ResolverB")),
    "aws/aws-cdk#18706": (_mapping_of_queue("SourceA"), _mapping_of_queue("SourceB")),
    "aws/aws-cdk#15366": (_providers(False), _providers(True)),
    "aws/aws-cdk#29826": (
        _service(LaunchType="EC2"),
        _service(CapacityProviderStrategy=[{"CapacityProvider": "large", "Weight": 1}]),
    ),
    "aws-amplify/amplify-cli#1866": (_table("id"), _table("order")),
    "awsdocs/aws-cloudformation-user-guide#927": (_emr("SSE-S3"), _emr("SSE-KMS")),
    "boto/boto3#2459": (_component("a"), _component("b")),
    "aws/aws-cdk#28252": (_version("VersionA"), _version("VersionB")),
    "aws/aws-cdk#21758": (
        _aurora("13.9", is_on_member=True),
        _aurora("14.7", is_on_member=True),
    ),
    "aws/aws-cdk#26072": (
        _aurora("14.7", is_on_member=False, group="Group14"),
        _aurora("15.3", is_on_member=False, group="Group15"),
    ),
    "aws/aws-cdk#4717": (_manifest("TillerA"), _manifest("TillerB")),
    "aws/aws-cdk#25838": (_deployment_configuration(True), _deployment_configuration(False)),
    "aws/aws-cdk#16869": (_network("10.10"), _network("10.20")),
    "aws/aws-cdk#15357": (_managed_policy("PolicyA"), _managed_policy("PolicyB")),
    "aws/aws-cdk#12698": (_plan_key("PlanKeyA"), _plan_key("PlanKeyB")),
    "dept/easy-genomics#926": (_table("id"), _table("id", "poll", "workflow")),
    "honerlaw/serverless-fargate-plugin#19": (_target_group(80), _target_group(8080)),
    "aws/aws-cdk#13157": (_listener("ListenerA"), _listener("ListenerB")),
    "aws/aws-cdk#15879": (_subnets(1, 2), _subnets(2, 3)),
    "aws/aws-cdk#32892": (_notification("RuleA"), _notification("RuleB")),
    "aws/aws-cdk#34735": (_filters("a"), _filters("b")),
    "aws/aws-cdk#25099": (
        _mounted(First="SubnetB", Second="SubnetC"),
        _mounted(First="SubnetC"),
    ),
    "aws/aws-cdk#10170": (_mounted(First="SubnetA"), _mounted(First="SubnetA", Second="SubnetC")),
    "aws/aws-cdk#3652": (_alias("AliasA"), _alias("AliasB")),
    "aws/aws-cdk#847": (_balanced("internal"), _balanced("internet-facing")),
    "data-dot-all/dataall#1080": (_security_group("one"), _security_group("two")),
    "awslabs/generative-ai-cdk-constructs#690": (_knowledge("BaseA"), _knowledge("BaseB")),
    "aws-samples/amazon-mwaa-examples#76": (
        private_endpoints("EndpointA"),
        private_endpoints("EndpointA", "EndpointB"),
    ),
    "aws/aws-cdk#8585": (user_pool(), user_pool(Mutable=True)),
}

_COLLISION, _MAY_FAIL = "rehearse-name-collision", "rehearse-update-may-fail"
FOUND: dict[str, tuple[str, str]] = {
    "aws/serverless-application-model#1560": (_MAY_FAIL, "Plan"),
    "aws/aws-cdk#25172": (_COLLISION, "PartName"),
    "anomalyco/sst#513": (_COLLISION, "RouteB"),
    "aws-cloudformation/cloudformation-coverage-roadmap#2356": (_MAY_FAIL, "Cache"),
    "aws/aws-cdk#13269": (_COLLISION, "ResolverB"),
    "aws/aws-cdk#18706": (_COLLISION, "SourceB"),
    "aws/aws-cdk#15366": (_MAY_FAIL, "Cluster"),
    "aws/aws-cdk#29826": (_MAY_FAIL, "Service"),
    "aws-amplify/amplify-cli#1866": (_COLLISION, "Table"),
    "awsdocs/aws-cloudformation-user-guide#927": (_COLLISION, "Security"),
    "boto/boto3#2459": (_COLLISION, "Component"),
    "aws/aws-cdk#28252": (_MAY_FAIL, "VersionB"),
    "aws/aws-cdk#21758": (_MAY_FAIL, "Writer"),
    "aws/aws-cdk#26072": (_MAY_FAIL, "Db"),
    "aws/aws-cdk#4717": ("rehearse-custom-resource-replaced", "TillerA"),
    "aws/aws-cdk#25838": (_MAY_FAIL, "Configuration"),
    "aws/aws-cdk#16869": ("rehearse-update-fails", "Attachment"),
    "aws/aws-cdk#15357": (_COLLISION, "PolicyB"),
    "aws/aws-cdk#12698": (_COLLISION, "PlanKeyB"),
    "dept/easy-genomics#926": ("rehearse-update-fails", "Table"),
    "honerlaw/serverless-fargate-plugin#19": (_COLLISION, "Group"),
    "aws/aws-cdk#13157": (_COLLISION, "ListenerB"),
    "aws/aws-cdk#15879": (_MAY_FAIL, "Group"),
    "aws/aws-cdk#32892": (_COLLISION, "RuleB"),
    "aws/aws-cdk#25099": (_COLLISION, "First"),
    "aws/aws-cdk#10170": (_MAY_FAIL, "Second"),
    "aws/aws-cdk#3652": (_COLLISION, "AliasB"),
    "aws/aws-cdk#847": (_MAY_FAIL, "Group"),
    "data-dot-all/dataall#1080": (_COLLISION, "Group"),
    "awslabs/generative-ai-cdk-constructs#690": (_COLLISION, "BaseB"),
    "aws-samples/amazon-mwaa-examples#76": (_COLLISION, "EndpointB"),
    "aws/aws-cdk#8585": ("rehearse-update-fails", "Pool"),
}
"""The code and the place of what a rehearsal reports.

The others are silent: CloudFormation changes today in place what it replaced when the report was
written, and CloudWatch Logs has raised its limit.
"""
