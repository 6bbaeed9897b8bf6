"""The permissions of roles: how long they are, and how an update replaces them."""
