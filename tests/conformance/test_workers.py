"""Work in a thread of its own is waited for, however the wait is interrupted."""

import os
import signal
import threading
import time

import pytest

from isolitmus.conformance.workers import run_interruptibly


@pytest.mark.slow
def test_an_interrupted_wait_goes_on_until_the_work_has_cleaned_up():
    """The signal comes in the middle of the wait, when Python would take the thread for gone."""
    steps = []

    def work(interruption):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            interruption.wait_for(lambda: False, 30)
        finally:
            time.sleep(0.5)
            steps.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(work)
    assert steps == ["cleaned up"]
    assert not [thread for thread in threading.enumerate() if thread.name == "isolitmus"]
