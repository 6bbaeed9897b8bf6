"""What a synthesized template serves, and from where: models in S3, who calls them,
the graph of services.
"""
