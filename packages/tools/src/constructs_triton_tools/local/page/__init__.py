"""One web page on loopback that shows a local run: models, figures, logs,
and a form to call each model.
"""
