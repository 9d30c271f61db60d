"""Command line. As the program, it ends without a traceback on a Ctrl-C while its modules load."""

import os
import signal
import sys

if (
    sys.argv[0].endswith(("isolitmus", "__main__.py", "-m"))
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    # cli.main.main restores Python's own handler
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
