"""The `snowmelt` command."""

import signal
import sys
from typing import NoReturn

from snowmelt import _native


def main() -> NoReturn:
    # The command has handlers of its own where it needs them; elsewhere Ctrl-C ends it at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not hasattr(_native, "run_command"):
        sys.exit("snowmelt: this build of the package is without the command")
    sys.exit(_native.run_command(sys.argv))
