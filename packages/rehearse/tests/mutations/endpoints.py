"""Edits of endpoints and of what serves beside them, which end in a failure or in errors of
callers.

Sources: SageMaker API reference, UpdateEndpoint and CreateEndpoint; Application Auto Scaling user
guide; the log groups that an endpoint in service has, SageMaker developer guide, "Log groups and
streams".
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from shared_endpoint import Resources, component

from . import bases
from .bases import ref, resource
from .mutant import COLLISION, PLATFORM, READERS, UPDATE_FAILS, Mutant, Rule, template

STOPS = ("rehearse-serving-stops", "rehearse-endpoint-replaced")
Edit = Callable[[Resources], None]


def endpoint_edits() -> Iterator[Mutant]:
    """The edits of each base."""
    for base in (bases.local, bases.queue, bases.many, bases.components):
        for name, (edit, codes, source) in _WRONG.items():
            # What another endpoint name of a component does is not settled, only that it does no
            # good.
            also = (UPDATE_FAILS,) if base is bases.components and codes == STOPS else ()
            if base is bases.many and edit is _absent_prefix_permission:
                also = ("rehearse-callers-fail",)  # the models are not in the other folder
            place = f"{base.__name__}: {name}"
            yield from _mutant(
                "endpoint", place, base, edit, Rule("wrong", source, (*codes, *also))
            )
        for name, (edit, source) in _HARMLESS.items():
            place = f"{base.__name__}: {name}"
            yield from _mutant("endpoint, no harm", place, base, edit, Rule("harmless", source))
    for kind, base, edits in (
        ("scaling", bases.local, _SCALED),
        ("component", bases.components, _SHARED),
        ("network", bases.network, _NETWORKS),
    ):
        for name, (edit, codes, source) in edits.items():
            yield from _mutant(kind, name, base, edit, Rule("wrong", source, codes))
    yield from _between_stacks()


def _mutant(
    kind: str, name: str, base: Callable[[], Resources], edit: Edit, rule: Rule
) -> Iterator[Mutant]:
    """The edit as a mutant, if the base has what is edited."""
    old, new = base(), base()
    edit(new)
    if new != old:
        yield Mutant(kind, name, {"S": template(old)}, {"S": template(new)}, *rule)


def _properties(resources: Resources, name: str) -> dict[str, Any]:
    found: dict[str, Any] = resources[name]["Properties"] if name in resources else {}
    return found


def _variant(resources: Resources) -> dict[str, Any]:
    found: dict[str, Any] = _properties(resources, "Config")["ProductionVariants"][0]
    return found


def _rename(resources: Resources) -> None:
    _properties(resources, "Endpoint")["EndpointName"] += "-2"


def _rename_case(resources: Resources) -> None:
    endpoint = _properties(resources, "Endpoint")
    endpoint["EndpointName"] = endpoint["EndpointName"].upper()


def _leave_out_name(resources: Resources) -> None:
    del _properties(resources, "Endpoint")["EndpointName"]


def _delete(resources: Resources) -> None:
    for name in ("Endpoint", "Target", "Scaling", "One", "Wake", "Alarm"):
        resources.pop(name, None)
    for name in ("Dashboard",):
        resources.pop(name, None)


def _other_id(resources: Resources) -> None:
    """Another logical ID with the same name."""
    if "One" in resources or "Target" in resources:
        return
    resources["Renamed"] = resources.pop("Endpoint")


def _absent_archive(resources: Resources) -> None:
    container = _properties(resources, "Model").get("PrimaryContainer", {})
    if container.get("ModelDataUrl", "").endswith(".tar.gz"):
        container["ModelDataUrl"] = f"s3://{PLATFORM}/models/three.tar.gz"


def _absent_prefix_permission(resources: Resources) -> None:
    """Another folder, which the role may not read."""
    _properties(resources, "Model")["PrimaryContainer"]["ModelDataUrl"] = (
        f"s3://{PLATFORM}/others/one.tar.gz"
    )


def _unknown_type(resources: Resources) -> None:
    _variant(resources)["InstanceType"] = "ml.g5.huge"


def _same_variant_twice(resources: Resources) -> None:
    variants = _properties(resources, "Config")["ProductionVariants"]
    variants.append(copy.deepcopy(variants[0]))


def _own_log_group(resources: Resources) -> None:
    name = _properties(resources, "Endpoint")["EndpointName"]
    group = resource("AWS::Logs::LogGroup", LogGroupName=f"/aws/sagemaker/Endpoints/{name}")
    if "One" not in resources:
        resources["EndpointLogs"] = group


def _absent_alarm(resources: Resources) -> None:
    if "One" in resources:
        # its configuration stays the same, and no source says that CloudFormation updates it then
        return
    routing = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 60}
    _properties(resources, "Endpoint")["DeploymentConfig"] = {
        "BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing},
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "no-such-alarm"}]},
    }
    _new_content(resources)


def _new_content(resources: Resources) -> None:
    container = _properties(resources, "Model")["PrimaryContainer"]
    container.setdefault("Environment", {})["SAGEMAKER_TRITON_LOG_VERBOSE"] = "1"


def _second_endpoint(resources: Resources) -> None:
    if "One" in resources:
        return
    config = {"Fn::GetAtt": ["Config", "EndpointConfigName"]}
    resources["Second"] = resource(
        "AWS::SageMaker::Endpoint", EndpointName="second", EndpointConfigName=config
    )


def _more_instances(resources: Resources) -> None:
    _variant(resources)["InitialInstanceCount"] = 2


def _other_archive(resources: Resources) -> None:
    container = _properties(resources, "Model")["PrimaryContainer"]
    if container.get("ModelDataUrl", "").endswith(".tar.gz"):
        container["ModelDataUrl"] = f"s3://{PLATFORM}/models/two.tar.gz"


def _tags(resources: Resources) -> None:
    for name in ("Model", "Config", "Endpoint"):
        _properties(resources, name)["Tags"] = [{"Key": "team", "Value": "vision"}]


_WRONG: dict[str, tuple[Edit, tuple[str, ...], str]] = {
    "renamed": (_rename, STOPS, "callers use the old name"),
    "another case of the name": (
        _rename_case,
        (*STOPS, COLLISION),
        "names are unique without regard to case",
    ),
    "name left out": (_leave_out_name, STOPS, "CloudFormation replaces the endpoint"),
    "deleted": (_delete, STOPS, "callers use the endpoint"),
    "another logical ID": (_other_id, (COLLISION,), "the name is taken until the cleanup"),
    "archive that does not exist": (_absent_archive, READERS, "CreateModel reads the archive"),
    "archive that the role may not read": (
        _absent_prefix_permission,
        READERS,
        "CreateModel reads the archive",
    ),
    "instance type that does not exist": (
        _unknown_type,
        (UPDATE_FAILS,),
        "the service model's values",
    ),
    "variant declared twice": (
        _same_variant_twice,
        (UPDATE_FAILS,),
        "names of variants are unique",
    ),
    "own log group of the endpoint": (
        _own_log_group,
        (COLLISION,),
        "SageMaker has created the log group",
    ),
    "rollback alarm that does not exist": (
        _absent_alarm,
        (UPDATE_FAILS,),
        "UpdateEndpoint looks up the alarms",
    ),
}
_HARMLESS: dict[str, tuple[Edit, str]] = {
    "another variable": (_new_content, "the new version starts beside the old one"),
    "another archive": (_other_archive, "the role reads both"),
    "a second endpoint": (_second_endpoint, "the first one is not changed"),
    "tags": (_tags, "tags are updated in place"),
}


def _larger(resources: Resources) -> None:
    _variant(resources)["InstanceType"] = "ml.g5.2xlarge"


def _rename_variant(resources: Resources) -> None:
    _variant(resources)["VariantName"] = "other"
    _properties(resources, "Target")["ResourceId"] = "endpoint/digits/variant/other"


def _lower_maximum(resources: Resources) -> None:
    _properties(resources, "Target")["MaxCapacity"] = 2


def _other_variant_scaled(resources: Resources) -> None:
    _properties(resources, "Target")["ResourceId"] = "endpoint/digits/variant/other"


def _minimum_over_maximum(resources: Resources) -> None:
    _properties(resources, "Target")["MinCapacity"] = 9


def _counts_not_retained(resources: Resources) -> None:
    del _properties(resources, "Endpoint")["RetainAllVariantProperties"]
    _new_content(resources)


def _target_twice(resources: Resources) -> None:
    resources["Again"] = copy.deepcopy(resources["Target"])


_SCALED: dict[str, tuple[Edit, tuple[str, ...], str]] = {
    "another instance type": (_larger, (UPDATE_FAILS,), "the variant must be deregistered before"),
    "variant renamed": (
        _rename_variant,
        (UPDATE_FAILS,),
        "the variant must be deregistered before",
    ),
    "maximum below the fleet": (
        _lower_maximum,
        ("rehearse-fleet-shrinks",),
        "Application Auto Scaling scales in",
    ),
    "target of no variant": (
        _other_variant_scaled,
        (UPDATE_FAILS,),
        "RegisterScalableTarget looks up the variant",
    ),
    "minimum above the maximum": (_minimum_over_maximum, (UPDATE_FAILS,), "RegisterScalableTarget"),
    "counts not retained": (
        _counts_not_retained,
        ("rehearse-fleet-shrinks",),
        "UpdateEndpoint sets the initial count",
    ),
    "target declared twice": (
        _target_twice,
        (COLLISION, UPDATE_FAILS),
        "the identifier of the target exists",
    ),
}


def _too_many_accelerators(resources: Resources) -> None:
    needs = _properties(resources, "One")["Specification"]["ComputeResourceRequirements"]
    needs["NumberOfAcceleratorDevicesRequired"] = 99


def _component_removed(resources: Resources) -> None:
    for name in ("One", "Target", "Wake", "Alarm"):
        del resources[name]


def _component_moved(resources: Resources) -> None:
    one = copy.deepcopy(resources["One"])
    _component_removed(resources)
    resources["Two"] = one


def _component_of_no_variant(resources: Resources) -> None:
    resources["Two"] = component("Model")
    resources["Two"]["Properties"]["VariantName"] = "other"


def _type_of_host(resources: Resources) -> None:
    _variant(resources)["InstanceType"] = "ml.g5.24xlarge"


def _variant_of_hosts_renamed(resources: Resources) -> None:
    _variant(resources)["VariantName"] = "other"


_SHARED: dict[str, tuple[Edit, tuple[str, ...], str]] = {
    "more accelerators than an instance has": (
        _too_many_accelerators,
        (UPDATE_FAILS,),
        "UpdateInferenceComponent",
    ),
    "component of no variant": (
        _component_of_no_variant,
        (UPDATE_FAILS,),
        "CreateInferenceComponent",
    ),
    "instance type of the hosts": (
        _type_of_host,
        (UPDATE_FAILS,),
        "UpdateEndpoint with components",
    ),
    "variant of the hosts renamed": (
        _variant_of_hosts_renamed,
        (UPDATE_FAILS,),
        "UpdateEndpoint with components",
    ),
    "component removed": (
        _component_removed,
        (*STOPS, "rehearse-callers-fail"),
        "callers name the component",
    ),
    "component with another logical ID": (
        _component_moved,
        (*STOPS, "rehearse-callers-fail"),
        "callers name it",
    ),
}


def _same_addresses(resources: Resources) -> None:
    _properties(resources, "SubnetB")["CidrBlock"] = "10.0.0.0/24"


def _outside_of_vpc(resources: Resources) -> None:
    _properties(resources, "SubnetB")["CidrBlock"] = "10.9.0.0/24"


def _group_of_other_vpc(resources: Resources) -> None:
    resources["Other"] = resource("AWS::EC2::VPC", CidrBlock="10.1.0.0/16")
    _properties(resources, "Group")["VpcId"] = {"Ref": "Other"}


def _second_association(resources: Resources) -> None:
    resources["AssociationC"] = copy.deepcopy(resources["AssociationA"])


def _second_route(resources: Resources) -> None:
    resources["RouteB"] = copy.deepcopy(resources["Route"])


def _second_gateway(resources: Resources) -> None:
    resources["GatewayB"] = resource("AWS::EC2::InternetGateway")
    attachment = resource(
        "AWS::EC2::VPCGatewayAttachment", VpcId=ref("Vpc"), InternetGatewayId=ref("GatewayB")
    )
    resources["AttachmentB"] = attachment


_EC2 = "EC2 API reference"
_NETWORKS: dict[str, tuple[Edit, tuple[str, ...], str]] = {
    "two subnets with the same addresses": (_same_addresses, (UPDATE_FAILS, COLLISION), _EC2),
    "subnet outside of its VPC": (_outside_of_vpc, (UPDATE_FAILS,), _EC2),
    "security group of another VPC": (
        _group_of_other_vpc,
        READERS,
        "VpcConfig: the groups of the subnets' VPC",
    ),
    "second association of a subnet": (_second_association, (UPDATE_FAILS, COLLISION), _EC2),
    "second route to a destination": (_second_route, (UPDATE_FAILS, COLLISION), _EC2),
    "second internet gateway": (_second_gateway, (UPDATE_FAILS, COLLISION), _EC2),
}


def _between_stacks() -> Iterator[Mutant]:
    """An endpoint that moves to another stack, with its name."""
    old = {"S": template({**bases.many(), "Topic": resource("AWS::SNS::Topic")})}
    rest = template({"Topic": resource("AWS::SNS::Topic")})
    moved = template(bases.many())
    source = "the endpoint does not exist between its deletion and its creation"
    kind = "endpoint"
    yield Mutant(
        kind,
        "to a stack deployed before",
        old,
        {"T": moved, "S": rest},
        "wrong",
        source,
        (COLLISION, *STOPS),
    )
    yield Mutant(
        kind, "to a stack deployed after", old, {"S": rest, "T": moved}, "wrong", source, STOPS
    )
    yield Mutant(kind, "stack deleted", {**old, "T": rest}, {"T": rest}, "wrong", source, STOPS)
