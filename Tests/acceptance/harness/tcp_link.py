"""A network that passes TCP only, and not always that.

A `TCPLink` can replace a `Link`: `rewrite` removes sfud's UDP candidates from the answer and puts a
relay's address in place of the TCP ones. The relay can be slow on the downlink, stop reading sfud's
data, or cut its connections.
"""

import asyncio
import contextlib
import re
import socket
import time

CANDIDATE = re.compile(
    r"^(a=candidate:\S+ 1 tcp \d+) (\S+) (\d+) typ host tcptype passive\r\n", re.MULTILINE
)
UDP = re.compile(r"^a=candidate:\S+ 1 udp .*\r\n", re.MULTILINE)


def tcp_only(answer: str) -> str:
    """Returns the answer as it reaches a client without UDP."""
    assert CANDIDATE.search(answer), answer
    return UDP.sub("", answer)


class TCPLink:
    """One client's path; everything may be changed while it runs."""

    def __init__(self):
        #: Downlink rate in bits a second; None: no limit.
        self.rate: float | None = None
        #: While it is cleared, no data of sfud's is read.
        self.reading = asyncio.Event()
        self.reading.set()
        #: Number of connections that the client has made.
        self.count = 0
        self._target: tuple[str, int] | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task] = set()

    @classmethod
    async def open(cls) -> "TCPLink":
        link = cls()
        link._server = await asyncio.start_server(link._serve, "127.0.0.1", 0, limit=4096)
        link.port = link._server.sockets[0].getsockname()[1]
        return link

    async def rewrite(self, answer: str) -> str:
        _, host, port = CANDIDATE.search(answer).groups()
        self._target = (host, int(port))
        return CANDIDATE.sub(
            rf"\1 127.0.0.1 {self.port} typ host tcptype passive\r\n", tcp_only(answer)
        )

    async def _serve(self, reader, writer):
        self.count += 1
        up = socket.socket(socket.AF_INET6 if ":" in self._target[0] else socket.AF_INET)
        up.setblocking(False)
        # Segments as on a real network, not megabytes that the kernel buffers.
        up.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
        up.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        await asyncio.get_running_loop().sock_connect(up, self._target)
        up_reader, up_writer = await asyncio.open_connection(sock=up, limit=4096)
        self._writers |= {writer, up_writer}
        both = [
            asyncio.create_task(self._carry(reader, up_writer, down=False)),
            asyncio.create_task(self._carry(up_reader, writer, down=True)),
        ]
        self._tasks |= set(both)
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
        for end in (writer, up_writer):
            end.close()
            self._writers.discard(end)

    async def _carry(self, reader, writer, down: bool):
        free_at = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while True:
                if down:
                    await self.reading.wait()
                data = await reader.read(2048)
                if not data:
                    return
                if down and self.rate is not None:
                    free_at = max(free_at, time.monotonic()) + len(data) * 8 / self.rate
                    await asyncio.sleep(max(0, free_at - time.monotonic()))
                writer.write(data)
                await writer.drain()

    def cut(self) -> None:
        """Ends all connections, with no notice to their ends but TCP's own."""
        for writer in self._writers:
            writer.transport.abort()

    async def close(self) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
