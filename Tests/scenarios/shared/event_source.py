"""A client of server-sent events that connects again, as browsers do."""

import http.client
import threading
import urllib.error
import urllib.request

from shared.waiting import pause

#: What a client does not wait longer for. The agent writes something every 15 seconds.
SILENCE_SECONDS = 40
RETRY_SECONDS = 0.2


class EventSource:
    """Collects the data of events on a thread of its own, and continues after the last one when the connection breaks."""

    def __init__(self, url, headers):
        self._url = url
        self._headers = headers
        self._last_id = ""
        self._is_closed = False
        self._response = None
        #: The data of the events so far, and of which type they are.
        self.events = []
        #: How often the client has connected.
        self.connections = 0
        #: Why the server refused the client for good, if it did.
        self.refusal = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        self._is_closed = True
        response = self._response
        if response is not None:
            # Wakes a thread that reads.
            try:
                response.fp.raw._sock.shutdown(2)
            except (AttributeError, OSError):
                pass
        self._thread.join(SILENCE_SECONDS)

    def _run(self):
        while not self._is_closed:
            try:
                self._read()
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    self.refusal = f"{error.code}: {error.read().decode()}"
                    return
            except (OSError, http.client.HTTPException):
                pass
            pause(RETRY_SECONDS)

    def _read(self):
        headers = {**self._headers, **({"Last-Event-ID": self._last_id} if self._last_id else {})}
        with urllib.request.urlopen(urllib.request.Request(self._url, headers=headers), timeout=SILENCE_SECONDS) as response:
            self._response = response
            self.connections += 1
            identifier, kind, data = self._last_id, "message", []
            for line in response:
                name, _, value = line.decode().rstrip("\n").partition(":")
                value = value.removeprefix(" ")
                if not line.strip():
                    # The end of an event. Only a complete one counts.
                    self._last_id = identifier
                    if data:
                        self.events.append((kind, "\n".join(data)))
                    kind, data = "message", []
                elif name == "id":
                    identifier = value
                elif name == "event":
                    kind = value
                elif name == "data":
                    data.append(value)
