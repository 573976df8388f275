"""A Kafka listener in front of a plaintext broker that requires TLS, client certificates, SASL, ACLs, or several of them.

It proxies admitted connections to the broker. In responses it replaces the broker's address by its own, so that clients
keep using it; both names have the same length, so that no length field changes.
"""

import asyncio
import contextlib
import ssl
import struct
import threading

from multi_node.security import sasl
from multi_node.security.authorizer import Authorizer

CHUNK_BYTES = 1 << 16
#: The largest request before authentication, as a broker's sasl.server.max.receive.size.
MAX_LOGIN_BYTES = 524_288
#: How long a rejected client may take to notice.
LINGER_SECONDS = 10


class SecuredListeners:
    """All listeners of a scenario, served by one thread. A context manager."""

    def __init__(self, placement):
        """`placement`: see Driver.listener_placement."""
        self._placement = placement
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="listeners", daemon=True)
        self._thread.start()
        self._servers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def open(self, tls=None, mechanisms=None, acl=None):
        """Opens a listener. `tls`: an ssl.SSLContext. `mechanisms`: SASL mechanism -> function that makes an exchange.
        `acl`: the authorizer.AccessControlList of every client; all permissions by default.
        """
        listener = SecuredListener(self._placement, tls, mechanisms, acl)
        self._servers.append(asyncio.run_coroutine_threadsafe(listener.open(), self._loop).result(10))
        return listener

    async def _end(self):
        for server in self._servers:
            server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def tls_context(certificate, key, client_ca=None):
    """An ssl.SSLContext for a listener. With `client_ca`, the file of an authority, it requires client certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    if client_ca is not None:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class SecuredListener:
    """One listener. Any thread may read its counters and lists."""

    def __init__(self, placement, tls, mechanisms, acl):
        self._placement = placement
        self._tls = tls
        self._mechanisms = mechanisms
        self._acl = acl
        self._clients = set()
        self.connections = 0
        #: (mechanism, user) of each successful login by SASL.
        self.logins = []
        #: (TLS version, common name of the client certificate or None) of each successful handshake.
        self.handshakes = []
        #: The number of admitted connections, and of bytes that they sent to the broker.
        self.admitted = 0
        self.bytes_to_broker = 0
        #: Reasons of rejections.
        self.rejections = []
        #: Requests that clients sent before their login succeeded, as they crossed the connection if there is no TLS.
        self.login_bytes = bytearray()

    async def open(self):
        self._loop = asyncio.get_running_loop()
        placement = self._placement
        server = await asyncio.start_server(self._serve, placement.bind_address, 0)
        port = server.sockets[0].getsockname()[1]
        self.bootstrap = f"{placement.name}:{port}"
        self._old = placement.broker_name.encode() + struct.pack(">i", placement.broker_port)
        self._new = placement.name.encode() + struct.pack(">i", port)
        return server

    def hang_up(self):
        """Closes all connections, as a broker does when logins expire. Any thread may call it."""
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
                self.handshakes.append(await client.handshake())
            broker = Plaintext(*await asyncio.open_connection(self._placement.broker_address, self._placement.broker_port))
            if self._mechanisms:
                await self._log_in(client, broker)
            authorizer = None if self._acl is None else Authorizer(self._acl, await self._versions(broker))
            self.admitted += 1
            await self._pass(client, broker, authorizer)
        except sasl.ConnectionRejected as rejected:
            self.rejections.append(str(rejected))
            if rejected.answer:
                await client.write_frame(rejected.answer)
            await client.linger()
        except ssl.SSLError as error:
            self.rejections.append(error.reason or str(error))
            await client.linger()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The connection or the scenario has ended.
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
        session = sasl.SaslSession(self._mechanisms, await self._versions(broker))
        while session.user is None:
            request = await client.read_frame(MAX_LOGIN_BYTES)
            self.login_bytes += request
            try:
                answer = session.answer(request)
            except (UnicodeDecodeError, ValueError, KeyError, IndexError) as error:
                raise sasl.ConnectionRejected(f"malformed login: {error!r}") from None
            await client.write_frame(answer)
        self.logins.append((session.mechanism, session.user))

    async def _pass(self, client, broker, authorizer):
        requests = self._requests(client, broker) if authorizer is None else self._checked_requests(client, broker, authorizer)
        directions = [asyncio.ensure_future(requests), asyncio.ensure_future(self._answers(broker, client, authorizer))]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _requests(self, client, broker):
        while data := await client.read():
            self.bytes_to_broker += len(data)
            await broker.write(data)

    async def _checked_requests(self, client, broker, authorizer):
        while True:
            request = await client.read_frame()
            self.bytes_to_broker += len(request)
            forwarded, answer = authorizer.authorize(request)
            if forwarded is not None:
                await broker.write_frame(forwarded)
            if answer is not None:
                await client.write_frame(answer)

    async def _answers(self, broker, client, authorizer):
        while True:
            answer = await broker.read_frame()
            if authorizer is not None:
                answer = authorizer.rewrite(answer)
            await client.write_frame(answer.replace(self._old, self._new))


class Stream:
    """Bytes and frames. A frame is a size of four bytes, and as many bytes."""

    _rest = b""

    async def linger(self):
        """Closes the sending side, and discards input until the client closes the connection.

        If the socket were closed at once, a client that still sends would get a reset, and might lose the last response,
        which says why it was rejected.
        """
        with contextlib.suppress(asyncio.TimeoutError, OSError):
            self._writer.write_eof()
            async with asyncio.timeout(LINGER_SECONDS):
                while await self._reader.read(CHUNK_BYTES):
                    pass

    async def read_frame(self, limit=1 << 31):
        size = struct.unpack(">i", await self._read_exactly(4))[0]
        if not 0 <= size <= limit:
            raise sasl.ConnectionRejected(f"a request of {size} bytes")
        return await self._read_exactly(size)

    async def write_frame(self, frame):
        await self.write(struct.pack(">i", len(frame)) + frame)

    async def read(self):
        """Returns some bytes; none at the end."""
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
    """TLS on memory BIOs: asyncio's own TLS neither sends the alert that says why a handshake failed, nor reports it."""

    def __init__(self, reader, writer, context):
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def handshake(self):
        """Returns the TLS version, and the common name of the client certificate or None."""
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
                # Sends the alert.
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
