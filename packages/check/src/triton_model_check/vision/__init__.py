"""Writes ensembles that take pictures: decoding, a network of the user's, and an answer that reads
at once.

The road: ``onnx_network`` reads the file, ``forms`` recognizes what its outputs mean, and
``task_models`` writes the folders of the models. ``code`` has the Python models as they are
written into the user's repository.
"""
