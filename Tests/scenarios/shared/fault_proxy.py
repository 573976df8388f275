"""A TCP proxy between one agent and the broker that can cut or stall the connection, or discard its bytes.

Kafka clients reconnect to the address in the broker's responses. The proxy replaces that address by its own, which is as
long as 127.0.0.1, so that no length field changes.
"""

import asyncio
import struct
import threading

#: The modes of a link: forward bytes, hold them back, discard them, close connections.
PASS, STALL, SWALLOW, CUT = "pass", "stall", "swallow", "cut"
LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 1 << 16


class Proxies:
    """All links of a run, served by one thread."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def link(self, broker_port, address=LOOPBACK):
        """A new link to the broker at this port, for clients that reach this process at `address`."""
        link = Link(self._loop, broker_port, address)
        asyncio.run_coroutine_threadsafe(link.open(), self._loop).result(10)
        return link

    def close(self):
        asyncio.run_coroutine_threadsafe(self._end_serving(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    async def _end_serving(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Link:
    """One agent's connection to the broker. Any thread may call its methods."""

    def __init__(self, loop, broker_port, address):
        assert len(address) == len(LOOPBACK), f"{address} is not as long as {LOOPBACK}"
        self._loop = loop
        self._broker_port = broker_port
        self._address = address
        self._writers = set()
        self._passes = asyncio.Event()
        self._passes.set()
        self.mode = PASS
        self.port = None
        self.bytes_to_broker = 0
        self.bytes_from_broker = 0
        self.connections = 0

    async def open(self):
        server = await asyncio.start_server(self._serve, self._address, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._old = LOOPBACK.encode() + struct.pack(">i", self._broker_port)
        self._new = self._address.encode() + struct.pack(">i", self.port)

    @property
    def bootstrap(self):
        return f"{self._address}:{self.port}"

    def set(self, mode):
        """Changes the mode. Connections end when SWALLOW does, because bytes are missing from them."""
        self._loop.call_soon_threadsafe(self._set, mode)

    def _set(self, mode):
        was, self.mode = self.mode, mode
        if mode == CUT or was == SWALLOW:
            self._end_all()
        if mode == STALL:
            self._passes.clear()
        else:
            self._passes.set()

    def _end_all(self):
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader, writer):
        self._writers.add(writer)
        self.connections += 1
        try:
            if self.mode == CUT:
                return
            await self._passes.wait()
            broker_reader, broker_writer = await asyncio.open_connection(LOOPBACK, self._broker_port)
            self._writers.add(broker_writer)
            try:
                directions = [asyncio.ensure_future(self._requests(reader, broker_writer)),
                        asyncio.ensure_future(self._responses(broker_reader, writer))]
                await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
                for direction in directions:
                    direction.cancel()
                await asyncio.gather(*directions, return_exceptions=True)
            finally:
                self._writers.discard(broker_writer)
                broker_writer.transport.abort()
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _requests(self, reader, writer):
        while data := await reader.read(CHUNK_BYTES):
            await self._passes.wait()
            if self.mode == SWALLOW:
                continue
            self.bytes_to_broker += len(data)
            writer.write(data)
            await writer.drain()

    async def _responses(self, reader, writer):
        while True:
            head = await reader.readexactly(4)
            data = head + await reader.readexactly(struct.unpack(">i", head)[0])
            await self._passes.wait()
            if self.mode == SWALLOW:
                continue
            self.bytes_from_broker += len(data)
            writer.write(data.replace(self._old, self._new))
            await writer.drain()
