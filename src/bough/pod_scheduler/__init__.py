"""`bough kube schedule`: a scheduler for any pods, PodGroups and Queues of a cluster.

What is watched becomes a snapshot that is kept in step; the core plans; what it decides is carried
out with requests to the apiserver, and what waits is told why. In reading order:

scheduler      everything is made here: waits for the Lease, leads, answers
session        one leadership: listen, plan, carry out, and again
cluster        what is watched as a snapshot, of which unchanged objects stay the same objects
pod_view       pods as last heard of, and what was decided about them since
strangers      pods that no gang has: what they hold on each node
gang_maker     one gang of a PodGroup and its pods, or of a pod on its own
quota_frame    queues and nodes as the quota tree, made anew only where they changed
kueue_tree     the same of Cohorts and ClusterQueues of Kueue
decisions      what is written on a PodGroup before its first pod is bound, and read by the next
binder         binds, gang by gang, some requests at once
evictor        tells pods to end, as far as disruption budgets allow
workers        threads that send what the three others have, some requests at once
reporter       statuses, conditions and events, of what is news
sentences      the sentence about each gang
status_text    conditions, counts and amounts as objects have them
lease          which of several schedulers decides
counters       what it counts of itself
listener       health, metrics and questions over HTTP
questions      why something waits, and what queues have
asking         the other side: finds the scheduler that decides, and asks it
install        rights and a Deployment, as YAML
definitions    PodGroup, Queue and Topology, as CustomResourceDefinitions
kinds          what is watched and written
"""
