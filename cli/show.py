"""``isolitmus show``: the catalogue, a line each, or one thing in full."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.finds import distinct, of_portrait
from isolitmus.checker.portrait import portray
from isolitmus.checker.telling.draw import denotations, frame_lines, timeline
from isolitmus.checker.telling.portrait_words import portrait_lines
from isolitmus.checker.telling.sight import look
from isolitmus.cli.carrying import carry_found, refuse
from isolitmus.cli.output import named, print_json, progress, say
from isolitmus.conformance.engines import ENGINES
from isolitmus.model.errors import IsolitmusError, UnknownName, near
from isolitmus.model.litmus import Litmus
from isolitmus.specs import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.checker.portrait import Portrait
    from isolitmus.checker.telling.sight import Sight
    from isolitmus.model.litmus import HistoryTest
    from isolitmus.model.spec import Spec

__all__ = ["show"]


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    kind: str
    title: str
    source: str
    text: str
    picture: str = ""
    test: Litmus | HistoryTest | None = None
    sight: Sight | None = None
    portrait: Portrait | None = None
    replays: tuple[dict[str, object], ...] | None = None

    def to_json(self) -> dict[str, object]:
        keys = ("name", "kind", "title", "source", "text")
        document: dict[str, object] = {key: getattr(self, key) for key in keys}
        if self.sight is not None:
            document["frame"] = self.sight.frame.to_json()
            document["values"] = [
                {"statement": v.statement, "name": v.name, "items": [list(i) for i in v.items]}
                for v in self.sight.values
            ]
        if self.portrait is not None:
            document["portrait"] = self.portrait.to_json()
        if self.replays is not None:
            document["replays"] = list(self.replays)
        return document


def show(names: list[str], spec: str | None, engine: str | None, *, as_json: bool) -> int:
    """Without a name everything, with a kind (``levels``) all of it, with names each in full.

    A protocol in full has its portrait; with ``engine`` every history in that is carried out, and the exit
    status is 1 if a run is not as the model predicts it. A litmus test in full has its frame; with ``spec``,
    instead of its text, what that spec sees of it.
    """
    asked = None if spec is None else catalogue.spec(spec)
    carriers = [] if engine is None else named("engine", engine)
    refuse(carriers)
    entries: list[_Entry] = []
    full = False
    for name in names or KINDS:
        if name in KINDS:
            entries += [KINDS[name][1](known) for known in KINDS[name][0]()]
        else:
            entries.append(_portrayed(name, _with_frame(_one(name), asked)))
            full = True
    if asked is not None and not all(entry.sight for entry in entries):
        raise IsolitmusError(
            "--spec shows litmus tests as that spec sees them; name litmus tests only"
        )
    if carriers and not all(entry.portrait for entry in entries):
        raise IsolitmusError(
            "--engine carries out what portraits of protocols show; name protocols only, and litmus tests"
            " to isolitmus run"
        )
    failed = 0
    for k, entry in enumerate(entries if full else ()):
        if k and not as_json:
            say()
        if not as_json:
            _print(entry)
        if carriers:
            entries[k], differing = _carried(entry, carriers, quiet=as_json)
            failed += differing
    if as_json:
        print_json([entry.to_json() for entry in entries])
    elif not full:
        _print_list(entries)
    return 1 if failed else 0


def _one(name: str) -> _Entry:
    for names, read in KINDS.values():
        if name in names():
            return read(name)
    if name.endswith(".cat"):
        return _spec("protocol" if catalogue.spec(name).promises else "level")(name)
    if name.endswith(".toml"):
        return _litmus(name)
    known = [known for names, _ in KINDS.values() for known in names()]
    raise UnknownName(f"nothing in the catalogue is called '{name}'{near(name, [*known, *KINDS])}")


def _with_frame(entry: _Entry, spec: Spec | None) -> _Entry:
    return entry if entry.test is None else replace(entry, sight=look(entry.test, spec))


def _portrayed(name: str, entry: _Entry) -> _Entry:
    """A protocol with its portrait."""
    if entry.kind != "protocol":
        return entry
    with progress(f"show {entry.name}") as tell:
        return replace(entry, portrait=portray(catalogue.protocol(name), tell))


def _carried(entry: _Entry, carriers: list[str], *, quiet: bool) -> tuple[_Entry, int]:
    """A protocol with every history of its portrait carried out, and how many runs are not as predicted."""
    assert entry.portrait is not None
    tests = list(distinct(of_portrait(entry.portrait)))
    done = carry_found(tests, carriers, quiet=quiet)
    return replace(entry, replays=tuple(done.documents)), done.failed


def _spec(kind: str) -> Callable[[str], _Entry]:
    def read(name: str) -> _Entry:
        spec = catalogue.spec(name)
        return _Entry(spec.name, kind, spec.title, spec.source, spec.text, _axioms(spec))

    return read


def _axioms(spec: Spec) -> str:
    words = {
        "acyclic": "no cycle in",
        "irreflexive": "nothing related to itself by",
        "empty": "nothing related by",
    }
    return "\n".join(f"{axiom.name}: {words[axiom.test]} {axiom.expr}" for axiom in spec.axioms)


def _litmus(name: str) -> _Entry:
    test = catalogue.litmus(name)
    picture = timeline(test.schedule) if isinstance(test, Litmus) else ""
    return _Entry(test.name, "litmus", test.title, test.source, test.text, picture, test)


def _scope(name: str) -> _Entry:
    scope = catalogue.scope(name)
    return _Entry(scope.name, "scope", scope.title, scope.source, scope.text)


def _engine(name: str) -> _Entry:
    return _Entry(name, "engine", ENGINES[name], "", ENGINES[name])


KINDS: dict[str, tuple[Callable[[], list[str]], Callable[[str], _Entry]]] = {
    "levels": (catalogue.levels, _spec("level")),
    "protocols": (catalogue.protocols, _spec("protocol")),
    "litmus": (catalogue.litmus_tests, _litmus),
    "scopes": (catalogue.scopes, _scope),
    "engines": (lambda: sorted(ENGINES), _engine),
}


def _print_list(entries: list[_Entry]) -> None:
    width = max((len(entry.name) for entry in entries), default=0)
    kind = ""
    for entry in entries:
        if entry.kind != kind:
            say(f"{'' if not kind else chr(10)}{entry.kind}")
            kind = entry.kind
        say(f"  {entry.name:<{width}}  {entry.title}")


def _print(entry: _Entry) -> None:
    say(f"{entry.name} ({entry.kind}): {entry.title}")
    if entry.source:
        say(f"Source: {entry.source}")
    if entry.picture:
        say()
        say(entry.picture)
    if entry.sight is None or not entry.sight.values:
        say()
        say(entry.text.rstrip())
    if entry.sight is not None:
        _print_frame(entry.sight)
    if entry.portrait is not None:
        say()
        for line in portrait_lines(entry.portrait):
            say(line)


def _print_frame(sight: Sight) -> None:
    failed = [f"without {', '.join(sight.failed)}, which failed"] if sight.failed else []
    supposed = [*failed, *(f"{clause}: one case is shown" for clause in sight.unknown)]
    say()
    say(f"Its frame ({'; '.join(supposed)}):" if supposed else "Its frame:")
    for line in frame_lines(sight.frame):
        say(f"  {line}".rstrip())
    if sight.values:
        say()
        for line in denotations(sight.values):
            say(f"  {line}")
