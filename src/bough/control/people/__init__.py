"""Users, roles, tokens, credentials, and what each is allowed to do."""
