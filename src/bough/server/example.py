"""An example organisation: cohorts, pools, subpools, users, workflows that run and that wait.

Made once; a server that is started again finds it as it was left.
"""

from __future__ import annotations

from bough.control.people import users
from bough.control.people.access import introduce
from bough.control.pools import cohorts, pools, subpools
from bough.control.site import Site
from bough.control.workflows import submission
from bough.control.workflows.specs import read_spec
from bough.model.access import Actor
from bough.model.workflow import Priority

#: Commands to try on it.
TRIED = ("pool list", "workflow list --all-users", "workflow why tracker-1")

#: The GPUs are counted in eighths of what there is, so that it fills a small machine and a large.
PARTS = 8

_COHORTS = {
    "research": {"description": "Models that do not exist yet"},
    "products": {"description": "What customers use"},
}
_POOLS = {
    "vision": (3, "research", "Cameras and video"),
    "language": (3, "research", "Text and speech"),
    "robots": (2, "products", "Everything that moves"),
}
_SUBPOOLS = {"vision": {"training": 2}, "language": {"pretraining": 2}}
_USERS = {
    "ada": ("osmo-vision-admin", "osmo-vision-user"),
    "ben": ("osmo-vision-user",),
    "chi": ("osmo-language-user", "osmo-robots-user"),
}
#: Who submits what: name, tasks of one part each, pool, priority.
_WORKFLOWS = (
    ("ada", "detector", 1, "vision--training", Priority.HIGH),
    ("ben", "segmenter", 1, "vision--training", Priority.NORMAL),
    ("ben", "tracker", 1, "vision--training", Priority.NORMAL),
    ("ada", "label-check", 1, "vision", Priority.NORMAL),
    ("chi", "base-model", 2, "language--pretraining", Priority.HIGH),
    ("chi", "tune", 1, "language", Priority.NORMAL),
    ("chi", "tune-wide", 1, "language", Priority.NORMAL),
    ("chi", "walker", 1, "robots", Priority.NORMAL),
    ("ben", "explore", 1, "vision", Priority.LOW),
    ("chi", "sweep", 2, "robots", Priority.LOW),
)
#: What each task does: it counts its steps, and says goodbye when it is told to end.
_SCRIPT = """\
trap 'echo "step $n: told to end"; exit 0' TERM
n=0
while true; do n=$((n + 1)); echo "step $n"; sleep 5 & wait $!; done
"""


def make_example(site: Site, gpus: int) -> None:
    """Make the organisation for so many GPUs, unless it exists."""
    part = max(1, gpus // PARTS)
    admin = Actor("admin", (site.role_names.admin, site.role_names.everybody), origin="example")
    if any(each.name in _COHORTS for each in cohorts.list_cohorts(site, admin)):
        return
    for name, fields in _COHORTS.items():
        cohorts.create_cohort(site, admin, name, fields)
    configs = {
        name: {
            "description": description,
            "cohort": cohort,
            "resources": {"gpu": {"guarantee": quota * part, "maximum": -1, "weight": 1}},
        }
        for name, (quota, cohort, description) in _POOLS.items()
    }
    pools.put_pools(site, admin, configs)
    _make_people(site, admin)
    for pool, parts in _SUBPOOLS.items():
        for name, quota in parts.items():
            subpools.create_subpool(site, admin, pool, name, quota * part)
    for user, name, tasks, pool, priority in _WORKFLOWS:
        actor = introduce(site, user, _USERS[user], "example")
        submission.submit(site, actor, pool, read_spec(_spec(name, tasks, part)), priority)


def _make_people(site: Site, admin: Actor) -> None:
    known = {user.name for user in users.list_users(site, admin)}
    for name, roles in _USERS.items():
        if name not in known:
            users.create_user(site, admin, name, roles)


def _spec(name: str, tasks: int, gpus: int) -> str:
    """Tasks that start together, each with so many GPUs."""
    script = "\n".join(f"            {line}" for line in _SCRIPT.splitlines())
    members = "\n".join(
        f"    - name: {name}-{number}\n      lead: {str(number == 0).lower()}\n"
        f"      command: [sh]\n      args: [/tmp/run.sh]\n"
        f"      files:\n      - path: /tmp/run.sh\n        contents: |\n{script}"
        for number in range(tasks)
    )
    return (
        f"workflow:\n  name: {name}\n"
        f"  resources:\n    default: {{gpu: {gpus}}}\n"
        f"  groups:\n  - name: {name}\n    tasks:\n{members}\n"
    )
