"""An engine for the store: a dictionary that carries litmus tests out, first committer wins on
keys.
"""

from contextlib import nullcontext

from isolitmus.model.engine import Engine, RunsTests
from isolitmus.model.run import ROLLED_BACK, Run, TransactionRun

UNSAID = frozenset(("blind", "isolation_level", "operation"))
"""What a dictionary does not tell of a commit."""


class Client:
    """A transaction: the snapshot of its start, what it has written, what its GETs gave."""

    def __init__(self, version, database):
        self.version, self.database = version, dict(database)
        self.wrote, self.rows = set(), []

    def ask(self, text):
        verb, key, *rest = text.split()
        if verb == "GET" and key in self.database:
            self.rows.append((key, self.database[key]))
        elif verb == "DEL":
            self.database.pop(key, None)
            self.wrote.add(key)
        elif verb == "PUT":
            base = self.database.get(rest[0], 0) if len(rest) > 1 else 0
            self.database[key] = base + int(rest[-1])
            self.wrote.add(key)


class Store:
    """The newest database, and which keys each version has written."""

    def __init__(self, litmus):
        ((self.table, _),) = litmus.tables.items()
        first = Client(0, {})
        for one in litmus.init:
            first.ask(one.sql)
        self.databases, self.written, self.done = [first.database], [set()], {}

    def end(self, name, client):
        now = len(self.databases) - 1
        said = {"read_version": client.version, "unsaid": UNSAID}
        missed = set().union(*self.written[client.version + 1 :])
        if not client.wrote:
            said["rows"] = tuple(client.rows)
            self.done[name] = TransactionRun("committed", **said)
        elif missed & client.wrote:
            self.done[name] = TransactionRun("WriteConflict", "WriteConflict", **said)
        else:
            base = self.databases[-1]
            kept = {k: v for k, v in base.items() if k not in client.wrote}
            ours = {k: v for k, v in client.database.items() if k in client.wrote}
            self.databases.append(kept | ours)
            self.written.append(client.wrote)
            self.done[name] = TransactionRun(
                "committed", version=now + 1, commits=(now + 1,), **said
            )

    def versions(self):
        return tuple({self.table: tuple(sorted(d.items()))} for d in self.databases)


def carry(litmus, spec):
    store, under_way, ran = Store(litmus), {}, dict.fromkeys(litmus.transactions, 0)
    for step in litmus.schedule.steps:
        name = step.transaction
        texts = litmus.transactions[name].sql.split("; ")
        if name not in under_way:
            under_way[name] = Client(len(store.databases) - 1, store.databases[-1])
        until = {"both": len(texts), "statement": step.number or 0}.get(step.action, 0)
        # a transaction of one statement runs it when it starts
        until = len(texts) if len(texts) == 1 else until
        for text in texts[ran[name] : until]:
            under_way[name].ask(text)
        ran[name] = max(ran[name], until)
        if step.action == "rollback":
            version = under_way[name].version
            store.done[name] = TransactionRun(ROLLED_BACK, read_version=version, unsaid=UNSAID)
        elif step.ends:
            store.end(name, under_way[name])
    done = {name: store.done[name] for name in litmus.transactions}
    return Run(litmus.name, "dictionary", "1", spec.name, 0, done, store.versions())


DICTIONARY = Engine(
    name="dictionary",
    title="a dictionary",
    open=lambda: nullcontext(RunsTests("1", carry)),
    format="store",
    protocols=("first",),
)
