"""A headless Chromium and its pages, driven by the DevTools protocol through a pipe, with only Python's standard library.

The protocol: https://chromedevtools.github.io/devtools-protocol/
"""

import base64
import fcntl
import itertools
import json
import os
import shutil
import signal
import subprocess
import threading

from shared.waiting import Failure, Skip, eventually

ANSWER_SECONDS = 30
NAMES = ("chromium", "chromium-browser", "google-chrome")
#: Key -> Windows virtual key code.
KEYS = {"Tab": 9, "Enter": 13, " ": 32}
#: The lowest file descriptor for a pipe: Chromium uses descriptors 3 and 4.
FIRST_DESCRIPTOR = 10


def find_chromium():
    """The path of Chromium. Raises Skip if there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise Skip("no chromium: make deps-test installs it")
    return found


class Browser:
    """A Chromium with its own profile. Only the thread that created it may use its pages."""

    def __init__(self, folder):
        reading, command_writing = _pipe()
        answer_reading, writing = _pipe()
        flags = [
            # The sandbox doesn't work as root, nor in most containers; the browser opens only the agents' own page.
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--font-render-hinting=none",
            "--force-color-profile=srgb", "--lang=en-GB", f"--user-data-dir={folder / 'profile'}",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe",
        ]
        with open(folder / "chromium.log", "wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", f'exec "$0" "$@" 3<&{reading} 4>&{writing}', find_chromium(), *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[reading, writing], start_new_session=True,
                env={**os.environ, "TZ": "UTC"})
        os.close(reading)
        os.close(writing)
        self._commands = os.fdopen(command_writing, "wb", buffering=0)
        self._answers = os.fdopen(answer_reading, "rb")
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._answered = {}
        self._pages = {}
        self._ended = False
        self._thread = threading.Thread(target=self._read, name="chromium", daemon=True)
        self._thread.start()

    def open(self, url, document=None):
        """Opens a page. `document` (headers, bytes) replaces the server's response at the URL."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target, url, document)
        self._pages[session] = page
        page.begin()
        return page

    def command(self, method, session=None, **parameters):
        """Sends a command, and returns its result."""
        number = self.send(method, session, **parameters)
        with self._changed:
            if not self._changed.wait_for(lambda: number in self._answered or self._ended, ANSWER_SECONDS):
                raise Failure(f"chromium did not answer {method}")
            answer = self._answered.pop(number, {"error": "chromium has ended"})
        if "error" in answer:
            raise Failure(f"chromium answered {method}: {answer['error']}")
        return answer["result"]

    def send(self, method, session=None, **parameters):
        """Sends a command, and returns its number."""
        message = {"id": (number := next(self._numbers)), "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._commands.write(json.dumps(message).encode() + b"\0")
        return number

    def forget(self, page):
        self._pages.pop(page.session, None)

    def close(self):
        """Ends Chromium and all its processes. Idempotent."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._thread.join(10)
        self._commands.close()
        self._answers.close()

    def _read(self):
        rest = b""
        while data := os.read(self._answers.fileno(), 1 << 16):
            *messages, rest = (rest + data).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    with self._changed:
                        self._answered[message["id"]] = message
                        self._changed.notify_all()
                elif page := self._pages.get(message.get("sessionId")):
                    page.notice(message["method"], message["params"])
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class Page:
    """A tab. It records its requests and its console from the start."""

    def __init__(self, browser, session, target, url, document):
        self.session = session
        #: (method, URL) of each request.
        self.requests = []
        #: Errors and warnings in the console.
        self.complaints = []
        self._browser = browser
        self._target = target
        self._url = url
        self._document = document

    def begin(self):
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")
        if self._document is not None:
            self.command("Fetch.enable", patterns=[{"urlPattern": self._url}])
        self.command("Page.navigate", url=self._url)

    def command(self, method, **parameters):
        return self._browser.command(method, self.session, **parameters)

    def notice(self, event, details):
        """Handles an event, on the browser's thread, which must not wait for responses."""
        if event == "Network.requestWillBeSent":
            self.requests.append((details["request"]["method"], details["request"]["url"]))
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(details["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif event == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(value.get("value")) for value in details["args"]))
        elif event == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.complaints.append(details["entry"]["text"])
        elif event == "Fetch.requestPaused":
            headers, body = self._document
            self._browser.send(
                "Fetch.fulfillRequest", self.session, requestId=details["requestId"], responseCode=200,
                responseHeaders=[{"name": name, "value": value} for name, value in headers.items()],
                body=base64.b64encode(body).decode())

    def evaluate(self, expression):
        """The value of a JavaScript expression; waits for a promise."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Failure(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def text(self, selector):
        """The visible text of the first element that matches, on one line; None if none does."""
        found = self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText")
        return None if found is None else " ".join(found.split())

    def wait_for(self, description, expression, deadline_seconds=90):
        """Waits until the expression is true. Otherwise raises Failure with the text of the page."""
        def holds():
            return True if self.evaluate(expression) else (False, self.text("body"))

        eventually(description, holds, deadline_seconds)

    def size(self, width, height, dark=False):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=width < 600)
        self.command("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        # Waits until the page is laid out and painted.
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def picture(self, path, height):
        """Saves a screenshot of the page from its top as PNG, with at most `height` pixels."""
        size = self.command("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height), "scale": 1}
        data = self.command("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))

    def press(self, key):
        """Presses and releases a key."""
        about = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"Enter": "\r", " ": " "}.get(key)
        self.command("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **about,
                     **({"text": text} if text else {}))
        self.command("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text):
        """Types text into the focused element."""
        self.command("Input.insertText", text=text)

    def click(self, selector):
        """Clicks on the center of the first element that matches."""
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            " e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        if place is None:
            raise Failure(f"there is no {selector} to click on")
        for kind in ("mousePressed", "mouseReleased"):
            self.command("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def close(self):
        self._browser.forget(self)
        self._browser.command("Target.closeTarget", targetId=self._target)


def _pipe():
    """The ends of a pipe (reading, writing), with descriptors that Chromium doesn't use."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR) for end in ends]
    for end in ends:
        os.close(end)
    return high
