"""Derby and PostgreSQL by themselves: statements that are held at a row, wait for one another, and
are ended.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from isolitmus.databases.derby import server as derby_server
from isolitmus.databases.postgres import server as postgres_server
from isolitmus.databases.sessions.connections import COMMIT, SqlFailure, StatementError
from isolitmus.model.errors import EngineUnavailable

TABLE = (
    "CREATE TABLE t (id INT, k INT, v INT)",
    "CREATE UNIQUE INDEX by_id ON t (id)",
    "CREATE INDEX by_k ON t (k)",
    "INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3)",
)


class Derby:
    name = "derby"
    serving = staticmethod(derby_server.open_derby)
    by_k = " --DERBY-PROPERTIES index=BY_K, bulkFetch=1\n"
    gate = "PASS('{}', 'true', TRIM(CHAR(id)), TRIM(CHAR(k))) = 1"


class Postgres:
    name = "postgres"
    serving = staticmethod(postgres_server.open_postgres)
    by_k = ""
    gate = "PASS('{}', id::text, k::text) = 1"


@pytest.fixture(scope="module")
def servers():
    """servers(kind): a running one, with connections that the last test closed; else the test is
    skipped.
    """
    with contextlib.ExitStack() as stack:
        known = {}

        def running(kind):
            if kind not in known:
                try:
                    known[kind] = stack.enter_context(kind.serving())
                except EngineUnavailable as error:
                    pytest.skip(str(error))
            return known[kind]

        yield running


@pytest.fixture(
    params=[
        pytest.param(Derby, marks=pytest.mark.derby),
        pytest.param(Postgres, marks=pytest.mark.postgres),
    ]
)
def kind(request):
    return request.param


@pytest.fixture
def server(kind, servers):
    one = servers(kind)
    for statement in TABLE:
        one.run(statement)
    yield one
    one.close()
    one.run("DROP TABLE t")


def scan(kind, name="audit", what="COUNT(*)"):
    return f"SELECT {what} FROM t{kind.by_k} WHERE k > 0 AND {kind.gate.format(name)}"


def done(server, name, statement):
    server.ask(name, statement)
    return server.settle()[name]


# by the scan's kind of engine: rows in the order in which they came, and the count
@pytest.mark.parametrize(
    ("write", "derby", "postgres"),
    [
        ("k = 40 WHERE id = 1", "1 2 3 1", "1 2 3"),
        ("k = 5 WHERE id = 3", "1 2", "1 2 3"),
        ("v = 99 WHERE id = 3", "1 2 3", "1 2 3"),
    ],
)
def test_a_scan_is_held_inside_one_statement_and_writers_commit_meanwhile(
    kind, server, write, derby, postgres
):
    server.open("audit", "read committed")
    server.open("move", "read committed")
    server.ask("audit", scan(kind), 2)
    held = server.settle()["audit"]
    assert (held.state, held.passed) == ("held", (("1", "10"), ("2", "20")))
    moved = done(server, "move", f"UPDATE t SET {write}")
    assert (moved.state, moved.changed) == ("idle", 1)
    assert done(server, "move", COMMIT).failure is None
    server.let("audit")
    counted = server.settle()["audit"]
    ids = {"derby": derby, "postgres": postgres}[kind.name].split()
    assert [row[0] for row in counted.passed] == ids
    assert counted.rows == ((len(ids),),)


def test_who_writes_what_another_has_written_waits_for_its_end(server):
    for name in ("a", "b"):
        server.open(name, "read committed")
    assert done(server, "a", "UPDATE t SET v = 5 WHERE id = 1").state == "idle"
    waiting = done(server, "b", "UPDATE t SET v = v + 1 WHERE id = 1")
    assert (waiting.state, waiting.behind) == ("waits", ("a",))
    server.ask("a", COMMIT)
    seen = server.settle()
    assert (seen["a"].state, seen["b"].state, seen["b"].changed) == ("idle", "idle", 1)
    assert done(server, "b", COMMIT).failure is None
    assert (1, 10, 6) in server.run("SELECT * FROM t")


def test_of_two_that_wait_for_each_other_one_fails_and_the_other_goes_on(kind, server):
    for name, own in (("a", 1), ("b", 2)):
        server.open(name, "read committed")
        assert done(server, name, f"UPDATE t SET v = 0 WHERE id = {own}").changed == 1
    server.ask("a", "UPDATE t SET v = 0 WHERE id = 2")
    assert server.settle()["a"].behind == ("b",)
    server.ask("b", "UPDATE t SET v = 0 WHERE id = 1")
    seen = server.settle()
    failed = {name: one.failure.state for name, one in seen.items() if one.failure}
    assert len(failed) == 1
    assert {one.state for one in seen.values()} == {"idle"}
    assert set(failed.values()) == {{"derby": "40001", "postgres": "40P01"}[kind.name]}


def test_everything_is_released_whatever_a_connection_was_doing(kind, server):
    for name in ("held", "writer", "waiting"):
        server.open(name, "serializable" if kind is Derby else "read committed")
    server.ask("held", scan(kind, "held", "id"), 1)
    assert server.settle()["held"].state == "held"
    assert done(server, "writer", "UPDATE t SET v = 0 WHERE id = 3").state == "idle"
    assert done(server, "waiting", "UPDATE t SET v = 1 WHERE id = 3").state == "waits"
    begun = time.monotonic()
    server.close()
    assert time.monotonic() - begun < 2
    assert server.run("SELECT v FROM t WHERE id = 3") == ((3,),)
    assert server.settle() == {}


CIRCLE = """deadlock detected
DETAIL:  Process 1 waits for ShareLock on transaction 750; blocked by process 2.
Process 2 waits for ShareLock on transaction 749; blocked by process 1."""


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("seen", [True, False])
def test_a_deadlock_of_postgres_tells_waits_that_nobody_saw(commits, seen):
    """They begin and end between two looks. The first in the queue for a row, and the second, went
    on when the third ended; if that one committed, there is another version of the row, and else
    the second goes on to wait at the same.
    """
    clients = {pid: (name, postgres_server._Client(Pid(pid))) for pid, name in enumerate("abc", 1)}
    a, b, c = (client for _, client in clients.values())
    a.last, b.last, c.commits = ("tuple 5 0 2", (3,)), ("tuple 5 0 2", (1, 3)), commits
    b.failure = SqlFailure("40P01", CIRCLE, postgres_server._circle(CIRCLE))
    if seen:
        a.waited["transactionid 750"] = "tuple 5 0 1", (2,)
    told = b.shown(held=False, clients=clients).failure
    assert told.circle == (
        ("a", ("b",), "tuple 5 0 1" if seen else "transactionid 750"),
        ("b", ("a",), "transactionid 749" if commits else "tuple 5 0 2"),
    )


class Pid:
    """What a client asks of its connection."""

    def __init__(self, pid):
        self.pgconn, self.backend_pid = self, pid


def test_who_gets_no_further_in_time_runs(kind, server):
    server.open("a", "read committed")
    slow = {
        "derby": (
            "SELECT COUNT(*) FROM SYS.SYSCOLUMNS a, SYS.SYSCOLUMNS b, SYS.SYSCOLUMNS c,"
            " SYS.SYSCOLUMNS d"
        ),
        "postgres": "SELECT pg_sleep(5)",
    }
    server.ask("a", slow[kind.name])
    assert server.settle(0.2)["a"].state == "runs"


def test_a_statement_that_fails_says_how(kind, server):
    with pytest.raises(StatementError) as failed:
        server.run("SELECT nothing FROM t")
    assert failed.value.failure.state == {"derby": "42X04", "postgres": "42703"}[kind.name]
    server.open("a", "read committed")
    assert done(server, "a", "SELECT nothing FROM t").failure.state == failed.value.failure.state


@pytest.fixture
def open_folder():
    """A folder that every user may come to: pytest's own are their owner's alone."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)  # noqa: PTH101 - the server runs as another user
        yield Path(folder)


def test_nothing_is_left_behind(kind, open_folder, monkeypatch):
    monkeypatch.chdir(open_folder)
    monkeypatch.setattr("tempfile.tempdir", str(open_folder))
    try:
        with kind.serving() as one:
            process = one_process(one)
            one.run(TABLE[0])
    except EngineUnavailable as error:
        pytest.skip(str(error))
    assert not alive(process)
    assert list(open_folder.iterdir()) == []


def one_process(server):
    if hasattr(server, "_process"):
        return server._process.pid
    return server.run("SELECT pg_backend_pid()")[0][0]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_ends_with_us_however_we_end(kind):
    """A harness that is killed, which can end nothing."""
    module = kind.serving.__module__
    code = (
        f"import os, signal; from {module} import {kind.serving.__name__} as serving\nwith"
        " serving() as one:\n    pid = one._process.pid if hasattr(one, '_process') else"
        " one.run('SELECT pg_backend_pid()')[0][0]\n    print(pid, flush=True)\n   "
        " os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if "EngineUnavailable" in ran.stderr:
        pytest.skip(ran.stderr.splitlines()[-1])
    pid, end = int(ran.stdout), time.monotonic() + 20
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(pid)


# What cannot start


def test_without_pyspark_there_is_no_derby(monkeypatch):
    monkeypatch.setattr(derby_server, "find_spec", lambda _: None)
    with pytest.raises(EngineUnavailable, match=r"pip install 'isolitmus\[spark\]'"):
        derby_server.derby_jars()


def test_without_postgresql_or_psycopg_the_message_says_what_installs_it(monkeypatch):
    monkeypatch.setattr(postgres_server, "find_spec", lambda _: None)
    with pytest.raises(EngineUnavailable, match=r"pip install 'isolitmus\[postgres\]'"):
        postgres_server.postgres_programs()
    monkeypatch.setattr(postgres_server, "find_spec", find_spec)
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed")
    monkeypatch.setattr(postgres_server, "PLACES", Path("/nowhere"))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineUnavailable, match="no PostgreSQL server found on PATH"):
        postgres_server.postgres_programs()


@pytest.mark.postgres
def test_a_server_whose_socket_is_taken_does_not_start(monkeypatch, servers):
    """The lock file of another one, which lives, stands where its own would."""
    launched, other = postgres_server._launched, one_process(servers(Postgres))

    def taken(place, folder):
        lock = f"{other}\n/elsewhere\n0\n5432\n{folder}\n"
        (folder / ".s.PGSQL.5432.lock").write_text(lock)
        return launched(place, folder)

    monkeypatch.setattr(postgres_server, "_launched", taken)
    with pytest.raises(EngineUnavailable) as refused, postgres_server.open_postgres():
        pass
    assert "does not start" in str(refused.value)
    assert "lock file" in str(refused.value)
    assert refused.value.status == 4


@pytest.mark.derby
def test_a_jvm_that_does_not_start_says_why(monkeypatch):
    monkeypatch.setattr(derby_server, "OPTIONS", ("-Xmx256m", "-XX:NoSuchOption"))
    with (
        pytest.raises(EngineUnavailable, match="NoSuchOption") as refused,
        derby_server.open_derby(),
    ):
        pass
    assert refused.value.status == 4


@pytest.mark.derby
def test_a_jvm_that_dies_is_an_engine_that_has_ended():
    with (
        pytest.raises(EngineUnavailable, match="killed by SIGKILL"),
        derby_server.open_derby() as one,
    ):
        one._process.kill()
        one.run("VALUES 1")


@pytest.mark.postgres
def test_a_server_that_dies_is_an_engine_that_has_ended(servers):
    servers(Postgres)  # skipped where there is none
    with (
        pytest.raises(EngineUnavailable, match="PostgreSQL ended"),
        postgres_server.open_postgres() as one,
    ):
        one.open("a", "read committed")
        one.ask("a", "SELECT pg_sleep(60)")
        os.killpg(os.getpgid(one.run("SELECT pg_backend_pid()")[0][0]), 9)
        one.settle()
