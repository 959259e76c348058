"""`bough kube schedule`: a scheduler for any pods, PodGroups and Queues of a cluster.

The scheduler keeps a snapshot in step with its watches; the core plans on it; the decisions are
sent to the apiserver, and gangs that wait are told why. In reading order:

scheduler                    the whole process: waits for the Lease, leads, answers questions
leadership_term              one term as leader: listen, plan, carry out, repeat
pace                         how long the loop pauses between two plans
cluster                      what the watches report, as a snapshot; unchanged objects stay the same
pod_view                     pods as last reported, and what was decided about them since
pods_without_gang            pods that belong to no gang: what they hold on each node
gang_maker                   makes one gang from a PodGroup and its pods, or from a single pod
snapshot_parts               nodes and KAI's Queues as the quota tree, rebuilt where they changed
kueue_tree                   the same for Kueue's Cohorts and ClusterQueues
decisions                    what was decided about gangs, and what an earlier leader left half done
decision_records             ConfigMaps in which decisions are recorded before the first bind
binder                       sends binds, gang by gang, several requests in parallel
evictor                      evicts pods, as far as disruption budgets allow
request_threads              the threads with which binder, evictor and reporter send requests
reporter                     writes statuses, conditions and events when there is news
gang_sentences               the sentence that explains each gang
status_text                  conditions, counts and amounts in the form that status fields have
queue_totals                 what the gangs of each queue hold and ask for, for the status of Queues
lease                        which of several schedulers decides
counters                     the scheduler's own metrics
http_listener                health, metrics and questions over HTTP
questions                    answers why something waits, and what the queues have
scheduler_client             the client side of that: finds the scheduler that leads, and asks it
install                      rights and a Deployment, as YAML
custom_resource_definitions  PodGroup, Queue and Topology, as CustomResourceDefinitions
kinds                        the kinds of objects that are watched and written
"""
