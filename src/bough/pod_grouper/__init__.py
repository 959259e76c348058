"""`bough kube group`, also a part of `bough kube schedule`: PodGroups made from what users have.

Pods of Jobs, JobSets, LeaderWorkerSets, RayClusters, PyTorchJobs and Grove's PodGangs are joined to
a PodGroup that is made of their owner. In reading order:

grouper        the loop: hears of pods, owners and PodGroups, and writes what is missing
verdict        one pod: which PodGroup it belongs to, or that it is a gang of one, or why it waits
workloads      what each kind of owner means: Job, JobSet, LeaderWorkerSet, RayCluster, PyTorchJob
grove          what a PodGang of Grove means
chain          from a pod up to its topmost owner
owner_view     owners as last heard of; those that are not followed are asked for
manifest       a PodGroup as it is written, and whether one differs from it
command        `bough kube group` from its start to its end
kinds          what is followed and written
"""
