"""Workflows, as people write them.

Text goes in by `workflow.read_workflow`; a spec, the gangs as written and problems come out.

templates       templates, before they are YAML
inline_files    local files that are sent along
write_workflow  a workflow as text again
strict_osmo     what OSMO would refuse and Bough would not
workflow        the whole file, and the order of its groups
array           how often it is there, and what differs
group           one group, and its gang
task            one task
resources       what tasks ask for, and their topology
values          names, labels, paths, URLs
"""
