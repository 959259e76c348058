"""`bough kube webhook`: says at once what is wrong with objects of a cluster, before they are kept.

An apiserver sends each object that is made or changed, and is told whether it may be kept, with the
sentences that `bough gang check` and `bough quota check` have for it. In reading order:

serving     answers an apiserver over TLS, until told to stop
reviews     AdmissionReview: what was sent, and the answer
checks      what is wrong with an object; the rules themselves are in the core
lookups     what else of the cluster a check looks at
install     a Deployment with its rights, and the configuration of an apiserver, as YAML

Nothing depends on it: where it does not answer, objects are kept, and what is wrong with them is
the reason for which they wait.
"""
