"""A client of Kubernetes: what Bough needs of its API, with threads, `http.client` and msgspec.

It knows nothing of pools, queues or tasks. In reading order:

client          list, watch, create, delete, patch, bind, evict, log: one call for one request
watching        list and watch for ever, whatever fails meanwhile
pulse           whether the apiserver answers at all, also while watches are silent
objects         pods, nodes and the others, as far as their fields matter to us
failures        what the apiserver refuses, and what is lost on the way to it
connections     connections that are kept, how many requests are in flight, how long they may take
access          where the apiserver is, which authority to trust, and who we are, kept up to date
kubeconfig      access as a kubeconfig file says it, or a pod's own service account
exec_plugin     credentials that another program prints
listening       where programs of a cluster listen
back_off        how long to wait after failures in a row
"""
