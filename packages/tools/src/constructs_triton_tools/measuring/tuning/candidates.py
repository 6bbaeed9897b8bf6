"""What a search changes in the configuration of a model, and within which limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

#: The largest batch that is tried.
LARGEST_BATCH = 128


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings of one model that a search changes.

    Args:
        instances: Instances of the model; with GPUs, on each GPU.
        batch: Largest batch that the dynamic batcher builds; 1 if the model has no dynamic
            batching.
        delay_microseconds: How long the dynamic batcher waits for more requests.
        parameters: Parameters of the backend by name, such as ``intra_op_thread_count``.
    """

    instances: int = 1
    batch: int = 1
    delay_microseconds: int = 0
    parameters: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        batching = "no dynamic batching"
        if self.batch > 1:
            batching = f"batches up to {self.batch}"
            wait = self.delay_microseconds / 1000
            batching += f" with a wait of {wait:g} ms" if wait else " without waiting"
        instances = f"{self.instances} instance{'s' if self.instances > 1 else ''}"
        parameters = [f"{name} {value}" for name, value in self.parameters]
        return ", ".join([instances, batching, *parameters])

    @property
    def complexity(self) -> tuple[int, int, int]:
        """The order from simple to complex: instances need memory, a wait adds latency."""
        return self.instances, self.delay_microseconds, self.batch

    def with_parameter(self, name: str, value: str) -> ModelSettings:
        """Return the settings with another value of a parameter.

        Args:
            name: Name of the parameter.
            value: Its value.
        """
        return replace(
            self, parameters=tuple(sorted({**dict(self.parameters), name: value}.items()))
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration: the settings of each model that is searched, by the names of the models.

    Args:
        models: Name and settings of each model.
    """

    models: tuple[tuple[str, ModelSettings], ...]

    @classmethod
    def of(cls, **models: ModelSettings) -> Candidate:
        """Return a candidate with these settings."""
        return cls(tuple(models.items()))

    def __str__(self) -> str:
        if len(self.models) == 1:
            [(_, settings)] = self.models
            return str(settings)
        return "; ".join(f"{name}: {settings}" for name, settings in self.models)

    def __getitem__(self, model: str) -> ModelSettings:
        return dict(self.models)[model]

    def with_settings(self, model: str, settings: ModelSettings) -> Candidate:
        """Return the candidate with other settings of one model.

        Args:
            model: Name of the model.
            settings: Its settings.
        """
        changed = []
        for name, old in self.models:
            changed.append((name, settings if name == model else old))
        return Candidate(tuple(changed))

    def describe(self, present: Candidate) -> str:
        """Describe the candidate; of several models only those that differ from the present ones.

        Args:
            present: The present configuration.
        """
        if len(self.models) == 1 or self == present:
            return str(self)
        changed = [(name, settings) for name, settings in self.models if settings != present[name]]
        return "; ".join(f"{name}: {settings}" for name, settings in changed)

    @property
    def complexity(self) -> tuple[int, ...]:
        """The order from simple to complex, summed over the models."""
        return tuple(
            map(sum, zip(*(settings.complexity for _, settings in self.models), strict=True))
        )


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The limits of the search in one model.

    Args:
        most_instances: Highest number of instances.
        most_batch: Largest batch; 1 if the model cannot batch.
        least_batch: Smallest ``max_batch_size``: a step must allow the batches of its ensemble.
        delays_microseconds: Delays to try after a batch has won.
        parameters: Values to try of each parameter of the backend.
        instance_parameters: Instances with the name and the value of a parameter, such as two
            instances of one thread each.
    """

    most_instances: int
    most_batch: int = LARGEST_BATCH
    least_batch: int = 1
    delays_microseconds: tuple[int, ...] = ()
    parameters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    instance_parameters: tuple[tuple[int, str, str], ...] = ()

    def __str__(self) -> str:
        parts = [f"1 to {self.most_instances} instances"]
        if self.most_batch > 1:
            delays = ", ".join(f"{delay / 1000:g}" for delay in self.delays_microseconds)
            parts += [f"batches up to {self.most_batch}", f"waits of 0, {delays} ms"]
        parts += [f"{name} {', '.join(values)}" for name, values in self.parameters]
        if self.instance_parameters:
            parts.append("threads for each number of instances")
        return "; ".join(parts)

    def contains(self, settings: ModelSettings) -> bool:
        """Whether the settings are within the limits."""
        fits = settings.batch == 1 or self.least_batch <= settings.batch <= self.most_batch
        return fits and 1 <= settings.instances <= self.most_instances
