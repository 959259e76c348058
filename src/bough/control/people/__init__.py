"""Users, roles, tokens, credentials, and what each is allowed to do.

- access: whether an actor may do something; who sends a request
- users: users and roles
- role_bindings: roles and policies, bound to the identities of pools
- administrators: the first administrator, the last one, and recovery
- tokens: personal access tokens: shown once, kept as a hash
- profiles: the profile of one user
- credentials: the credentials of users, encrypted
- pass_key: the key that signs passes, encrypted
- key_rotation: encrypts everything with a new key

In: requests. Out: rows, actors, refusals.
"""
