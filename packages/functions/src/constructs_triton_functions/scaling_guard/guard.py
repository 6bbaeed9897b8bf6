"""The sweeper and the gate: what they do for each request of CloudFormation."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..endpoint_state import running_variants
from ..response import Event, Response
from ..scaling import Scaling, ScalingError
from . import SWEEPER_TYPE
from .record import Record, RecordStore
from .stack import endpoint_name, stack_status
from .transitions import ACTIONS, Action, Phase

LOGGER = logging.getLogger(__name__)


def handle_guard(event: Event, physical_id: str) -> Response:
    """Handle a request for the sweeper or the gate."""
    response = Response(_new_id(event, physical_id))
    # On its creation the guard deregisters nothing: the registrations belong to something else.
    if event["RequestType"] == "Create":
        return response
    store = RecordStore(event["StackId"], event["ResourceProperties"]["EndpointLogicalId"])
    record = store.read()
    phase = Phase.of(stack_status(event["StackId"]))
    is_current = record is not None and _belongs(record, event, physical_id)
    action = ACTIONS.get((event["ResourceType"], event["RequestType"], phase, is_current))
    LOGGER.info("%s %s: %s", event["RequestType"], physical_id, action or "nothing to do")
    if action is not None:
        _CARRY_OUT[action](event, store, record or Record(response.physical_id, event["RequestId"]))
    return response


def _new_id(event: Event, physical_id: str) -> str:
    """The id after the request. The gate's is constant, and the sweeper's changes with its
    properties.

    CloudFormation treats a changed id as a replacement: in the cleanup phase it deletes the id that
    is no longer used. After a rollback that is the new one. Equal properties give equal ids, so a
    rollback that updates the sweeper leads back to the previous id.
    """
    if event["RequestType"] == "Delete":
        return physical_id
    if event["ResourceType"] != SWEEPER_TYPE:
        return str(event["LogicalResourceId"])
    properties = json.dumps(event["ResourceProperties"], sort_keys=True).encode()
    return f"{event['LogicalResourceId']}-{hashlib.sha256(properties).hexdigest()[:16]}"


def _belongs(record: Record, event: Event, physical_id: str) -> bool:
    if event["ResourceType"] != SWEEPER_TYPE:
        return bool(record.sweeper_id == event["ResourceProperties"]["SweeperId"])
    if event["RequestType"] == "Delete":
        return record.sweeper_id == physical_id
    return bool(record.request_id == event["RequestId"])


def _begin(event: Event, store: RecordStore, _: Record) -> None:
    store.write(Record(_new_id(event, ""), event["RequestId"]))


def _deregister(event: Event, store: RecordStore, record: Record) -> None:
    scaling = Scaling()
    described = (scaling.describe(resource_id) for resource_id in _variants_in_the_way(event))
    found = [each for each in described if each is not None]
    known = {each["ResourceId"] for each in record.saved}
    # A request that is repeated must not overwrite what the first one saved.
    added = [each for each in found if each["ResourceId"] not in known]
    record = replace(record, saved=(*record.saved, *added))
    store.write(record)
    try:
        _deregister_all(scaling, (each["ResourceId"] for each in found))
    except Exception:
        _restore_all(scaling, record.saved)
        store.write(replace(record, saved=()))
        raise


def _deregister_again(event: Event, _: RecordStore, __: Record) -> None:
    # What the update registered is not saved: it did not exist before.
    _deregister_all(Scaling(), _variants_in_the_way(event))


def _deregister_all(scaling: Scaling, resource_ids: Iterable[str]) -> None:
    for resource_id in resource_ids:
        scaling.deregister(resource_id)
        LOGGER.info("deregistered %s", resource_id)


def _reject(event: Event, _: RecordStore, __: Record) -> None:
    raise ScalingError(
        "the record of this deployment is missing in the Parameter Store, for "
        f"{event['LogicalResourceId']}; nothing was deregistered; deploy again"
    )


def _restore(_: Event, store: RecordStore, record: Record) -> None:
    _restore_all(Scaling(), record.saved)
    store.delete()


def _restore_all(scaling: Scaling, saved: Iterable[Mapping[str, Any]]) -> None:
    """Restore each variant, also after one of them fails.

    Raises:
        ScalingError: some could not be restored.
    """
    failures = []
    for each in saved:
        try:
            scaling.restore(each)
            LOGGER.info("restored %s", each["ResourceId"])
        except Exception as error:
            LOGGER.exception("%s was not restored", each["ResourceId"])
            failures.append(f"{each['ResourceId']}: {error}")
    if failures:
        raise ScalingError("could not register for scaling again: " + "; ".join(failures))


def _forget(_: Event, store: RecordStore, __: Record) -> None:
    store.delete()


def _variants_in_the_way(event: Event) -> list[str]:
    """The variants whose instance type the endpoint's update changes, and those that it removes."""
    properties = event["ResourceProperties"]
    name = endpoint_name(event["StackId"], properties["EndpointLogicalId"])
    wanted = properties.get("InstanceTypes") or {}
    before = event["OldResourceProperties"].get("InstanceTypes") or {}
    running = [] if name is None else running_variants(name)
    changed = {
        variant
        for variant, instance_type in running
        # Only variants that the template changes are registered again afterwards.
        if wanted.get(variant) not in (instance_type, before.get(variant))
    }
    return [f"endpoint/{name}/variant/{variant}" for variant in sorted(changed)]


_CARRY_OUT: dict[Action, Callable[[Event, RecordStore, Record], None]] = {
    Action.BEGIN: _begin,
    Action.DEREGISTER: _deregister,
    Action.DEREGISTER_AGAIN: _deregister_again,
    Action.REJECT: _reject,
    Action.RESTORE: _restore,
    Action.FORGET: _forget,
}
