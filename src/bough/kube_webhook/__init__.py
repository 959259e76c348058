"""`bough kube webhook`: reports what is wrong with an object before the cluster stores it.

An apiserver sends each object that is created or changed. The answer says whether to accept it,
in the same sentences as `bough gang check` and `bough quota check`. In reading order:

serving     answers an apiserver over TLS, until told to stop
reviews     AdmissionReview: reads the request, writes the answer
checks      what is wrong with an object; the rules themselves are in the core
lookups     what else in the cluster a check needs to know
install     a Deployment with its rights, and the webhook configuration, as YAML

Nothing depends on it: while it does not answer, objects are accepted, and what is wrong with them
becomes the reason why they wait.
"""
