"""YAML that people write into model types; old spellings end here.

Text enters by `yaml.documents`; readers go through it with `yaml.fields`, and give model types and
a list of problems with file and line. Which values make sense is decided elsewhere.

    yaml/           text into documents and typed fields that know their lines
    kubernetes/     what objects of Kueue and KAI share: metadata, pods, nodes
    kueue/          Cohort, ClusterQueue, ResourceFlavor, LocalQueue, Workload
    kai/            PodGroup, Queue, Topology, Pod
    live/           the same objects as an apiserver sends them
    workflow/       workflows and their templates
    policy_file     the policy file
    remedy_fields   where a remedy is written in objects of KAI and Kueue
    certificates    certificates as plain data
"""
