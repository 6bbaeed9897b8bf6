"""Gateways of networks."""

from __future__ import annotations

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
