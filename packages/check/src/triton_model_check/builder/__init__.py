"""Model configurations written in Python: typed values over Triton's own messages.

:class:`ModelConfig` and the messages inside it have the names of ``model_config.proto``,
:class:`Ensemble` connects steps, and the backend classes know what each backend requires. Import
all of them from ``triton_model_check.model_config``.
"""
