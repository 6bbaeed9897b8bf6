"""Lambda functions behind custom resources, shared by the features that run code at deployment."""
