"""Gateways of networks, and endpoints that routes lead to."""

from __future__ import annotations

import pytest
from shared_endpoint import deploy

from cdk_rehearse import SimulatedAccount


def test_virtual_private_gateway_is_not_simulated() -> None:
    """Its attachment succeeds, is deleted again, and is listed as not simulated."""
    resources = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Gateway": {"Type": "AWS::EC2::VPNGateway", "Properties": {"Type": "ipsec.1"}},
        "Attachment": {
            "Type": "AWS::EC2::VPCGatewayAttachment",
            "Properties": {"VpcId": {"Ref": "Vpc"}, "VpnGatewayId": {"Ref": "Gateway"}},
        },
    }
    with SimulatedAccount() as account:
        stack = deploy(account, resources, "Network")
        assert stack.status == "CREATE_COMPLETE", stack.reason
        assert any("VPCGatewayAttachment" in each for each in map(str, account.not_simulated))
        account.deployer.delete(stack)
        assert stack.status == "DELETE_COMPLETE", stack.reason


@pytest.mark.parametrize("service", ["s3", "s3express", "of-a-year-to-come"])
def test_gateway_endpoint_of_each_service_is_created_and_deleted(service: str) -> None:
    """Its routes exist while it does, also to a service whose prefix list is not simulated."""
    resources = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Routes": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "Endpoint": {
            "Type": "AWS::EC2::VPCEndpoint",
            "Properties": {
                "VpcId": {"Ref": "Vpc"},
                "ServiceName": {"Fn::Sub": f"com.amazonaws.${{AWS::Region}}.{service}"},
                "RouteTableIds": [{"Ref": "Routes"}],
            },
        },
    }
    with SimulatedAccount() as account:
        stack = deploy(account, resources, "Network")
        assert stack.status == "CREATE_COMPLETE", stack.reason
        (table,) = account.client("ec2").describe_route_tables(
            RouteTableIds=[stack.resources["Routes"].physical.id]
        )["RouteTables"]
        assert any("DestinationPrefixListId" in route for route in table["Routes"])
        account.deployer.delete(stack)
        assert stack.status == "DELETE_COMPLETE", stack.reason


@pytest.mark.parametrize(
    ("destination", "value"),
    [
        ("DestinationCidrBlock", "0.0.0.0/0"),
        # The CDK routes it from each subnet of a Vpc with IpProtocol.DUAL_STACK.
        ("DestinationIpv6CidrBlock", "::/0"),
        ("DestinationPrefixListId", "pl-0123456789abcdef0"),
    ],
)
def test_route_to_each_kind_of_destination_is_created_and_deleted(
    destination: str, value: str
) -> None:
    """A route leads to IPv4 addresses, to IPv6 addresses or to a prefix list."""
    resources = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "Gateway": {"Type": "AWS::EC2::InternetGateway"},
        "Attachment": {
            "Type": "AWS::EC2::VPCGatewayAttachment",
            "Properties": {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": "Gateway"}},
        },
        "Route": {
            "Type": "AWS::EC2::Route",
            "DependsOn": "Attachment",
            "Properties": {
                "RouteTableId": {"Ref": "Table"},
                "GatewayId": {"Ref": "Gateway"},
                destination: value,
            },
        },
    }
    with SimulatedAccount() as account:
        stack = deploy(account, resources, "Network")
        assert stack.status == "CREATE_COMPLETE", stack.reason
        table = stack.resources["Table"].physical.id
        assert stack.resources["Route"].physical.id == f"{table}|{value}"
        account.deployer.delete(stack)
        assert stack.status == "DELETE_COMPLETE", stack.reason
