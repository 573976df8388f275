"""A listener before a plaintext broker that demands TLS, certificates of clients, SASL, rights, or several of them.

Where somebody is let in, bytes pass to the broker and back. The broker's address in its answers is replaced by the
front's, so that clients stay with it: the names have the same length, so that no length changes.
"""

import asyncio
import contextlib
import ssl
import struct
import threading

from multi_node.security import authorizer, sasl

CHUNK_BYTES = 1 << 16
#: What a broker takes from a client that it doesn't know yet (sasl.server.max.receive.size).
MAX_LOGIN_BYTES = 524_288
#: For how long a client that was turned away may take to notice.
LINGER_SECONDS = 10


class Fronts:
    """All fronts of a scenario, served by one thread. A context manager."""

    def __init__(self, place):
        """`place`: see Driver.front_place."""
        self._place = place
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fronts", daemon=True)
        self._thread.start()
        self._servers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def open(self, tls=None, mechanisms=None, granted=None):
        """A front. `tls`: an ssl.SSLContext. `mechanisms`: those of SASL, name -> function that makes an exchange.
        `granted`: the authorizer.Rights of whoever comes; all by default.
        """
        front = Front(self._place, tls, mechanisms, granted)
        self._servers.append(asyncio.run_coroutine_threadsafe(front.open(), self._loop).result(10))
        return front

    async def _end(self):
        for server in self._servers:
            server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def demand_tls(certificate, key, clients_of=None):
    """Demands TLS, and with `clients_of`, an authority's file, certificates that it vouches for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    if clients_of is not None:
        context.load_verify_locations(clients_of)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class Front:
    """One listener. What it has seen may be read from any thread."""

    def __init__(self, place, tls, mechanisms, granted):
        self._place = place
        self._tls = tls
        self._mechanisms = mechanisms
        self._granted = granted
        self._clients = set()
        self.connections = 0
        #: (mechanism, user) of each who was let in by SASL.
        self.logins = []
        #: (version of TLS, common name of the client's certificate or None) of each connection that TLS let in.
        self.handshakes = []
        #: Connections that were let in, and what came over them for the broker.
        self.admitted = 0
        self.bytes_to_broker = 0
        #: Why others were turned away.
        self.refusals = []
        #: What clients have said by SASL, as it was on the connection where there is no TLS.
        self.heard = bytearray()

    async def open(self):
        self._loop = asyncio.get_running_loop()
        place = self._place
        server = await asyncio.start_server(self._serve, place.listens_on, 0)
        port = server.sockets[0].getsockname()[1]
        self.bootstrap = f"{place.name}:{port}"
        self._old = place.broker_name.encode() + struct.pack(">i", place.broker_port)
        self._new = place.name.encode() + struct.pack(">i", port)
        return server

    def hang_up(self):
        """Ends all connections, as brokers do where a login does not count any more. Any thread may call it."""
        def close():
            for client in list(self._clients):
                client.close()

        self._loop.call_soon_threadsafe(close)

    async def _serve(self, reader, writer):
        self.connections += 1
        client = Plaintext(reader, writer)
        self._clients.add(client)
        broker = None
        try:
            if self._tls is not None:
                self._clients.discard(client)
                client = TLS(reader, writer, self._tls)
                self._clients.add(client)
                self.handshakes.append(await client.shake_hands())
            broker = Plaintext(*await asyncio.open_connection(self._place.broker_address, self._place.broker_port))
            if self._mechanisms:
                await self._log_in(client, broker)
            gate = None if self._granted is None else authorizer.Gate(self._granted, await self._versions(broker))
            self.admitted += 1
            await self._pass(client, broker, gate)
        except sasl.Refused as refused:
            self.refusals.append(str(refused))
            if refused.answer:
                await client.write_frame(refused.answer)
            await client.linger()
        except ssl.SSLError as error:
            self.refusals.append(error.reason or str(error))
            await client.linger()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The connection has ended, or the scenario has.
            pass
        finally:
            self._clients.discard(client)
            for end in (client, broker):
                if end is not None:
                    end.close()

    async def _versions(self, broker):
        await broker.write(sasl.api_versions_request())
        return sasl.read_api_versions(await broker.read_frame())

    async def _log_in(self, client, broker):
        login = sasl.Login(self._mechanisms, await self._versions(broker))
        while login.user is None:
            request = await client.read_frame(MAX_LOGIN_BYTES)
            self.heard += request
            try:
                answer = login.answer(request)
            except (UnicodeDecodeError, ValueError, KeyError, IndexError) as error:
                raise sasl.Refused(f"what is no login: {error!r}") from None
            await client.write_frame(answer)
        self.logins.append((login.mechanism, login.user))

    async def _pass(self, client, broker, gate):
        requests = self._requests(client, broker) if gate is None else self._checked_requests(client, broker, gate)
        ways = [asyncio.ensure_future(requests), asyncio.ensure_future(self._answers(broker, client, gate))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(self, client, broker):
        while data := await client.read():
            self.bytes_to_broker += len(data)
            await broker.write(data)

    async def _checked_requests(self, client, broker, gate):
        while True:
            request = await client.read_frame()
            self.bytes_to_broker += len(request)
            forwarded, answer = gate.take(request)
            if forwarded is not None:
                await broker.write_frame(forwarded)
            if answer is not None:
                await client.write_frame(answer)

    async def _answers(self, broker, client, gate):
        while True:
            answer = await broker.read_frame()
            if gate is not None:
                answer = gate.change(answer)
            await client.write_frame(answer.replace(self._old, self._new))


class Stream:
    """Bytes and frames: a size of four bytes, and as many bytes."""

    _rest = b""

    async def linger(self):
        """Says that this is the end, and takes what the client has sent until it hears of it.

        A client that sends to a closed socket is told so before it is told what was said last: whether it learns why it was
        turned away would depend on which of two threads is faster.
        """
        with contextlib.suppress(asyncio.TimeoutError, OSError):
            self._writer.write_eof()
            async with asyncio.timeout(LINGER_SECONDS):
                while await self._reader.read(CHUNK_BYTES):
                    pass

    async def read_frame(self, limit=1 << 31):
        size = struct.unpack(">i", await self._read_exactly(4))[0]
        if not 0 <= size <= limit:
            raise sasl.Refused(f"a request of {size} bytes")
        return await self._read_exactly(size)

    async def write_frame(self, frame):
        await self.write(struct.pack(">i", len(frame)) + frame)

    async def read(self):
        """Some bytes, none at the end."""
        data, self._rest = self._rest, b""
        return data or await self._receive()

    async def _read_exactly(self, size):
        parts = [self._rest]
        missing = size - len(self._rest)
        while missing > 0:
            data = await self._receive()
            if not data:
                raise asyncio.IncompleteReadError(b"", size)
            parts.append(data)
            missing -= len(data)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]


class Plaintext(Stream):
    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer

    async def _receive(self):
        return await self._reader.read(CHUNK_BYTES)

    async def write(self, data):
        self._writer.write(data)
        await self._writer.drain()

    def close(self):
        self._writer.close()


class TLS(Stream):
    """TLS by hand: asyncio's own neither sends the alert that says why a handshake failed, nor tells anybody."""

    def __init__(self, reader, writer, context):
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def shake_hands(self):
        """The version, and the common name of the client's certificate or None."""
        await self._do(self._tls.do_handshake)
        subject = (self._tls.getpeercert() or {}).get("subject", ())
        names = [value for part in subject for key, value in part if key == "commonName"]
        return self._tls.version(), names[0] if names else None

    async def _receive(self):
        try:
            return await self._do(self._tls.read, CHUNK_BYTES)
        except ssl.SSLZeroReturnError:
            return b""

    async def write(self, data):
        self._tls.write(data)
        await self._flush()

    async def _do(self, step, *arguments):
        while True:
            try:
                result = step(*arguments)
                await self._flush()
                return result
            except ssl.SSLWantReadError:
                await self._flush()
            except ssl.SSLError:
                # The alert.
                await self._flush()
                raise
            data = await self._reader.read(CHUNK_BYTES)
            if not data:
                raise ConnectionResetError
            self._incoming.write(data)

    async def _flush(self):
        if data := self._outgoing.read():
            self._writer.write(data)
            await self._writer.drain()

    def close(self):
        self._writer.close()
