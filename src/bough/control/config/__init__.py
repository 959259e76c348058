"""Settings of the whole server, and the policy by which cycles decide.

- settings: limits, timeouts and intervals for workflows
- pod_templates: what pods of a pool have beside what tasks ask for
- template_variables: variables in them, replaced for one task; pure
- policy: the policy as configuration: show, change, roll back

In: requests of administrators. Out: rows; readers for the loop and for submissions.
"""
