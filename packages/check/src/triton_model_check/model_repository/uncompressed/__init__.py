"""Models as files, without an archive: SageMaker's rules for names,
and the copies that the CDK uploads.
"""
