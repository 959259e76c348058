"""Settings of the whole server, and the policy by which cycles decide.

- settings: limits, timeouts and intervals for workflows
- service_settings: versions of clients, and how long tokens may be valid
- label_policy: which labels workflows should have, and what is said to those without; pure
- pod_templates: what pods of a pool have beside what tasks ask for
- group_templates: objects of Kubernetes that are made for each group of a pool
- backend_tests: pods that test each node of a cluster by schedule
- resource_validations: named rules for what tasks may ask for
- template_variables: variables in them, replaced for one task; pure
- policy: the policy as configuration: show, change, roll back

In: requests of administrators. Out: rows; readers for the loop and for submissions.
"""
