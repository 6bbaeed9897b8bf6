"""Lambda functions behind custom resources."""
