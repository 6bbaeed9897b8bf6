"""The Lambda functions of custom resources: how they run, and how they answer CloudFormation."""
