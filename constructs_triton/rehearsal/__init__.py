"""A simulated AWS account in which templates, and a real ``cdk deploy``, run from bootstrap to destroy.

moto provides the services. CloudFormation is simulated here, since moto's own reports success for resources
that it skips: it resolves templates, orders resources, calls the services through boto3, runs this library's
deploy-time functions with the credentials of their roles, and rolls back.

``pip install 'constructs-triton[rehearse]'`` installs what it needs. ``__init__.pyi`` lists the public names.
Each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
