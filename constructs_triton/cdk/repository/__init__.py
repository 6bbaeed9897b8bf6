"""The model repository construct, its sources and its archives in S3."""
