"""The model repositories of a stack as statements, one for each SageMaker model."""

from __future__ import annotations

from dataclasses import dataclass, field

from constructs_triton_tools.operations.adopting.members import Options
from constructs_triton_tools.operations.adopting.models import AdoptedModels, ModelReader
from constructs_triton_tools.operations.adopting.python_text import Call, call, literal, quoted
from constructs_triton_tools.operations.adopting.stack.stack_code import StackCode

_IN_BUCKET = {"bucket": "from_bucket", "files": "from_s3_prefix", "prefix": "from_archive_prefix"}


@dataclass(slots=True)
class Repositories:
    """The repositories that were added to a stack."""

    code: StackCode
    reader: ModelReader
    _found: dict[str, tuple[str, AdoptedModels] | None] = field(default_factory=dict)

    def of(self, model_name: str, instance_type: str | None) -> tuple[str, AdoptedModels] | None:
        """Return the variable of the repository of a SageMaker model, and its models."""
        if model_name not in self._found:
            self._found[model_name] = self._add(model_name, instance_type)
        return self._found[model_name]

    def _add(self, model_name: str, instance_type: str | None) -> tuple[str, AdoptedModels] | None:
        running = self.code.running
        folder = "models" if len(running.models) == 1 else f"models/{model_name}"
        models = self.reader.read(model_name, running.container(model_name), instance_type, folder)
        if models is None:
            return None
        construct_id = self.code.new_id("Models")
        options: Options = {"source": self._source(models)}
        if models.acknowledged:
            options["check"] = call("RepositoryCheck.on", acknowledge=literal(models.acknowledged))
        return self.code.add("models", call("TritonModelRepository", "self", construct_id, **options)), models

    def _source(self, models: AdoptedModels) -> Call:
        if models.kind == "package":
            return call("ModelSource.from_model_package", literal(models.place))
        if models.is_local:
            function = "from_directory" if models.kind == "directory" else "from_archive"
            return call(f"ModelSource.{function}", f"PROJECT / {quoted(models.place)}")
        bucket = self.code.bucket(models.bucket, "model", models.key_arn)
        return call(f"ModelSource.{_IN_BUCKET[models.kind]}", bucket, literal(models.place))
