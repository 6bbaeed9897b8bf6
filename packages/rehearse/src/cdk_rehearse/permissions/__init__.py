"""Who may do what: IAM policies, resource policies, and what each operation requires."""
