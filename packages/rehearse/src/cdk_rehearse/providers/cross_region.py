"""The CDK's custom resources of ``cross_region_references``, whose functions need Node.

Source: the functions cross-region-ssm-writer-handler and cross-region-ssm-reader-handler of aws-cdk-lib. Up to
2.252 the writer refuses to change or delete a parameter that a stack reads; since then it writes only new
parameters and deletes those that are no longer exported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import StackError
from ..services.exchange import Place
from .provider import Deployed, Physical, Provider, PutProvider, Request


class ExportWriter(Provider):
    """Writes values to SSM parameters of another Region."""

    type = "Custom::CrossRegionExportWriter"

    def create(self, request: Request) -> Physical:
        exports = self._exports(request)
        self._expect_unused(exports)
        for place, value in exports.items():
            self.api.exchange.parameters.setdefault(place, value)
        return Physical(request.logical_id)

    def update(self, current: Deployed, request: Request) -> Physical:
        before, after, exchange = self._exports(current.request), self._exports(request), self.api.exchange
        changed = [place for place in before if after.get(place, before[place]) != before[place]]
        if changed and exchange.is_guarded:
            raise _failed("Some exports have changed!\n" + "\n".join(name for _, _, name in changed))
        exchange.stale.update(changed)
        self._expect_unused(before.keys() ^ after.keys())
        for place, value in after.items():
            exchange.parameters.setdefault(place, value)
        return current.physical

    def delete(self, current: Deployed) -> None:
        self._expect_unused(self._exports(current.request))

    def _exports(self, request: Request) -> Mapping[Place, str]:
        wanted = request.properties["WriterProps"]
        return {
            (self.api.account, wanted["region"], name): str(value)
            for name, value in wanted["exports"].items()
        }

    def _expect_unused(self, places: Iterable[Place]) -> None:
        exchange = self.api.exchange
        used = sorted(exchange.imported.keys() & set(places)) if exchange.is_guarded else []
        if used:
            stacks = (f"{place[2]} is in use by stack(s) {exchange.imported[place]}" for place in used)
            raise _failed("Exports cannot be updated: \n" + "\n".join(stacks))


class ExportReader(PutProvider):
    """Returns values of SSM parameters, to which CloudFormation resolves its properties."""

    type = "Custom::CrossRegionExportReader"

    def put(self, request: Request, name: str) -> Physical:
        return Physical(name, request.properties["ReaderProps"]["imports"])

    def delete(self, current: Deployed) -> None:
        """Delete nothing: the stack that writes the parameters deletes them."""


def _failed(reason: str) -> StackError:
    return StackError(
        f"Received response status [FAILED] from custom resource. Message returned: Error: {reason}"
    )
