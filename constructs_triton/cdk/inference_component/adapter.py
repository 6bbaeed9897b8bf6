"""``LoraAdapter``: an adapter of a language model,
which the container of a base component loads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import NoReturn

from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.inference_component.component_base import InferenceComponentBase
from constructs_triton.cdk.inference_component.component_endpoint_base import host_of
from constructs_triton.cdk.inference_component.component_names import generated_name, referring_name
from constructs_triton.cdk.inference_component.created_component import (
    CreatedInferenceComponent,
    fixed_name,
)
from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys, check_regions
from constructs_triton.cdk.permissions.places import check_places
from constructs_triton.cdk.permissions.role_permissions import removed_after_error
from constructs_triton.cdk.permissions.s3_conditions import decrypt_statements, in_own_account
from constructs_triton.cdk.permissions.statements import Statement, allow
from constructs_triton.cdk.repository.archive_assets import StackAssets
from constructs_triton.cdk.repository.asset_bucket_key import asset_keys
from constructs_triton.cdk.repository.loaded_models import UncompressedModels
from constructs_triton.cdk.repository.model_repository import annotate
from constructs_triton.cdk.repository.model_source import ModelSource, stored_models
from constructs_triton.cdk.validation.property_types import KEY, check_has, check_type, shown
from constructs_triton.cdk.validation.unique_names import check_unique_name, register_name
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.findings import Finding
from constructs_triton_core.limit_checks import check_name
from constructs_triton_core.tokens import is_token
from constructs_triton_core.untrusted.regular_files import read_json
from triton_model_check.model_repository.packing import pack_folder

AdapterSource = str | PathLike[str] | ModelSource

# github aws/model-hosting-container-standards docs/sagemaker/05_lora_adapter_management.md (vLLM),
# and deepjavalibrary/djl-serving vllm_user_guide.md (LMI).
_VLLM = ("SM_VLLM_ENABLE_LORA", "VLLM_ALLOW_RUNTIME_LORA_UPDATING")
_LMI = ("OPTION_ENABLE_LORA",)
# github vllm-project/vllm vllm/config/lora.py: MaxLoRARanks, and the default of max_lora_rank.
_MAX_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
_DEFAULT_MAX_RANK = "16"
# What PEFT's save_pretrained writes.
_CONFIG = "adapter_config.json"
_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")


class LoraAdapter(InferenceComponentBase):
    """An adapter on a base component, created by ``ContainerInferenceComponent.add_adapter``.

    It has a name, grants and metrics of its own, and uses the copies of its base: it reserves
    nothing and does not scale. New files update it in place.

    Args:
        base: The component that has the base model.
        id: Id of the construct below the base.
        source: Where the files of the adapter are.
        environment: Environment variables of the adapter.
        inference_component_name: Name of the component. ``None``: one is generated.
        asset_encryption_key: Key of the bucket of assets, if the files are uploaded by the CDK.
    """

    def __init__(
        self,
        base: CreatedInferenceComponent,
        id: str,
        *,
        source: AdapterSource,
        environment: Mapping[str, str],
        inference_component_name: str | None,
        asset_encryption_key: kms.IKey | None,
    ) -> None:
        _check_source(source)
        if inference_component_name is not None:
            check_name(
                "inference_component_name",
                inference_component_name,
                limits.INFERENCE_COMPONENT_NAME,
            )
        check_unique_name(base, id, "inference_component_name", inference_component_name)
        _check(f"{base.node.path}/{id}", source, environment)
        stored = stored_models(source) if isinstance(source, ModelSource) else None
        findings = [] if stored is None else check_places(base, stored.places("source"))
        findings += _check_key(base, source, asset_encryption_key)
        if inference_component_name is not None:
            findings.append(fixed_name(inference_component_name))

        super().__init__(base, id)
        self._base = base
        self._endpoint = base.endpoint
        with removed_after_error(self):
            url, statements = self._place(source, asset_encryption_key)
            permissions = host_of(base.endpoint).role.permit(base, statements)

        self._component = self._make_component(inference_component_name, url)
        self.node.default_child = self._component
        if permissions is not None:
            self._component.node.add_dependency(permissions)
        self._inference_component_arn = self._component.attr_inference_component_arn
        self._inference_component_name = referring_name(
            inference_component_name, self._inference_component_arn
        )
        annotate(self, findings)
        register_name(self, "inference_component_name", inference_component_name)

    @property
    def cfn_inference_component(self) -> sagemaker.CfnInferenceComponent:
        """The ``AWS::SageMaker::InferenceComponent``, also ``node.default_child``."""
        return self._component

    @property
    def log_group_name(self) -> str:
        """The name of the log group of the base component, whose containers load the adapter."""
        return self._base.log_group_name

    def auto_scale_copy_count(self, *, min_capacity: float, max_capacity: float) -> NoReturn:  # noqa: ARG002
        """Not supported: an adapter uses the copies of its base.

        Args:
            min_capacity: Not used.
            max_capacity: Not used.

        Raises:
            InvalidValueError: always.
        """
        raise InvalidValueError(
            f"{self.node.path}: an adapter uses the copies of its base component; call "
            f"auto_scale_copy_count of {self._base.node.path}"
        )

    def _make_component(
        self, name: str | None, artifact_url: str
    ) -> sagemaker.CfnInferenceComponent:
        """Create the component, without a variant and requirements: those are of the base."""
        # A new base needs a new adapter, so the logical id depends on it: no source says that an
        # update can change the base.
        base_id = Stack.of(self).get_logical_id(self._base.cfn_inference_component)
        component = sagemaker.CfnInferenceComponent
        return component(
            self,
            f"Adapter{hashlib.sha256(base_id.encode()).hexdigest()[:8]}",
            inference_component_name=generated_name(self, base_id) if name is None else name,
            endpoint_name=self._base.endpoint.endpoint_name,
            specification=component.InferenceComponentSpecificationProperty(
                base_inference_component_name=self._base.inference_component_name,
                container=component.InferenceComponentContainerSpecificationProperty(
                    artifact_url=artifact_url
                ),
            ),
        )

    def _place(
        self, source: AdapterSource, asset_key: kms.IKey | None
    ) -> tuple[str, Sequence[Statement]]:
        """Return the address of the archive, and the permissions to read it."""
        if isinstance(source, ModelSource):
            stored = stored_models(source)
            assert stored is not None, "checked before"
            location = stored.locate("", self)
            return location.url, location.read_statements

        assets = StackAssets(self)
        archive = pack_folder(Path(fspath(source)), assets.directory)
        asset = assets.add_archive(archive, (self.node.id,))
        conditions = in_own_account(self, asset.bucket_name)
        keys = asset_keys(self, asset.bucket_name, [asset_key])
        return asset.model_data_url, [
            allow("LoadModel", ["s3:GetObject"], [asset.object_arn], conditions),
            *decrypt_statements("DecryptModel", *keys),
        ]


def _check_source(source: object) -> None:
    """Check that the files of the adapter are given, and where they are."""
    if source is None:
        raise InvalidValueError(
            'source: is required, got None; write for example "adapters/german"'
        )
    check_type("source", source, ((str, PathLike, ModelSource), '"adapters/german"'))
    if is_token(source):
        raise InvalidValueError(
            f"source: must be a path that is known at synth, got {shown(source)}; write for "
            'example "adapters/german", or ModelSource.from_bucket(bucket, "german.tar.gz")'
        )


def _check_key(
    base: Construct, source: AdapterSource, asset_encryption_key: kms.IKey | None
) -> list[Finding]:
    """Check the key of the asset bucket, in which only a folder of this machine is placed."""
    check_has("asset_encryption_key", asset_encryption_key, *KEY)
    if asset_encryption_key is None:
        return []
    if isinstance(source, ModelSource):
        raise InvalidValueError(
            "asset_encryption_key: has no effect, because the adapter is in your own bucket; "
            "remove it, and give the bucket its encryption_key"
        )
    uploaded = DataUnderKeys("uploaded archives", [("asset_encryption_key", asset_encryption_key)])
    return check_regions(base, [uploaded])


def _check(path: str, source: AdapterSource, environment: Mapping[str, str]) -> None:
    """Check that the containers of the base load adapters, and that they can load this one."""
    is_vllm = _is_on(environment, _VLLM)
    if not is_vllm and not _is_on(environment, _LMI):
        raise InvalidValueError(
            f"{path}: the containers of the base component do not load adapters while they run; "
            f'set environment={{"{_VLLM[0]}": "true", "{_VLLM[1]}": "true"}} on the base (image of '
            f'vLLM), or {{"{_LMI[0]}": "true"}} (image of LMI)'
        )
    if not isinstance(source, ModelSource):
        name = "SM_VLLM_MAX_LORA_RANK" if is_vllm else "OPTION_MAX_LORA_RANK"
        highest = environment.get(name, _DEFAULT_MAX_RANK if is_vllm else "")
        _check_rank(_rank_of(Path(fspath(source))), name, highest)
        return
    stored = stored_models(source)
    if stored is None or isinstance(stored, UncompressedModels):
        raise InvalidValueError(
            "source: SageMaker loads an adapter from one .tar.gz archive; use the path of a folder "
            "on your machine, or ModelSource.from_bucket"
        )


def _is_on(environment: Mapping[str, str], names: Sequence[str]) -> bool:
    """Whether all these variables are true, or known only at deployment."""
    for name in names:
        value = environment.get(name, "")
        if not is_token(value) and value.strip().lower() not in ("true", "1"):
            return False
    return True


def _check_rank(rank: int, name: str, highest: str) -> None:
    """Check that the base component loads adapters of a rank.

    Raises:
        InvalidValueError: its ``highest`` rank, the value of the variable ``name``, is lower.
    """
    if is_token(highest) or not highest.isdecimal() or rank <= int(highest):
        return

    fitting = [known for known in _MAX_RANKS if known >= rank]
    hint = f"train it with a rank up to {_MAX_RANKS[-1]}"
    if fitting:
        hint = f'set {name} of the base component to "{fitting[0]}"'
    raise InvalidValueError(
        f"source: the rank of the adapter must be at most {name} of the base component, {highest}, "
        f'got "r": {rank} in {_CONFIG}; {hint}'
    )


def _rank_of(folder: Path) -> int:
    """Return the rank of an adapter, after a check of its folder."""
    try:
        config = read_json(folder / _CONFIG)
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            f'source: must be a folder with {_CONFIG} of PEFT, got "{folder}" ({error}); write the '
            "path to which save_pretrained wrote the adapter"
        ) from None

    if not isinstance(config, dict):
        config = {}
    rank = config.get("r")
    kind = config.get("peft_type")
    if kind != "LORA" or type(rank) is not int or rank < 1:
        raise InvalidValueError(
            f'source: {_CONFIG} must have "peft_type": "LORA" and a rank "r", got {kind!r} and '
            f"{rank!r}; train the adapter with LoraConfig of PEFT"
        )
    if not any((folder / weights).is_file() for weights in _WEIGHTS):
        raise InvalidValueError(
            f'source: the adapter must have {" or ".join(_WEIGHTS)}, got none in "{folder}"; copy '
            "it from the folder of the training"
        )
    return rank
