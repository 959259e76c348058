"""Tests on a real apiserver with nodes that are made up.

bed          builds and starts etcd, kube-apiserver and kwok
scheduler    tests of `bough kube schedule`
kai          tests of servers that let KAI decide: queues that follow, random histories
client       tests of the bed itself, of `bough.kube`, and of the rights in deploy/
rights       a service account with exactly these rights
waiting      patience with a cluster
served       a server on a bed, and the stories of processes told of pods
kills        a server that is killed at random, judged by the log of the apiserver
soak_kills   the same for far longer, which `make soak` runs
pods         pods and launches for tests that need no cluster
"""
