"""``TritonModelRepository``: a folder of Triton models as CDK sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from aws_cdk import Annotations, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk._archive_assets import ModelArchive, pack_into_assembly, publish
from constructs_triton.cdk._model_sync import ModelSync
from constructs_triton.cdk._tokens import is_concrete
from constructs_triton.cdk.model_source import ModelSource
from constructs_triton.errors import InvalidValueError, RepositoryError
from constructs_triton.facts.target import Target
from constructs_triton.findings import Finding
from constructs_triton.model_repository import Archive, ModelRepository
from constructs_triton.model_repository.packing import errors_left_by_packing

__all__ = ["TritonModelRepository", "annotate", "check_repository"]

DEFAULT_PREFIX = "models/"


class TritonModelRepository(Construct):
    """A checked Triton model repository, ready to be served.

    The repository is checked when the construct is made, as strictly as Triton checks it: errors raise
    ``RepositoryError`` with all findings before anything is added to the stack, and warnings become
    annotations that can be acknowledged by ``constructs-triton:<code>``.

    Archives are made when an endpoint asks for them. A single-model endpoint loads its archive from the CDK's
    asset bucket (:meth:`archive_of`). A multi-model endpoint needs all archives under one prefix: the first
    time :attr:`model_data_url` is asked for, a bucket is made (unless one was given) together with a custom
    resource that copies them there inside S3.

    ``source``
        Where the models come from, for example ``ModelSource.from_directory("models")``.
    ``bucket``
        A bucket of one's own for multi-model endpoints. By default one is made: encrypted, TLS only, no
        public access, kept when the stack is deleted.
    ``prefix``
        Key prefix of the archives in that bucket, ``"models/"`` by default; ends with ``/``.
    ``encryption_key``
        KMS key of the bucket that is made; S3-managed keys by default.
    ``removal_policy``
        Of the bucket that is made, ``RETAIN`` by default; ``DESTROY`` removes the archives as well.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        source: ModelSource,
        bucket: s3.IBucket | None = None,
        prefix: str = DEFAULT_PREFIX,
        encryption_key: kms.IKey | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,
    ) -> None:
        _check_prefix(prefix)
        if bucket is not None and encryption_key is not None:
            raise InvalidValueError(
                "encryption_key: belongs to the bucket that is made here, got a bucket as well; "
                "set the key on that bucket"
            )
        models = source.load()
        warnings = check_repository(models)
        super().__init__(scope, id)
        self.prefix = prefix
        self._models = models
        self._bucket = bucket
        self._encryption_key = encryption_key
        self._removal_policy = removal_policy
        # A bucket that is not empty cannot be deleted; a given one is not ours to empty.
        self._removes_archives = bucket is None and removal_policy == RemovalPolicy.DESTROY
        self._packed: dict[str, Archive] = {}
        self._sync: ModelSync | None = None
        annotate(self, warnings)

    @property
    def models(self) -> ModelRepository:
        """The models as they were read from disk."""
        return self._models

    @property
    def target_models(self) -> Mapping[str, str]:
        """The ``TargetModel`` of each model that a multi-model endpoint offers, by the model's name."""
        return MappingProxyType({name: f"{name}.tar.gz" for name in self._models.top_level_models()})

    def archive_of(self, model_name: str, *, scope: Construct | None = None) -> ModelArchive:
        """The archive of a model, or of an ensemble with all its steps, as an asset.

        It becomes an asset of the stack that ``scope`` is in, by default this repository's own stack. Raises
        ``InvalidValueError`` where the repository has no such model.
        """
        steps = [name for name in self._models.closure(model_name) if name != model_name]
        if model_name not in self._packed:
            self._packed[model_name] = pack_into_assembly(self, self._models, model_name)
        return publish(scope or self, self._packed[model_name], (model_name, *steps))

    @property
    def bucket(self) -> s3.IBucket:
        """The bucket that multi-model endpoints load from; made, and filled at deployment, on first need."""
        if self._bucket is None:
            self._bucket = self._make_bucket()
        return self._bucket

    @property
    def model_data_url(self) -> str:
        """``s3://<bucket>/<prefix>``: what a multi-model endpoint is given."""
        return f"s3://{self.bucket.bucket_name}/{self.prefix}"

    def sync(self) -> ModelSync:
        """What places the archives at deployment; whoever loads them has to depend on it."""
        if self._sync is None:
            archives = {file: self.archive_of(name) for name, file in self.target_models.items()}
            self._sync = ModelSync(
                self,
                "Sync",
                bucket=self.bucket,
                prefix=self.prefix,
                archives=archives,
                remove_on_delete=self._removes_archives,
            )
        return self._sync

    def read_statements(self) -> list[iam.PolicyStatement]:
        """What a multi-model endpoint's role has to be allowed: the archives, and to see which are there."""
        bucket = self.bucket
        statements = [
            iam.PolicyStatement(
                sid="LoadModels",
                actions=["s3:GetObject"],
                resources=[bucket.arn_for_objects(f"{self.prefix}*")],
            ),
            iam.PolicyStatement(
                sid="ListModels",
                actions=["s3:ListBucket"],
                resources=[bucket.bucket_arn],
                conditions={"StringLike": {"s3:prefix": [f"{self.prefix}*"]}},
            ),
        ]
        if bucket.encryption_key is not None:
            statements.append(
                iam.PolicyStatement(
                    sid="DecryptModels", actions=["kms:Decrypt"], resources=[bucket.encryption_key.key_arn]
                )
            )
        return statements

    def _make_bucket(self) -> s3.Bucket:
        has_key = self._encryption_key is not None
        return s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.KMS if has_key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=self._encryption_key,
            bucket_key_enabled=True if has_key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            removal_policy=self._removal_policy,
        )


def check_repository(models: ModelRepository, target: Target | None = None) -> list[Finding]:
    """The warnings of a check; errors that packing does not mend raise ``RepositoryError``, all at once."""
    report = models.check(target)
    errors = errors_left_by_packing(models, report)
    if errors:
        raise RepositoryError(str(models.path), errors)
    return list(report.warnings)


def annotate(construct: Construct, findings: Iterable[Finding]) -> None:
    """Show findings at synth; each can be acknowledged by its code."""
    annotations = Annotations.of(construct)
    for finding in findings:
        annotations.add_warning_v2(f"constructs-triton:{finding.code}", str(finding))


def _check_prefix(prefix: str) -> None:
    if is_concrete(prefix) and not (prefix.endswith("/") and not prefix.startswith("/")):
        raise InvalidValueError(
            f'prefix: must end with "/" and not begin with it, got "{prefix}"; write "{prefix.strip("/")}/"'
        )
