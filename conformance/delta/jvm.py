"""JVM with Spark's gateway, and a class data archive for its start.

The JVM is started, used and always ended by this module. PySpark's ``launch_gateway`` can start a
JVM too, but then no caller holds the process while it starts: a Ctrl-C during the first download
would leave it behind, and Ivy would write on the terminal. ``launch_gateway`` also connects to an
existing JVM that the environment names (spark-submit runs Python programs in this way); that is
used here.

The archive holds the classes that Spark with Delta loads. Java maps it into memory instead of
reading, checking and linking thousands of classes from jars at each start (class data sharing,
JEP 350). An archive belongs to one Java and one installed PySpark, and lies in the Python
environment of the latter. Java checks whether it fits and starts without it if not.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.checker.execution.worker_processes import SAFE_PATH
from isolitmus.conformance.workers import GRACE, end_child
from isolitmus.model.display import text_digest
from isolitmus.model.errors import EngineUnavailable, TimeLimit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.conformance.java import Java

START_LIMIT = 600.0
"""Time limit in seconds to start Java and download the jars, for a slow line."""


@contextmanager
def open_gateway(
    java: Java, conf: Mapping[str, str], directory: Path, grace: float = GRACE
) -> Iterator[Any]:
    """Open a py4j gateway into a new JVM with this Spark configuration.

    The JVM ends with the block, or is killed ``grace`` seconds after it. Output of the JVM and of
    Ivy goes to ``engine.log`` in the directory.

    Raises
    ------
    EngineUnavailable
        The JVM ended before it was ready, with the reason from that file, or during the block.
    TimeLimit
        The start took too long.
    """
    address, log = directory / "gateway", directory / "engine.log"
    with log.open("wb") as output:
        process = _launch(java, conf, address, output)
    opened = None
    try:
        _await(process, address, log, conf)
        port, secret = _read_address(address)
        opened = _connect(port, secret)
        logging.getLogger().addFilter(_not_py4j)
        try:
            yield opened
        except Exception as error:
            if _ended(process, error):
                raise EngineUnavailable(f"Spark's JVM ended during the run ({error})") from error
            raise
        finally:
            _no_more_finalizers(opened)
    finally:
        logging.getLogger().removeFilter(_not_py4j)
        end_child(process, grace)
        # after the end of the JVM: py4j would wait forever if Java has called Python back
        if opened is not None:
            opened.close()


def _ended(process: subprocess.Popen[bytes], error: Exception) -> bool:
    """Return whether the JVM is gone; after a network error, wait 2 s for the process to end."""
    from py4j.protocol import Py4JNetworkError

    if isinstance(error, EngineUnavailable):
        return False
    try:
        process.wait(2 if isinstance(error, (Py4JNetworkError, ConnectionError)) else 0)
    except subprocess.TimeoutExpired:
        return False
    return True


def _launch(
    java: Java, conf: Mapping[str, str], address: Path, output: Any
) -> subprocess.Popen[bytes]:
    """Start Spark's launcher in a new process session; raise EngineUnavailable if that fails."""
    import pyspark

    home = Path(pyspark.__file__).parent
    options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    try:
        return subprocess.Popen(  # noqa: S603 - Spark's own launcher, from the installed package
            [str(home / "bin" / "spark-submit"), *options, "pyspark-shell"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={
                **java.environment(),
                "SPARK_HOME": str(home),
                SAFE_PATH: "1",  # Spark starts Python in the current folder, too
                "PYSPARK_PYTHON": (
                    sys.executable
                ),  # for processes that Java starts, e.g. for Spark Connect
                "SPARK_CONNECT_MODE": "0",
                "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address),
            },
            start_new_session=True,  # the terminal's Ctrl-C reaches Python only
        )
    except OSError as error:
        raise EngineUnavailable(f"Spark's launcher does not start: {error}") from error


def _await(
    process: subprocess.Popen[bytes], address: Path, log: Path, conf: Mapping[str, str]
) -> None:
    """Wait for the JVM's address file; raise EngineUnavailable or TimeLimit if it never comes."""
    end = time.monotonic() + START_LIMIT
    while not address.exists():
        if process.poll() is not None:
            raise EngineUnavailable(
                _reason(log.read_text(errors="replace"), conf, process.returncode)
            )
        if time.monotonic() > end:
            raise TimeLimit(
                f"Spark's JVM was not ready after {START_LIMIT:g} s (starting Java, fetching jars)"
            )
        time.sleep(0.02)


def _reason(text: str, conf: Mapping[str, str], status: int) -> str:
    """Return why the JVM ended, as one sentence, from its output and exit status."""
    if status < 0:
        return f"Spark's JVM was killed by {signal.Signals(-status).name} before it was ready"
    jar = conf.get("spark.jars.packages", "")
    if (
        "unresolved dependency" in text
        or "UNRESOLVED DEPENDENCIES" in text
        or "FAILED DOWNLOADS" in text
    ):
        return (
            f"cannot download the jar {jar}; connect this machine to Maven Central for the"
            " first start, which downloads it and its dependencies (about 17 MB); later"
            " starts read Ivy's cache"
        )
    said = next(
        (
            line
            for line in text.splitlines()
            if line.startswith(("Exception", "Error:", "Caused by"))
        ),
        text.strip().splitlines()[-1] if text.strip() else "no output",
    )
    return f"Spark's JVM ended before it was ready: {said}"


def _read_address(address: Path) -> tuple[int, str]:
    """Return port and secret as Spark's gateway server writes them: integers are big-endian."""
    data = address.read_bytes()
    port, length = struct.unpack_from(">ii", data)
    return port, data[8 : 8 + length].decode()


def _connect(port: int, secret: str) -> Any:
    """Return a gateway to the JVM; restore the environment variables set for PySpark."""
    from pyspark.java_gateway import launch_gateway

    ours = {
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": secret,
        "PYSPARK_PIN_THREAD": (
            "true"
        ),  # one JVM thread for each Python thread, which identifies transactions
    }
    before = {key: os.environ.get(key) for key in ours}
    os.environ.update(ours)
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _not_py4j(record: logging.LogRecord) -> bool:
    """Return whether a log record is not from py4j (``GatewayClient.send_command``).

    py4j logs the traceback of a Ctrl-C, or of the JVM's end while a thread waits for the JVM. Both
    errors are raised there, too.
    """
    return record.module != "java_gateway"


def _no_more_finalizers(opened: Any) -> None:
    """End py4j's finalizer thread, which tells the JVM which objects Python has dropped.

    If the end of the JVM cut it off instead, it would print a traceback.
    """
    from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER

    client = opened._gateway_client  # noqa: SLF001 - py4j has no public name for it
    client.is_connected = False
    client.finalizer_deque.appendleft(SHUTDOWN_FINALIZER_WORKER)


def class_archive(java: Java) -> Path:
    """Return the path of the archive, existing or not, for this Java and the installed PySpark."""
    import pyspark

    program = Path(shutil.which(java.command) or java.command).resolve()
    made = program.stat().st_mtime_ns if program.exists() else 0
    key = f"{program} {made} {Path(pyspark.__file__).resolve()}"
    return Path(sys.prefix) / "share" / "isolitmus" / f"delta-{text_digest(key)}.jsa"


def archive_option(archive: Path) -> str:
    """Return Java's option to read an archive, empty if the archive does not exist.

    Examples
    --------
    >>> archive_option(Path("nowhere.jsa"))
    ''
    """
    return f"-XX:SharedArchiveFile={archive}" if archive.is_file() else ""
