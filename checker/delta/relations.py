"""What a frame of Delta has besides: where footprints meet, which commits clash, and of what kind each is."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from isolitmus.checker.delta.conflicts import (
    added_where,
    adds_meet_reads,
    apps_read,
    rebase,
    removes_meet_reads,
    removes_meet_removes,
    same_domains,
)
from isolitmus.checker.delta.statement_kinds import KINDS
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.vocabulary import relations_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.model.delta.footprint import Footprint
    from isolitmus.model.execution import Event
    from isolitmus.model.frame import FrameBuilder

__all__ = ["FLAGS", "LEVEL_SETS", "RELATIONS", "add_relations"]

RELATIONS = relations_of("delta")
VECTORS = "delta.enableDeletionVectors"


LEVEL_SETS = {
    "SetSerializable": "serializable",
    "SetWriteSerializable": "writeserializable",
}
"""The sets of those on tables that are set to a level, each with the level in lower case."""


def _is_set_to(level: str, footprint: Footprint) -> bool:
    return footprint.schema.properties.get(LEVEL_KEY, "").lower() == level


def _is(kind: str, footprint: Footprint) -> bool:
    return kind in footprint.kinds


FLAGS: dict[str, Callable[[Footprint], bool]] = {
    "Blind": lambda f: f.claims_blind,
    "NoData": lambda f: not f.data_change,
    "ChangesData": lambda f: f.changes_data,
    "Empty": lambda f: f.empty,
    "Meta": lambda f: f.actions.metadata is not None,
    "Protocol": lambda f: f.actions.features is not None,
    "Marked": lambda f: f.actions.some,
    "Large": lambda f: f.settings.large,
    "Backfill": lambda f: f.settings.backfill,
    "Vectors": lambda f: f.schema.vectors,
    "Partitioned": lambda f: bool(f.schema.partitioned_by),
    "Ordering": lambda f: f.orders,
    "Default": lambda f: f.settings.default_level,
    "Identity": lambda f: f.schema.generates,
    "Clustered": lambda f: (
        bool(f.schema.clustered_by) and f.schema.properties.get(VECTORS) != "false"
    ),
    **{name: partial(_is_set_to, level) for name, level in LEVEL_SETS.items()},
    **{name: partial(_is, name) for name in KINDS},
}
"""Sets of commits, each by what puts a footprint in it."""


def add_relations(events: Sequence[Event], builder: FrameBuilder) -> None:
    """Add Delta's relations and sets to the frame of some transactions."""
    adding = _DeltaPairs(events, builder)
    adding.sets()
    adding.footprints()
    adding.clashes()


class _DeltaPairs:
    def __init__(self, events: Sequence[Event], builder: FrameBuilder) -> None:
        self.events = events
        self.builder = builder

    def sets(self) -> None:
        for i, event in enumerate(self.events):
            footprint = event.effect.footprint
            if footprint is None:
                self.builder.put("NoData", i)
                self.builder.put("Empty", i)
                continue
            for name, holds in FLAGS.items():
                if holds(footprint):
                    self.builder.put(name, i)

    def footprints(self) -> None:
        for j, loser in enumerate(self.events):
            reads = loser.effect.footprint
            if reads is None:
                continue
            for i, winner in enumerate(self.events):
                wrote = winner.effect.footprint
                if i == j or wrote is None:
                    continue
                names = {"winner": winner.name, "loser": loser.name}
                if not wrote.plain:
                    self.actions(i, j, wrote, reads)
                if adds_meet_reads(wrote, reads):
                    self.added(i, j, wrote, reads)
                if removes_meet_reads(wrote, reads):
                    both = wrote.removes & reads.files
                    file, table = min(both or wrote.removes), wrote.table
                    self.builder.add(
                        "removes-meets-reads", i, j, "removed, read",
                        **names, file=file, table=table, whole=not both,
                    )  # fmt: skip
                if removes_meet_removes(wrote, reads):
                    file, table = min(wrote.removes & reads.removes), wrote.table
                    self.builder.add(
                        "removes-meets-removes", i, j, "removed, removed",
                        **names, file=file, table=table,
                    )  # fmt: skip

    def actions(self, i: int, j: int, wrote: Footprint, reads: Footprint) -> None:
        """Conflicts that are about no file."""
        a, b = self.events[i].name, self.events[j].name
        for domain in same_domains(wrote, reads):
            self.builder.add("same-domain", i, j, "same domain", winner=a, loser=b, domain=domain)
        for app in apps_read(wrote, reads):
            self.builder.add("writes-read-app", i, j, "looked up", winner=a, loser=b, app=app)

    def clashes(self) -> None:
        """What each commit cannot take over of the commits that it missed, in the order of the log:
        what it can, it knows from then on.
        """
        written = [(e.version, i, e.name, e.effect.footprint) for i, e in enumerate(self.events)]
        writers = [
            (version, i, name, footprint)
            for version, i, name, footprint in written
            if version is not None and footprint is not None and not footprint.plain
        ]
        for j, loser in enumerate(self.events):
            reads = loser.effect.footprint
            if not writers or reads is None:
                continue
            header = reads.known
            for version, i, name, wrote in sorted(writers, key=itemgetter(0)):
                unseen = loser.read_version < version < (loser.version or version)
                if i == j or not unseen or wrote.schema.name != reads.schema.name:
                    continue
                protocol, metadata, header = rebase(wrote, reads, header)
                clashes = ("protocol-clashes", protocol), ("metadata-clashes", metadata)
                for relation, clash in clashes:
                    if clash is not None:
                        self.builder.add(
                            relation, i, j, "clash", winner=name, clash=clash, loser=loser.name
                        )

    def added(self, i: int, j: int, wrote: Footprint, reads: Footprint) -> None:
        """Where a file that the winner added meets what the loser read."""
        nouns: dict[str, object] = {}
        where = None
        if self.builder.reasons:
            nouns = {
                "winner": self.events[i].name,
                "loser": self.events[j].name,
                "table": wrote.table,
            }
            where = added_where(wrote, reads) if wrote.schema.partitioned_by else None
        if where is None:
            self.builder.add("adds-meets-reads", i, j, "added", **nouns)
        else:
            folder, predicate = wrote.schema.folder(where[0]), where[1]
            self.builder.add(
                "adds-meets-reads", i, j, "added where", **nouns, folder=folder, predicate=predicate
            )
