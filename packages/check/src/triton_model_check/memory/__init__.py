"""How much memory the models of a server take, on each GPU and in its host."""
