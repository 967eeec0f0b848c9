"""A server that imports the libraries once and forks for every notebook: each starts two to three CPU seconds sooner.

``python -I -S workflow/preloaded.py -m module ...`` runs a module as ``python -m module ...`` would, but in a
fork of the server that `preloaded` started. It runs that command itself if there is no server, or if a
variable that libraries read when they load has another value. The server loads none of our modules, so a
record still names those of its run.
"""

import gc
import importlib
import io
import json
import os
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress

SOCKET = "TPLREPRO_PRELOADED"
# A server for fewer notebooks than this takes longer to start than it saves.
WORTHWHILE = 4
LIBRARIES = (
    *("ipykernel.ipkernel", "papermill", "numba", "pandas", "matplotlib.pyplot"),
    *("scipy.optimize", "scipy.sparse.csgraph", "scipy.spatial", "scipy.stats"),
)
# Beginnings of the names of variables that are read when Python starts or a library is loaded.
READ_EARLY = ("MKL_", "MPL", "NUMBA_", "OMP_", "OPENBLAS_", "PYTHON")


def module_command(*words):
    """The command ``python -m ...`` with these words, which uses the server if there is one."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), "-m", *words]


@contextmanager
def preloaded(environment, root, notebooks):
    """Start a server for this many notebooks, unless they are few, and wait until it has loaded the libraries.

    Gives the environment of its users, and a file: the server ends when the last process that holds it open
    has ended. Only Linux has a server, because elsewhere a fork of loaded libraries is not safe.
    """
    if notebooks < WORTHWHILE or not hasattr(os, "pidfd_open"):
        yield environment, None
        return
    with tempfile.TemporaryDirectory(prefix="tplrepro-") as folder:
        environment = environment | {SOCKET: os.path.join(folder, "socket")}
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(environment[SOCKET])
            listener.listen(64)
            settings = {"cwd": root, "env": environment, "stdin": subprocess.PIPE, "start_new_session": True}
            settings["pass_fds"] = [listener.fileno()]
            server = subprocess.Popen([sys.executable, "-m", "workflow.preloaded", str(listener.fileno())], **settings)
        with server:
            # Jupyter looks for free ports before it starts a kernel, which must not wait while others take them.
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as waiting, suppress(OSError):
                waiting.connect(environment[SOCKET])
                waiting.shutdown(socket.SHUT_WR)
                waiting.recv(1)  # nothing: the server has loaded, or ended
            yield environment, server.stdin


def main():
    """Run the module named on the command line, or serve if it names the descriptor of a socket."""
    if sys.argv[1] == "-m":
        status = _ask(os.environ.get(SOCKET, ""), sys.argv[1:])
        if status is None:
            os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
        sys.exit(status)
    words = _serve(socket.socket(fileno=int(sys.argv[1])))
    if words is not None:  # in a fork
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)


def _ask(path, words):
    """Exit status of the command, run by the server, or None if no server accepts it; signals are passed on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        try:
            server.connect(path)
            request = json.dumps([words, os.getcwd(), dict(os.environ)])
            socket.send_fds(server, [request.encode()], [0, 1, 2])
            process = int(server.recv(64) or 0)
        except OSError:
            return None
        if not process:
            return None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, frame: os.kill(process, number))
        parent = os.getppid()
        while not select.select([server], [], [], 1.0)[0]:
            if "JPY_PARENT_PID" in os.environ and os.getppid() != parent:
                return 1  # a kernel ends with its parent, and the server kills forks without a client
        return int(server.recv(64) or 1)


def _serve(listener):
    """Fork for each request. Returns the command in the fork, and None in the server when its last user has ended."""
    early = _read_early(os.environ)
    _load()
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ)
    while selector.get_map():
        key = selector.select()[0][0]
        if key.fd == 0:  # all processes that held the other end have ended
            selector.unregister(0)
            selector.unregister(listener)
            listener.close()
        elif key.fileobj is listener:
            connection = listener.accept()[0]
            message, descriptors, *_ = socket.recv_fds(connection, 2**20, 3)
            words, folder, environment = json.loads(message) if message else (None, None, {})  # the client has ended
            if words is None or _read_early(environment) != early:
                connection.close()
            elif process := os.fork():
                with suppress(OSError):  # the client has ended, which the selector reports next
                    connection.send(str(process).encode())
                selector.register(connection, selectors.EVENT_READ, process)
                selector.register(os.pidfd_open(process), selectors.EVENT_READ, (process, connection))
            else:
                os.setpgid(0, 0)
                for other in [connection, *(key.fileobj for key in selector.get_map().values())]:
                    os.close(other) if isinstance(other, int) else other.close()
                selector.close()
                _become(descriptors, folder, environment)
                return words
            for descriptor in descriptors:
                os.close(descriptor)
        elif isinstance(key.data, int):  # the client has ended
            selector.unregister(key.fileobj)
            for kill in (os.kill, os.killpg):  # it creates its group last
                with suppress(ProcessLookupError):
                    kill(key.data, signal.SIGKILL)
        else:
            process, connection = key.data
            selector.unregister(key.fd)
            os.close(key.fd)
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            with suppress(OSError):
                connection.send(str(code if code >= 0 else 128 - code).encode())
            with suppress(KeyError):
                selector.unregister(connection)
            connection.close()


def _become(descriptors, folder, environment):
    """Take over the client's standard streams, folder and environment."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ |= environment
    sys.path[0] = folder


def _read_early(environment):
    return {name: value for name, value in environment.items() if name.startswith(READ_EARLY)}


def _load():
    # What a kernel sets before it imports Matplotlib, and what pandas sets where it is imported in one.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    for name in LIBRARIES:
        importlib.import_module(name)
    import numba
    import pandas
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    pandas.set_option("display.max_columns", 20)
    numba.njit("float64(float64)")(lambda number: number)  # the first function loads the compiler
    with rc_context({"pdf.fonttype": 42}):  # the first figure reads fonts
        figure = Figure(layout="constrained")
        figure.subplots().set(title="(a)", xlabel="time $t$")
        for kind in ("png", "pdf"):
            figure.savefig(io.BytesIO(), format=kind)
    gc.freeze()


if __name__ == "__main__":
    main()
