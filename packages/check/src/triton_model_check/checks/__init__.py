"""The rules for models, repositories and comments, one module for each subject."""
