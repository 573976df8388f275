"""An OTLP collector over HTTP that takes, rejects or refuses what agents push."""

import http.server
import json
import threading

#: What the collector answers: status and body.
TAKEN = (200, {})
REJECTED = (200, {"partialSuccess": {"rejectedDataPoints": "2", "errorMessage": "too many series"}})
UNAVAILABLE = (503, {"message": "shutting down"})


class Collector:
    """Listens on a free port within a `with` block. Answers every request with `answer`."""

    def __init__(self):
        self.answer = TAKEN
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, name="collector")

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def telemetry(self):
        """The section `telemetry` of the configuration of an agent that pushes to this collector each second."""
        return {"otlp": {"endpoint": f"http://127.0.0.1:{self._server.server_port}", "interval": "1s"}}

    def _handler(self):
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                status, document = collector.answer
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        return Handler
