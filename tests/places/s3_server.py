"""A server of S3 for the tests, and a way to it that breaks."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR, create_connection, create_server, socket
from time import monotonic, sleep

import pytest

_PATIENCE = 30.0
_CHANGES = (b"PUT ", b"POST ", b"DELETE ")


@contextmanager
def s3_server() -> Iterator[int]:
    """Start a server on this machine, and give its port. The test is skipped where there is none."""
    program = shutil.which("moto_server")
    if program is None:
        pytest.skip("needs the program moto_server on the path")
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    words = [program, "-H", "127.0.0.1", "-p", str(port)]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield port
    finally:
        running.terminate()
        running.wait()


def _wait_for(port: int) -> None:
    end = monotonic() + _PATIENCE
    while monotonic() < end:
        with suppress(ConnectionRefusedError), create_connection(("127.0.0.1", port)):
            return
        sleep(0.05)
    pytest.fail("the server of S3 does not listen")


class BreakingRoad:
    """Hands bytes on between a client and the server, until it is cut: then every connection ends, and none begins."""

    def __init__(self, target: int) -> None:
        """Listen, and lead to the port of the server."""
        self._target = target
        self._listener = create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._sockets: list[socket] = []
        self.open()
        threading.Thread(target=self._accept, daemon=True).start()

    def open(self, *, changes: int | None = None, received: int | None = None, stall: bool = False) -> None:
        """Let everything through again."""
        with self._lock:
            self.changes, self._most_changes = 0, changes
            self.received, self._most_received = 0, received
            self._stall, self.is_cut = stall, threading.Event()

    def close(self) -> None:
        self._stall = False
        self._cut(self.is_cut)
        # what waits for a client would go on waiting
        with suppress(OSError):
            self._listener.shutdown(SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                if self.is_cut.is_set():
                    if not self._stall:
                        client.close()
                    continue
                server = create_connection(("127.0.0.1", self._target))
                self._sockets.append(server)
                for source, target, up in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._hand_on, args=(source, target, up), daemon=True).start()

    def _hand_on(self, source: socket, target: socket, up: bool) -> None:
        with source, suppress(OSError):
            while piece := source.recv(1 << 16):
                state = self.is_cut
                allowed = self._count(piece, up=up)
                target.sendall(allowed)
                if len(allowed) < len(piece):
                    self._cut(state)
                    return
            target.shutdown(SHUT_RDWR)

    def _count(self, piece: bytes, *, up: bool) -> bytes:
        with self._lock:
            if self.is_cut.is_set():
                return b""
            if up and piece.startswith(_CHANGES):
                self.changes += 1
                return b"" if self._most_changes is not None and self.changes > self._most_changes else piece
            if not up:
                self.received += len(piece)
                if self._most_received is not None and self.received > self._most_received:
                    return piece[: max(len(piece) - (self.received - self._most_received), 0)]
            return piece

    def _cut(self, state: threading.Event) -> None:
        """Cut the road that is in a state, and not the one that was opened since."""
        with self._lock:
            state.set()
            if state is not self.is_cut or self._stall:
                return
            sockets, self._sockets = self._sockets, []
        for each in sockets:
            with suppress(OSError):
                each.shutdown(SHUT_RDWR)
            each.close()
