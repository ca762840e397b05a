"""Runs a broker under Windows.

A test connects to the program's control port, and sends a line to interrupt or kill the broker. The broker is also
ended when this connection is closed.

python controlled_broker.py PORT CONF
"""

import _thread
import os
import signal
import socket
import sys
import threading


def obey(control: socket.socket) -> None:
    with control, control.makefile("r") as lines:
        for line in lines:
            if line == "ctrl-c\n":
                _thread.interrupt_main(signal.SIGINT)  # as the handler of Ctrl-C does, in a thread that Windows starts
            elif line == "terminate\n":
                os.kill(os.getpid(), signal.SIGTERM)  # TerminateProcess
    os._exit(99)


if __name__ == "__main__":
    threading.Thread(target=obey, args=[socket.create_connection(("127.0.0.1", int(sys.argv[1])))], daemon=True).start()

    from rocketmq_broker.__main__ import main

    sys.exit(main(["-c", sys.argv[2]]))
