"""`bough why`: the certificate of one workload and, on request, what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bough.api.file_answers import EvictionAnswer, FileWhyAnswer, GrowthAnswer
from bough.core.explain.certificate import certificate
from bough.core.explain.evictions import eviction_certificate
from bough.core.explain.growth import explain_growth
from bough.core.explain.remedies import remedies as find_remedies
from bough.errors import Invalid, NotFound
from bough.formats.certificates import certificate_answer, plain, remedy_list
from bough.model.words import suggest
from bough.tools.file_problems import problem_answers
from bough.tools.load_snapshot import load_scene
from bough.tools.remedy_sources import source_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.model.snapshot import Snapshot


def why(
    paths: Iterable[str],
    workload: str,
    *,
    remedies: bool = False,
    policy: str | None = None,
    now_ms: int = 0,
    lenient: bool = False,
) -> FileWhyAnswer:
    """Why a workload is where it is; whether and why it is evicted; what would help."""
    scene = load_scene(paths, policy=policy, now_ms=now_ms, lenient=lenient)
    name = _find(scene.snapshot, workload)
    found = certificate_answer(certificate(scene.snapshot, scene.policy, name))
    if found is None:
        raise NotFound(f"there is no workload called {name}")
    evicted = eviction_certificate(scene.snapshot, scene.policy, name)
    wanted = explain_growth(scene.snapshot, scene.policy, name)
    helpful = None
    if remedies:
        source = source_of(scene.snapshot, scene.written)
        searched = find_remedies(scene.snapshot, scene.policy, name, source=source)
        helpful = remedy_list(searched)
    return FileWhyAnswer(
        certificate=found,
        eviction=msgspec.convert(plain(evicted), EvictionAnswer | None),
        growth=msgspec.convert(plain(wanted), GrowthAnswer | None),
        remedies=helpful,
        problems=problem_answers(scene.problems),
    )


def _find(snapshot: Snapshot, name: str) -> str:
    """The full name of a workload; the namespace can be left out if only one fits."""
    known = [gang.name for row in snapshot.gangs.values() for gang in row]
    if name in known:
        return name
    ending = [each for each in known if each.endswith(f"/{name}")]
    if len(ending) > 1:
        raise Invalid(f"{name} may mean {' or '.join(sorted(ending))}; write it out")
    if ending:
        return ending[0]
    raise NotFound(f"there is no workload called {name}{suggest(name, known)}")
