"""`bough kube group`, also part of `bough kube schedule`: makes PodGroups from users' workloads.

The pods of Jobs, JobSets, LeaderWorkerSets, RayClusters, PyTorchJobs and Grove's PodGangs are put
into a PodGroup that is made from their owner. In reading order:

grouper       the loop: follows pods, owners and PodGroups, and writes what is missing
pod_grouping  for one pod: its PodGroup, or that it is a gang of one, or why it waits
owner_gangs   what each kind of owner needs: Job, JobSet, LeaderWorkerSet, RayCluster, PyTorchJob
job_progress  what the Jobs of a JobSet have done already
grove         what a PodGang of Grove needs
owner_chain   from a pod up to its topmost owner
owner_view    owners as last reported; owners of other kinds are read on demand
manifest      the PodGroup to write, and whether an existing one differs from it
command       `bough kube group` as a process
kinds         the kinds of objects that are followed and written
"""
