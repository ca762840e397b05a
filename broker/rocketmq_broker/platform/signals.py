"""The signals that stop a program."""

import signal
import sys
from typing import Final

# Import nothing else here: `stop_signals` imports this module before it handles the signals.
if sys.platform == "win32":
    STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGBREAK)
    """Ctrl-C is SIGINT. Ctrl-Break, and the end of the console window, is SIGBREAK. No other process can send SIGTERM."""
else:
    STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
