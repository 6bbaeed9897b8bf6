"""An AWS account on loopback: services, and simulations of CloudFormation and IAM."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.processes.children import STDOUT, Finished, run_child

from .behaviour import Behaviour
from .copies import Copy, Original, Threads
from .custom_resources.functions import Answers, Functions
from .endpoints import endpoint_api, observations
from .endpoints.components import CopyScaling, InferenceComponents, Runtime
from .endpoints.encrypted_data import EncryptedDataUses
from .endpoints.fleets import Fleets
from .existing import outside
from .moto_account import process
from .permissions.access import Access, RoleCredentials
from .permissions.execution_role import ExecutionRoleCheck
from .providers import Providers
from .services.service_api import ServiceApi, client
from .stacks import server
from .stacks.cloudformation_api import CloudFormationApi
from .stacks.deployment import Deployer
from .stacks.nested_stacks import NestedStack
from .stacks.publishing import publish
from .stacks.stack import Stack, Stacks

REGION = "us-east-1"
_QUALIFIER = "hnb659fds"
_BOOTSTRAP_VERSION = "33"


class SimulatedAccount:
    """A context manager that runs an AWS account on loopback.

    At the end it stops everything that it started, and restores the environment variables of the
    process. A process can have one account at a time, since the state of the services belongs to
    the process.

    Args:
        account: Account ID; it matters to stacks that are bound to theirs.
        region: Region; it matters to stacks that are bound to theirs.
        functions: Which Lambda functions run: ``"library"`` are the deploy-time functions of this
            library, ``"python"`` all functions in Python, with the permissions of your user on this
            machine. A custom resource of another function succeeds without running it.

    Raises:
        MissingDependencyError: the installed release of moto is not supported.
    """

    def __init__(
        self,
        account: str = process.DEFAULT_ACCOUNT_ID,
        region: str = REGION,
        *,
        functions: Literal["library", "python"] = "library",
    ) -> None:
        self._account = account
        self._region = region
        self._runs = functions
        self._exit = ExitStack()

    def __enter__(self) -> SimulatedAccount:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        with ExitStack() as cleanup:
            cleanup.enter_context(process.begun(self._account))
            self.server = server.LoopbackServer(process.APPLICATION)
            cleanup.callback(self.server.stop)
            self.threads = Threads()
            url = self.server.url
            self.api = ServiceApi(url, self._account, self._region, process.APPLICATION)
            self.api.runs_all_functions = self._runs == "python"
            self._assemble()
            cleanup.callback(self.functions.wait)
            for patch in self._patches():
                cleanup.enter_context(patch)
            cleanup.callback(self.cloudformation.wait)
            self._exit = cleanup.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def _assemble(self) -> None:
        """Create the parts of the account, each from those that it needs."""
        self.access = Access(self.api)
        self.functions = Functions(self.api, self.access)
        self.answers = Answers(self.functions.are_idle, self.endpoint_url)
        self.stacks = Stacks(self.api)
        self.execution_roles = ExecutionRoleCheck(self.api, self.access)
        self.fleets = Fleets(self.api, self.execution_roles)
        self.encrypted_data = EncryptedDataUses(self.fleets, self.access)
        self.components = InferenceComponents(self.fleets)
        self.runtime = Runtime(self.components)
        self.copy_scaling = CopyScaling(self.components, self.runtime)
        providers = Providers(self.api, self.answers)
        self.deployer = Deployer(
            self.stacks,
            providers,
            inspect=self.fleets.inspect,
            begin_cleanup=self.fleets.begin_cleanup,
        )
        self.cloudformation = CloudFormationApi(self.stacks, self.deployer)
        providers.others[NestedStack.type] = NestedStack(self.deployer)

    def _patches(self) -> list[Any]:
        """Return all differences from moto, as context managers."""
        return [
            *server.patches(self.cloudformation, self.answers),
            *process.patches(),
            *self.access.patches(),
            *self.functions.patches(),
            *endpoint_api.patches(self.fleets, self.components),
            *self.components.patches(),
            *self.runtime.patches(),
            *self.copy_scaling.patches(),
            *observations.patches(self.stacks, self.fleets),
        ]

    @property
    def behaviour(self) -> Behaviour:
        """How the account behaves; can be set between two operations."""
        return self.api.behaviour

    @behaviour.setter
    def behaviour(self, behaviour: Behaviour) -> None:
        self.api.behaviour = behaviour

    @property
    def not_simulated(self) -> dict[str, list[str]]:
        """What is not simulated: resource types, properties as ``<type>.<property>``, and
        functions.

        Each has the logical IDs of its resources, as ``<stack>/<logical ID>``. These resources
        exist and are replaced as CloudFormation would. They do nothing, and their attributes are
        strings without a meaning. What templates name and no stack creates is listed as ``existing
        bucket``, ``existing role``, ….
        """
        found = {
            what: list(self.api.not_simulated[what]) for what in sorted(self.api.not_simulated)
        }
        physical_ids = [event.physical_id for stack in self.stacks.all for event in stack.events]
        return {**outside(self.api.mentioned, physical_ids), **found}

    @property
    def endpoint_url(self) -> str:
        """The URL of all services."""
        return self.api.endpoint_url

    def client(self, service: str, credentials: RoleCredentials | None = None) -> Any:
        """Return a boto3 client.

        Args:
            service: Name of the service, as in ``boto3.client``.
            credentials: Credentials of a role. Default: those of the administrator, who may do
                everything.
        """
        if credentials is None:
            return self.api.client(service)
        return client(service, self.endpoint_url, self.api.region, credentials.as_arguments())

    def stack(self, name: str) -> Stack:
        """Return the current state of a stack.

        Args:
            name: Name or ARN of the stack. A deleted stack is found by its ARN only.

        Raises:
            StackError: no such stack exists.
        """
        return self.stacks.get(name)

    # Without the command line.

    def bootstrap(self) -> str:
        """Create what file assets need of ``cdk bootstrap``; returns the asset bucket."""
        bucket = f"cdk-{_QUALIFIER}-assets-{self.api.account}-{self.api.region}"
        self.api.create_bucket(bucket)
        name = f"/cdk-bootstrap/{_QUALIFIER}/version"
        self.api.call("ssm", "PutParameter", Name=name, Value=_BOOTSTRAP_VERSION, Type="String")
        return bucket

    def deploy(
        self,
        directory: Path,
        artifact: str,
        *,
        stack_name: str | None = None,
        template: Template | None = None,
    ) -> Stack:
        """Publish the assets of an assembly and deploy one of its stacks; the status shows the
        result.

        Args:
            directory: Folder of the assembly, which ``cdk synth`` wrote.
            artifact: ID of the stack in the assembly.
            stack_name: Name of the deployed stack. Default: that of the assembly.
            template: Template to deploy instead. Default: that of the assembly.

        Raises:
            StackError: CloudFormation accepts no update in the state of the stack, or an asset
                cannot be published.
            TemplateError: the assembly cannot be read.
        """
        assembly = Assembly(directory)
        publish(assembly, self.api)
        self._tag_assets()
        name = stack_name or assembly.stack_name(artifact)
        stack = self.stacks.find(name) or self.stacks.add(name)
        self.deployer.deploy(stack, template or assembly.template(artifact), {})
        self.functions.wait()
        return stack

    def _tag_assets(self) -> None:
        """Tag the published assets as a malware scan does, if AWS behaves so."""
        if not self.behaviour.tags_assets:
            return
        s3 = self.client("s3")
        bucket = f"cdk-{_QUALIFIER}-assets-{self.api.account}-{self.api.region}"
        tagging = {"TagSet": [{"Key": "ScanStatus", "Value": "NO_THREATS_FOUND"}]}
        for stored in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
            s3.put_object_tagging(Bucket=bucket, Key=stored["Key"], Tagging=tagging)

    def destroy(self, stack_name: str) -> Stack:
        """Delete a stack; its status shows the result.

        Args:
            stack_name: Name or ARN of the stack.

        Raises:
            StackError: no such stack exists.
        """
        stack = self.stack(stack_name)
        self.deployer.delete(stack)
        return stack

    # With the command line.

    def variables(self) -> dict[str, str]:
        """The environment variables that connect boto3, ``aws`` and ``cdk`` to this account."""
        port = self.endpoint_url.rpartition(":")[2]
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            # The CLI builds TemplateURL from this one, and the server takes an address for a
            # bucket's subdomain.
            "AWS_ENDPOINT_URL_S3_FOR_CLOUDFORMATION": f"http://localhost:{port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": self.api.region,
            "AWS_DEFAULT_REGION": self.api.region,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "CDK_DISABLE_CLI_TELEMETRY": "1",
        }

    def environment(self) -> dict[str, str]:
        """The environment of this process, without its own AWS settings and with :meth:`variables`.

        The CDK's command line asks nothing, prints no colors, and does not validate templates
        again.
        """
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        quiet = {"CDK_VALIDATION": "false", "CI": "1", "NO_COLOR": "1", "NODE_NO_WARNINGS": "1"}
        return {**kept, **self.variables(), **quiet}

    def run_cdk(self, cdk: Path, *arguments: str, cwd: Path) -> Finished:
        """Run the CDK's command line against this account; return its output and exit code.

        Args:
            cdk: Path of the command ``cdk``.
            *arguments: Arguments of the command.
            cwd: Working directory.

        Raises:
            OSError: the command cannot be started, or took longer than five minutes.
        """
        return run_child(
            [cdk, *arguments], seconds=300, cwd=cwd, environment=self.environment(), stderr=STDOUT
        )


def copy_account(
    account: SimulatedAccount, copy_process: Callable[[], Copy | Original]
) -> Copy | Original:
    """Copy this process with the account, when no function is running.

    The account of the copy has its own URL and its own functions. What changes in it does not
    change this one.

    Args:
        account: The account.
        copy_process: Copies the process, and returns the other side.
    """
    account.functions.wait()
    account.threads.wait_for_others()
    side = copy_process()
    if isinstance(side, Original):
        account.server.start_in_copy()
        account.threads = Threads()
        account.api.endpoint_url = account.answers.base_url = account.server.url
        account.functions.forget_clients()
    return side
