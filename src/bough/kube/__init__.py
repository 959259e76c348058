"""A Kubernetes client: the parts of its API that Bough needs, with threads, `http.client`, msgspec.

It knows nothing about pools, queues or tasks. In reading order:

client              list, watch, create, delete, patch, bind, evict, log: one request per call
decoding            objects, pages of lists and events of watches from what the apiserver sends
watching            follows a kind for ever: lists, watches, and recovers from failures
apiserver_liveness  whether the apiserver answers at all, even while watches are silent
objects             pods, nodes and other objects, reduced to the fields that we use
failures            a request that was refused, or that got no answer
connections         a pool of connections, with limits on parallel requests and on time
heads               heads of requests and answers, written and read
access              where the apiserver is, which authority to trust, and our current credential
kubeconfig          access from a kubeconfig file, or from a pod's own service account
exec_plugin         credentials that another program prints
http_server         the HTTP server that scheduler and webhook share
back_off            how long to wait after failures in a row
"""
