"""The code of the stand-ins. Triton's Python backend runs it in the models' Python.

The folder is copied beside the server's backends, and imports only NumPy, Triton's ``pb_utils`` and
the framework of the model. It works with Python 3.9 and newer.
"""
