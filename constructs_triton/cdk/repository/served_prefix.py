"""The S3 prefix that multi-model endpoints load the archives of a repository from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Annotations, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.repository.archive_assets import ArchiveAsset, StackAssets
from constructs_triton.cdk.repository.loaded_models import ArchivePrefix, LocalModels
from constructs_triton.cdk.repository.looked_up_models import LookedUpModels
from constructs_triton.cdk.repository.model_bucket import ModelKeys, create_bucket
from constructs_triton.cdk.repository.model_catalog import ModelCatalog
from constructs_triton.cdk.repository.model_sync import ModelSync, S3Archive
from constructs_triton.cdk.repository.properties import PrefixOptions, TargetModelNaming
from constructs_triton.cdk.repository.target_model import (
    TargetModel,
    archive_name,
    archive_patterns,
    check_target_model,
    refuse_collisions,
)
from constructs_triton.cdk.validation.property_types import GRANTEE, check_has
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_token
from constructs_triton_functions.model_sync.properties import INDEX_FILE

_PLAIN_NAMES = (
    'target_model_naming: with plain names, an instance that has loaded "{name}" keeps serving the '
    "old content after a change, because SageMaker does not load the same key again; use "
    "TargetModelNaming.CONTENT"
)
_MANAGE_ACTIONS = [
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:GetObject",
    "s3:ListMultipartUploadParts",
    "s3:PutObject",
]


class ServedPrefix:
    """A prefix that a deployment fills with the models of ``catalog``, or that other programs fill.

    ``scope`` is the parent of the bucket and of the custom resource. Both are created when they are
    used.
    """

    def __init__(self, scope: Construct, catalog: ModelCatalog, options: PrefixOptions) -> None:
        source = catalog.source
        self._scope = scope
        self._catalog = catalog
        self._options = options
        self._bucket = source.bucket if isinstance(source, ArchivePrefix) else options.bucket
        self._sync: ModelSync | None = None
        self.is_filled_by_others = isinstance(source, ArchivePrefix)
        self.prefix = source.key if isinstance(source, ArchivePrefix) else options.prefix
        self.creates_bucket = self._bucket is None

    @property
    def bucket(self) -> s3.IBucket:
        """The bucket, created at the first use unless one was given."""
        if self._bucket is None:
            self._bucket = create_bucket(
                self._scope,
                encryption_key=self._options.encryption_key,
                versioned=self._options.versioned,
                removal_policy=self._options.removal_policy,
            )
        return self._bucket

    @property
    def is_deleted_with_stack(self) -> bool:
        """Whether the bucket is created here and is deleted, with all models,
        together with the stack.
        """
        return self.creates_bucket and self._options.removal_policy == RemovalPolicy.DESTROY

    @property
    def keys(self) -> ModelKeys:
        """The KMS keys of the models in the bucket."""
        return ModelKeys(
            self.bucket.encryption_key, self._options.previous_encryption_keys, self.creates_bucket
        )

    def refuse_pruning_for(self, reader: Construct) -> None:
        """Check that no deployment deletes models that an endpoint of another
        stack may still serve.
        """
        here, there = _deployed_stack(reader), _deployed_stack(self._scope)
        if self._options.prune_after is not None and here is not there:
            raise InvalidValueError(
                f"{reader.node.path}: prune_after of {self._scope.node.path} deletes models when "
                f"the stack {there.stack_name} is deployed, but this endpoint in the stack "
                f"{here.stack_name} may still serve them; create the repository in the stack of "
                "the endpoint, or remove prune_after"
            )

    @property
    def url(self) -> str:
        """``s3://<bucket>/<prefix>``."""
        return f"s3://{self.bucket.bucket_name}/{self.prefix}"

    @property
    def target_models(self) -> dict[str, TargetModel]:
        """The archive of each model by name; empty if other programs fill the prefix."""
        if self.is_filled_by_others:
            return {}
        return {
            name: archive_name(
                self._options.target_model_naming, name, loaded.content_digest(model)
            )
            for name, (loaded, model) in self._catalog.entries().items()
        }

    def grant_patterns(self, names: Sequence[str]) -> list[str]:
        """Return the ``TargetModel`` values that a grant for models, archives or patterns allows.

        Raises:
            InvalidValueError: the repository has no archive of that name, so the grant would allow
                nothing.
        """
        known = self.target_models
        patterns: list[str] = []
        for name in names:
            patterns += self._patterns(name, known)
        return patterns

    def _patterns(self, name: str, known: Mapping[str, TargetModel]) -> list[str]:
        """Return the ``TargetModel`` values that one name of a grant stands for."""
        if self.is_filled_by_others:
            is_archive = is_token(name) or name.endswith(".tar.gz") or set("*?") & set(name)
            return [name] if is_archive else archive_patterns(TargetModelNaming.PLAIN, name)
        if isinstance(self._catalog.source, LookedUpModels):
            return [name]  # the next synthesis has the models
        check_target_model(name, known, self._catalog.served_with(name.removesuffix(".tar.gz")))
        return (
            archive_patterns(self._options.target_model_naming, name) if name in known else [name]
        )

    # Its content.

    @property
    def is_synced(self) -> bool:
        """Whether the custom resource exists, so that no more models can be added."""
        return self._sync is not None

    def sync(self) -> ModelSync | None:
        """Return the custom resource that copies the archives, or ``None`` if other programs do.

        Raises:
            InvalidValueError: there are no models, models that are not in archives, or archives
                that a grant for another model would allow.
        """
        if self._sync is None and not self.is_filled_by_others:
            self._sync = self._create_sync()
        return self._sync

    def _create_sync(self) -> ModelSync:
        """Create the custom resource that copies all archives to the prefix."""
        entries, targets = self._catalog.entries(), self.target_models
        refuse_collisions(targets)
        assets = StackAssets(self._scope)
        archives: dict[str, tuple[str, ArchiveAsset]] = {}
        stored: dict[str, tuple[str, S3Archive]] = {}
        for name, (loaded, model) in entries.items():
            if isinstance(loaded, LocalModels):
                asset = assets.add_archive(
                    loaded.archive(model, assets.directory), loaded.contents_of(model)
                )
                archives[name] = (targets[name], asset)
            else:
                stored[name] = (targets[name], S3Archive(loaded.bucket, loaded.key))
        if self._options.target_model_naming is TargetModelNaming.PLAIN:
            warning = _PLAIN_NAMES.format(name=next(iter(targets.values())))
            Annotations.of(self._scope).add_warning_v2(
                "constructs-triton:target-model-plain-names", warning
            )
        return ModelSync(
            self._scope,
            "Sync",
            assets=assets,
            bucket=self.bucket,
            prefix=self.prefix,
            keys=self.keys,
            archives=archives,
            stored_archives=stored,
            asset_encryption_key=self._options.asset_encryption_key,
            prune_after=self._options.prune_after,
            # A bucket that is not empty cannot be deleted. A bucket of the user is never emptied.
            remove_on_delete=self.is_deleted_with_stack,
        )

    # Permissions.

    def grant_read_index(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant the permissions to read ``index.json`` and to decrypt it."""
        grant = self._grant(grantee, ["s3:GetObject"], [self._arn(INDEX_FILE)])
        for key in self.keys.all:
            grant = grant.combine(key.grant_decrypt(grantee))
        return grant

    def grant_manage(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant the permissions to list, add, replace and delete archives,
        and to change ``index.json``.
        """
        conditions = {"StringLike": {"s3:prefix": [f"{self.prefix}*"]}}
        grant = self._grant(grantee, _MANAGE_ACTIONS, [self._arn("*")])
        grant = grant.combine(
            self._grant(grantee, ["s3:ListBucket"], [self.bucket.bucket_arn], conditions)
        )
        keys = self.keys
        if keys.current is not None:
            grant = grant.combine(keys.current.grant_encrypt_decrypt(grantee))
        for key in keys.previous:
            grant = grant.combine(key.grant_decrypt(grantee))
        return grant

    def _arn(self, name: str) -> str:
        return self.bucket.arn_for_objects(f"{self.prefix}{name}")

    def _grant(
        self,
        grantee: iam.IGrantable,
        actions: list[str],
        arns: list[str],
        conditions: Mapping[str, Mapping[str, object]] | None = None,
    ) -> iam.Grant:
        check_has("grantee", grantee, *GRANTEE)
        return iam.Grant.add_to_principal_or_resource(
            grantee=grantee,
            actions=actions,
            resource_arns=arns,
            resource=self.bucket,
            conditions=conditions,
        )


def _deployed_stack(scope: Construct) -> Stack:
    """The stack that a scope is deployed with: a nested stack is deployed with its parent."""
    stack = Stack.of(scope)
    return (
        stack if stack.nested_stack_parent is None else _deployed_stack(stack.nested_stack_parent)
    )
