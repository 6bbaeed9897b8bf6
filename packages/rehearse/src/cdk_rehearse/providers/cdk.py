"""The CDK's own resource types: its metadata, and ``cross_region_references``.

The functions of the latter need Node. Source: cross-region-ssm-writer-handler and
cross-region-ssm-reader-handler of aws-cdk-lib. Up to 2.252, the writer refuses to change or delete
a parameter that a stack reads. Since then it writes only new parameters.
"""

from __future__ import annotations

from collections.abc import Iterable

from botocore.exceptions import ClientError

from ..errors import StackError
from ..services.service_api import Place, client
from .provider import Deployed, Physical, Provider, PutProvider, Request

_MARK = "aws-cdk:strong-ref:"
"""The tag of a parameter that a stack reads begins with this, and ends with the stack's name."""


class Metadata(Provider):
    """What the CDK reports about an app; nothing exists in AWS."""

    type = "AWS::CDK::Metadata"

    def create(self, request: Request) -> Physical:
        return Physical(request.logical_id)

    def update(self, current: Deployed, _: Request) -> Physical:
        return current.physical

    def delete(self, _: Deployed) -> None:
        """Delete nothing."""


class ExportWriter(PutProvider):
    """Writes SSM parameters of another Region, which stacks of that Region read."""

    type = "Custom::CrossRegionExportWriter"

    def put(self, request: Request, name: str) -> Physical:
        for place, value in self._exports(request).items():
            self.api.passed.setdefault(place, value)
            self._write(place, value)
        return Physical(name)

    def update(self, current: Deployed, request: Request) -> Physical:
        """Refuse to change or remove an export that a stack in the other Region reads."""
        before = self._exports(current.request)
        after = self._exports(request)
        changed = [place for place in before if after.get(place, before[place]) != before[place]]
        self._expect_unread("Some exports have changed!", changed)
        for _, _, name in changed:
            self.api.note_not_simulated(
                "the CDK keeps the former value in the other Region:", "", name
            )
        self._expect_unread("Exports cannot be updated: ", before.keys() ^ after.keys())
        return super().update(current, request)

    def delete(self, current: Deployed) -> None:
        exports = self._exports(current.request)
        self._expect_unread("Exports cannot be updated: ", exports)
        for place in exports:
            self._remove(place)

    def _readers(self, place: Place) -> str:
        """The names of the stacks that read a parameter, which their readers have marked."""
        if self.api.all_regions_url is None:
            return self.api.imported.get(place, "")
        _, region, name = place
        ssm = client("ssm", self.api.all_regions_url, region)
        try:
            found = ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId=name)
        except ClientError:  # it does not exist
            return ""
        keys = [tag["Key"] for tag in found["TagList"]]
        return ",".join(key.removeprefix(_MARK) for key in keys if key.startswith(_MARK))

    def _write(self, place: Place, value: str) -> None:
        """Write a parameter that does not exist to the other Region of an account that is served.

        A rehearsal has no other Region at this moment, and passes the values on itself.
        """
        if self.api.all_regions_url is None:
            return
        _, region, name = place
        ssm = client("ssm", self.api.all_regions_url, region)
        try:
            ssm.put_parameter(Name=name, Value=value, Type="String")
        except ssm.exceptions.ParameterAlreadyExists:
            return

    def _remove(self, place: Place) -> None:
        """Delete a parameter of the other Region of an account that is served."""
        if self.api.all_regions_url is None:
            return
        _, region, name = place
        ssm = client("ssm", self.api.all_regions_url, region)
        ssm.delete_parameters(Names=[name])

    def _exports(self, request: Request) -> dict[Place, str]:
        wanted = request.properties["WriterProps"]
        return {
            (self.api.account, wanted["region"], name): text
            for name, text in wanted["exports"].items()
        }

    def _expect_unread(self, title: str, places: Iterable[Place]) -> None:
        """Raise ``StackError`` if stacks read one of the exports."""
        readers = {place: self._readers(place) for place in places}
        read = [
            f"{place[2]} is in use by stack(s) {names}" for place, names in readers.items() if names
        ]
        if read:
            failed = (
                "Received response status [FAILED] from custom resource. Message returned: Error: "
            )
            raise StackError("\n".join([failed + title, *sorted(read)]))


class ExportReader(PutProvider):
    """Returns the values of SSM parameters, to which CloudFormation has resolved its properties."""

    type = "Custom::CrossRegionExportReader"

    def put(self, request: Request, name: str) -> Physical:
        imports = request.properties["ReaderProps"]["imports"]
        if self.api.all_regions_url is not None:
            self._mark(request, imports)
        return Physical(name, imports)

    def update(self, current: Deployed, request: Request) -> Physical:
        before = current.properties["ReaderProps"]["imports"]
        after = request.properties["ReaderProps"]["imports"]
        self._unmark(current.request, before.keys() - after.keys())
        return super().update(current, request)

    def delete(self, current: Deployed) -> None:
        """Delete no parameter: the writer deletes them."""
        self._unmark(current.request, current.properties["ReaderProps"]["imports"])

    def _mark(self, request: Request, names: Iterable[str]) -> None:
        """Write the stack's name into the tags of the parameters that it reads."""
        tag = {"Key": f"{_MARK}{request.stack_name}", "Value": "true"}
        for name in names:
            if self._exists(name):
                place = {"ResourceType": "Parameter", "ResourceId": name}
                self.api.call("ssm", "AddTagsToResource", **place, Tags=[tag])

    def _unmark(self, request: Request, names: Iterable[str]) -> None:
        """Remove the tags that note that this stack reads these exports."""
        if self.api.all_regions_url is None:
            return
        key = f"{_MARK}{request.stack_name}"
        for name in names:
            if self._exists(name):
                place = {"ResourceType": "Parameter", "ResourceId": name}
                self.api.call("ssm", "RemoveTagsFromResource", **place, TagKeys=[key])

    def _exists(self, name: str) -> bool:
        return bool(self.api.call("ssm", "GetParameters", Names=[name])["Parameters"])
