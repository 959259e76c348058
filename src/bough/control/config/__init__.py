"""Settings of the whole server, and the policy by which cycles decide."""
