"""``AsyncInferenceConfig``: requests are queued, and responses are written to S3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import aws_sns as sns

from constructs_triton.cdk.options.s3_destination import Destination, check_places, check_prefix
from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys
from constructs_triton.cdk.permissions.places import Place
from constructs_triton.cdk.permissions.statements import Statement, allow
from constructs_triton.cdk.validation.property_types import BUCKET, check_has, check_names
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.limit_checks import check_range
from constructs_triton_core.spelling import did_you_mean

_OWNER = "async_inference"
NotificationTopic = Literal["SUCCESS_NOTIFICATION_TOPIC", "ERROR_NOTIFICATION_TOPIC"]
_TOPIC = ("topic_arn", 'sns.Topic.from_topic_arn(self, "Topic", "...")')
_TOPICS = {"SUCCESS_NOTIFICATION_TOPIC": "success_topic", "ERROR_NOTIFICATION_TOPIC": "error_topic"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncInferenceConfig:
    """Makes an endpoint asynchronous. Only ``InvokeEndpointAsync`` can call it.

    ``bucket``, ``output_prefix``, ``failure_prefix``
        Where responses and failures are written. Default: ``"async/output"`` and
        ``"async/failure"``.
    ``input_bucket``, ``input_prefix``
        Where callers put their requests. Default: the same bucket and ``"async/input"``. The
        execution role and the callers (``grant_invoke_async``) get permissions for these prefixes
        only.
    ``encryption_key``
        KMS key of the responses. Default: the encryption of the bucket.
    ``previous_encryption_keys``
        Further KMS keys that requests, responses and topics may have while a key changes. S3 does
        not encrypt existing objects again. The execution role and the callers may use these keys,
        too.
    ``success_topic``, ``error_topic``
        SNS topics that receive a message for each response and each failure.
    ``include_inference_response_in``
        The topics whose messages contain the response itself, up to 128 KB.
    ``max_concurrent_invocations_per_instance``
        1 to 1000. Default: SageMaker chooses.

    Raises:
        InvalidValueError: SageMaker would refuse a value, or a value has the wrong type.
    """

    bucket: s3.IBucket
    output_prefix: str = "async/output"
    failure_prefix: str = "async/failure"
    input_bucket: s3.IBucket | None = None
    input_prefix: str = "async/input"
    encryption_key: kms.IKey | None = None
    previous_encryption_keys: Sequence[kms.IKey] = ()
    success_topic: sns.ITopic | None = None
    error_topic: sns.ITopic | None = None
    include_inference_response_in: Sequence[NotificationTopic] = ()
    max_concurrent_invocations_per_instance: float | None = None

    def __post_init__(self) -> None:
        check_places(_OWNER, self.bucket, self.encryption_key, self.previous_encryption_keys)
        for name in ("output_prefix", "failure_prefix", "input_prefix"):
            check_prefix(f"async_inference.{name}", getattr(self, name))
        if self.max_concurrent_invocations_per_instance is not None:
            check_range(
                "async_inference.max_concurrent_invocations_per_instance",
                self.max_concurrent_invocations_per_instance,
                limits.ASYNC_CONCURRENCY_PER_INSTANCE,
            )
        self._check_topics()

    def _check_topics(self) -> None:
        """Check the topics of notifications and what they contain."""
        check_has(f"{_OWNER}.input_bucket", self.input_bucket, *BUCKET)
        for name, topic in self._topics.items():
            check_has(f"{_OWNER}.{name}", topic, *_TOPIC)
        check_names(f"{_OWNER}.include_inference_response_in", self.include_inference_response_in)
        for name in self.include_inference_response_in:
            if name not in _TOPICS:
                known = " or ".join(f'"{each}"' for each in _TOPICS)
                raise InvalidValueError(
                    f"async_inference.include_inference_response_in: must contain {known}, got "
                    f'"{name}"; {did_you_mean(name, _TOPICS, "write one of them")}'
                )
            if _TOPICS[name] not in self._topics:
                raise InvalidValueError(
                    f'async_inference.include_inference_response_in: the topic of "{name}" is not '
                    f"set; set {_TOPICS[name]}, or remove the entry"
                )

    @property
    def _input(self) -> Destination:
        bucket = self.bucket if self.input_bucket is None else self.input_bucket
        return Destination(bucket, self.input_prefix, "asynchronous requests", _OWNER)

    @property
    def _output(self) -> Destination:
        return self._results(self.output_prefix)

    @property
    def _failures(self) -> Destination:
        return self._results(self.failure_prefix)

    def _results(self, prefix: str) -> Destination:
        """Return where SageMaker writes responses or failures, with the keys of the data."""
        return Destination(
            self.bucket,
            prefix,
            "asynchronous responses",
            _OWNER,
            self.encryption_key,
            self.previous_encryption_keys,
        )

    @property
    def _requests_data(self) -> DataUnderKeys:
        owner = "bucket" if self.input_bucket is None else "input_bucket"
        keys = ((f"{_OWNER}.{owner}", self._input.bucket.encryption_key),)
        return DataUnderKeys("asynchronous requests", keys, self.previous_encryption_keys, _OWNER)

    @property
    def _messages_data(self) -> DataUnderKeys:
        keys = [(f"{_OWNER}.{name}", topic.master_key) for name, topic in self._topics.items()]
        previous = self.previous_encryption_keys if keys else ()
        return DataUnderKeys("notifications", keys, previous, _OWNER)

    @property
    def _topics(self) -> dict[str, sns.ITopic]:
        """The topics that are set, by their keywords."""
        given = {name: getattr(self, name) for name in _TOPICS.values()}
        return {name: topic for name, topic in given.items() if topic is not None}

    def _publish_statements(self) -> list[Statement]:
        arns = [topic.topic_arn for topic in self._topics.values()]
        if not arns:
            return []
        publish = allow("TellAsyncTopics", ["sns:Publish"], list(dict.fromkeys(arns)))
        return [publish, *self._messages_data.write_statements("EncryptAsyncMessages")]

    def _notifications(
        self,
    ) -> sagemaker.CfnEndpointConfig.AsyncInferenceNotificationConfigProperty | None:
        if not self._topics:
            return None
        return sagemaker.CfnEndpointConfig.AsyncInferenceNotificationConfigProperty(
            success_topic=None if self.success_topic is None else self.success_topic.topic_arn,
            error_topic=None if self.error_topic is None else self.error_topic.topic_arn,
            include_inference_response_in=list(self.include_inference_response_in) or None,
        )


def async_inference_places(config: AsyncInferenceConfig) -> Iterator[Place]:
    """Yield where the buckets and the topics are."""
    for name, bucket in (("bucket", config.bucket), ("input_bucket", config.input_bucket)):
        if bucket is not None:
            yield from Place.of_bucket(f"{_OWNER}.{name}", "bucket", bucket)
    for name, topic in config._topics.items():
        yield from Place.of(f"{_OWNER}.{name}", "topic", topic, topic.topic_arn)


def async_inference_data(config: AsyncInferenceConfig) -> list[DataUnderKeys]:
    """Requests, responses and notifications with their keys."""
    return [config._requests_data, config._output.data, config._messages_data]


def async_inference_statements(config: AsyncInferenceConfig) -> list[Statement]:
    """Permissions of the execution role: read requests, write responses, publish to the topics."""
    return [
        allow("ReadAsyncInput", ["s3:GetObject"], [config._input.objects_arn]),
        *config._requests_data.read_statements("DecryptAsyncInput"),
        *config._output.write_statements("AsyncOutput"),
        *config._failures.write_statements("AsyncFailure")[:1],
        *config._publish_statements(),
    ]


def async_caller_statements(config: AsyncInferenceConfig) -> list[Statement]:
    """Permissions of a caller besides ``InvokeEndpointAsync``: write requests, read responses."""
    results = [config._output.objects_arn, config._failures.objects_arn]
    # boto3 uploads large files in parts, which needs kms:Decrypt and the permission to abort.
    upload = ["s3:AbortMultipartUpload", "s3:PutObject"]
    return [
        allow(None, upload, [config._input.objects_arn]),
        allow(None, ["s3:GetObject"], results),
        *config._requests_data.write_statements(None),
        *config._output.data.read_statements(None),
    ]


def render_async_inference(
    given: AsyncInferenceConfig,
) -> sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty:
    """Return the property of the endpoint configuration."""
    config = sagemaker.CfnEndpointConfig
    concurrency = given.max_concurrent_invocations_per_instance
    return config.AsyncInferenceConfigProperty(
        output_config=config.AsyncInferenceOutputConfigProperty(
            s3_output_path=given._output.uri,
            s3_failure_path=given._failures.uri,
            kms_key_id=given._output.key_arn,
            notification_config=given._notifications(),
        ),
        client_config=None
        if concurrency is None
        else config.AsyncInferenceClientConfigProperty(
            max_concurrent_invocations_per_instance=concurrency
        ),
    )
