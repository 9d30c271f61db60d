"""``isolitmus explore``: random litmus tests, by the model and by real Delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.cli.output import print_json, progress, refuse_other_engine, say
from isolitmus.model.errors import IsolitmusError, near
from isolitmus.model.exploration import EACH, KINDS, batches
from isolitmus.specs.exploration_file import Exploration

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["explore"]


def explore(kind: str, *, count: int, seed: int, evidence: Path | None, as_json: bool) -> int:
    """Exit status 1 if the engine did, in some test, what the model does not say; else 0."""
    if kind not in KINDS:
        raise IsolitmusError(f"no random tests '{kind}'{near(kind, KINDS)}")
    if count < 1:
        raise IsolitmusError(f"--count is {count}; a whole number from 1 is wanted")
    if seed < 0:
        raise IsolitmusError(f"--seed is {seed}; a whole number from 0 is wanted")
    known = Exploration() if evidence is None else Exploration.read(evidence)
    asked = list(batches(kind, seed, count))
    if not all(batch in known for batch in asked):
        from isolitmus.conformance.agreement import TESTS
        from isolitmus.conformance.agreement import explore as carry_out
        from isolitmus.conformance.session import open_session
        from isolitmus.conformance.tables import PROTOCOLS

        with open_session() as session, progress(f"explore {kind}") as tell:
            refuse_other_engine(evidence, known.engine_version, session.version)
            known.engine_version = session.version
            for first, batch in zip(range(0, count, EACH), asked, strict=True):
                if batch not in known:

                    def said(k: int, first: int = first) -> None:
                        tell(f"{first + k:,} of {count:,} tests")

                    found = carry_out(
                        TESTS[kind](),
                        batch.count,
                        batch.seed,
                        session,
                        protocols=tuple(PROTOCOLS),
                        progress=said,
                    )
                    if found.mismatch is not None:
                        say(f"# tests {kind}, seed {batch.seed}: model and engine differ")
                        say(str(found.mismatch))
                        return 1
                    known.add(found.batch(kind))
                    if evidence is not None:
                        known.write(evidence)
    carried_out = [known.of(batch) for batch in asked]
    if as_json:
        print_json([batch.to_json() for batch in carried_out])
        return 0
    unsaid = sum(batch.unsaid or 0 for batch in carried_out)
    seeds = f"seed {seed}" if len(asked) == 1 else f"seeds {seed} to {asked[-1].seed}"
    say(
        f"{count - unsaid:,} random tests ({kind}, {seeds}) on {known.engine_version}: all as predicted."
    )
    if unsaid:
        say(
            f"Of {unsaid:,} more the model says nothing: a condition fails in one plan, not in the next."
        )
    return 0
