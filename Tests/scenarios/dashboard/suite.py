"""The dashboard in a real browser: five states of a node, each made by real agents and a broker of its own.

    python3 Tests/scenarios/dashboard --binary .build/release/martlet --pictures pictures
    python3 Tests/scenarios/dashboard --page sources conflict

Each state waits until the page shows it, and looks at text, contrast, width, keyboard, console and requests, on a desktop (1280 pixels
wide) and a phone (390), in light and dark colours. `--pictures` keeps what was seen, as PNG. `--page sources` shows the page as it
is in Sources, in place of the one that the binary has. Without Chromium, or without a broker, it is skipped, visibly.
Nothing but Python's standard library is needed.
"""

import contextlib

from dashboard import page_checks, source_page
from shared import command_line, runner
from shared.background_writers import LockHolder
from shared.browser import Browser, find_chromium
from shared.fault_proxy import CUT, PASS, STALL
from shared.http_driver import TOKEN, HTTPDriver
from shared.notes import write_visits
from shared.waiting import eventually, expect, expect_equal, wait_for_clock_tick

DESKTOP = (1280, 800)
PHONE = (390, 844)
#: Of pictures, at most. What is further down the page is lists.
PICTURE_HEIGHTS = {"desktop": 1000, "phone": 1400}
#: Points of the charts that a picture shows at least; there is one every two seconds.
CHART_POINTS = 12
#: What Chromium itself says of an answer 401, which asks for the token.
NO_TOKEN = "401 (Unauthorized)"


class Context:
    """A driver, a browser, and where pictures go: what a state needs."""

    def __init__(self, driver, browser, document, pictures):
        self.driver = driver
        self._browser = browser
        self._document = document
        self._pictures = pictures

    def open(self, node):
        page = self._browser.open(self.driver.url(node), self._document)
        page.size(*DESKTOP)
        page.wait_for("the page shows an answer", "document.getElementById('ready')?.textContent.length > 1")
        return page

    def open_with_token(self, node):
        """A page that has asked for the token, by keyboard alone."""
        page = self.open(node)
        page_checks.tab_to(page, "#token")
        page.type("not the token")
        page.press("Enter")
        page.wait_for("the page refuses a wrong token", "loginError.textContent.includes('Wrong token')")
        self.show(page, "form")
        page_checks.expect_keyboard(page)
        page_checks.tab_to(page, "#token")
        page.type(TOKEN)
        page.press("Enter")
        page.wait_for("the page takes the token", "document.querySelector('.tile') !== null && login.hidden")
        return page

    def show(self, page, name, dark=False):
        """Checks the page on both screens, and takes pictures."""
        for screen, (width, height) in {"desktop": DESKTOP, "phone": PHONE}.items():
            for is_dark in (False, True):
                page.size(width, height, is_dark)
                label = f"{name}-{screen}" + ("-dark" if is_dark else "")
                if self._pictures is not None and (dark or not is_dark):
                    page.picture(self._pictures / f"{label}.png", PICTURE_HEIGHTS[screen])
                page_checks.expect_readable(page, label)
        page.size(*DESKTOP)


def healthy(stage):
    """Three nodes in step, all of which write."""
    driver = stage.driver
    laptop, phone, tablet = nodes = driver.add("laptop", "phone", "tablet")
    driver.wait_until_ready(*nodes)
    page = stage.open(laptop)
    for number in range(CHART_POINTS):
        for node, count in ((laptop, 1 + number % 3), (phone, 2 + number % 4), (tablet, number % 2)):
            for visit in range(count):
                node.write(("INSERT INTO visit (place) VALUES (?)", (f"{node.name} {number} {visit}",)))
        points = f"document.querySelector('#lag polyline')?.points.length > {number}"
        page.wait_for("the charts go on", points)
    phone.write("INSERT INTO note VALUES ('shopping', 'Shopping', 'tea')")
    page.wait_for("what the phone wrote is listed", "stream.innerText.includes('note: 1 inserted')")
    page.wait_for("the page says that all is well", "ready.textContent === 'in step' && reasons.children.length === 0")
    expect_equal(sorted(page.evaluate("[...nodes.rows].map(row => row.cells[0].innerText)")), ["phone", "tablet"],
                 "the nodes that the page lists")
    stage.show(page, "healthy", dark=True)
    page_checks.expect_keyboard(page)
    by_keyboard(page, driver.digest(laptop) and driver.martlet("digest", laptop.store).split())
    page_checks.expect_quiet(page, driver.url(laptop))


def by_keyboard(page, digests):
    """Pauses the page, lets it go on, and asks for the digest, with the keyboard alone."""
    page_checks.tab_to(page, "#pause")
    page.press("Enter")
    page.wait_for("the page pauses", "pause.getAttribute('aria-pressed') === 'true'")
    page.press(" ")
    page.wait_for("the page goes on", "pause.getAttribute('aria-pressed') === 'false'")
    page_checks.tab_to(page, "#digest")
    page.press("Enter")
    page.wait_for("the page shows the digest", "/^[0-9a-f]{16,} at/.test(digestNow.textContent)")
    expect(page.text("#digestNow").split()[0] in digests, f"{page.text('#digestNow')} is none of {digests}")


def behind(stage):
    """A node that was away while much was published, and whose store another program keeps locked most of the time."""
    driver = stage.driver
    laptop, phone = driver.add("laptop", "phone")
    driver.wait_until_ready(laptop, phone)
    driver.stop(laptop)
    write_visits(phone, 3000, rows=20)
    driver.wait_until_published(phone)
    with LockHolder(laptop):
        driver.start(laptop)
        eventually("the laptop answers", lambda: reachable(driver, laptop))
        page = stage.open(laptop)
        page.wait_for("the page says that the node is behind", "ready.textContent === 'behind' && / s behind /.test(reasons.innerText)")
        page.wait_for("the charts show how it catches up", f"document.querySelector('#lag polyline').points.length >= {CHART_POINTS}")
        page.wait_for("it is behind still", "ready.textContent === 'behind'")
        stage.show(page, "behind")
    page.wait_for("the node is in step again", "ready.textContent === 'in step' && reasons.children.length === 0", 180)
    page_checks.expect_quiet(page, driver.url(laptop))


def reachable(driver, node):
    try:
        return driver.get(node)
    except OSError:
        return False


def stuck(stage):
    """The way to the broker is there, and nothing comes through; then it is gone altogether."""
    driver = stage.driver
    laptop, phone = driver.add("laptop", "phone")
    driver.wait_until_ready(laptop, phone)
    page = stage.open(laptop)
    driver.links["laptop"].set(STALL)
    for number in range(40):
        laptop.write(("INSERT INTO visit (place) VALUES (?)", (f"place {number}",)))
    page.wait_for("the page says that nothing moves", "/acknowledged nothing for|Reading has made no progress/.test(reasons.innerText)", 120)
    expect_equal(page.text("#ready"), "stuck", "the page's badge")
    stage.show(page, "stuck")
    driver.links["laptop"].set(CUT)
    page.wait_for("the page says that the broker is gone", "/Reading fails/.test(reasons.innerText)", 120)
    stage.show(page, "broker-gone")
    driver.links["laptop"].set(PASS)
    page.wait_for("the node is in step again", "ready.textContent === 'in step'", 120)
    driver.kill(laptop)
    page.wait_for("the page says that the agent is gone", "ready.textContent === 'no answer' && /this page shows its state at/.test(reasons.innerText)")
    stage.show(page, "agent-gone")
    page_checks.expect_quiet(page, driver.url(laptop), complaints=["net::ERR_CONNECTION_REFUSED"])


def conflict(stage):
    """Two nodes write one column while they don't hear of each other; then the page takes back what merging decided."""
    driver = stage.driver
    laptop, phone = driver.add("laptop", "phone", token=True)
    driver.wait_until_ready(laptop, phone)
    laptop.write("INSERT INTO note VALUES ('shopping', 'Shopping', 'tea')", "INSERT INTO note VALUES ('garden', 'Garden', 'water')")
    eventually("the phone has both", lambda: phone.value("SELECT count(*) FROM note") == 2)
    driver.stop(laptop, phone)
    laptop.write("UPDATE note SET text = 'tea and milk' WHERE key = 'shopping'")
    laptop.write("UPDATE note SET text = 'mow' WHERE key = 'garden'")
    # Later by its clock, so that it wins.
    wait_for_clock_tick()
    phone.write("UPDATE note SET text = 'tea and bread' WHERE key = 'shopping'")
    phone.write("UPDATE note SET text = 'water and mow' WHERE key = 'garden'")
    driver.start(laptop, phone)
    eventually("both are told", lambda: all(driver.status(node)["conflicts"] == 2 for node in (laptop, phone)))
    expect_equal(is_text(laptop, "shopping", "tea and bread"), True, "the later one wins")
    page = stage.open_with_token(laptop)
    page.wait_for("the page lists the conflicts", "conflicts.querySelectorAll('button').length === 2")
    for words in ("note.text", "shopping", "tea and milk", "tea and bread", "laptop", "phone"):
        expect(words in page.text("#conflicts"), f"the conflicts don't say {words}: {page.text('#conflicts')}")
    stage.show(page, "conflict")
    page_checks.expect_keyboard(page)
    row = "[...conflicts.rows].find(row => row.innerText.includes('shopping'))"
    page.evaluate(f"{row}.querySelector('button').id = 'chosen'")
    page.click("#chosen")
    eventually("the store has what was overruled", lambda: is_text(laptop, "shopping", "tea and milk"))
    page.wait_for("the page says so", f"{row}.innerText.includes('reapplied') && !{row}.querySelector('button')")
    # The other one by keyboard. The page asks anew meanwhile, and leaves the focus where it is.
    page_checks.tab_to(page, "#conflicts button")
    about = page.evaluate("document.getElementById('about').textContent")
    page.wait_for("the page has asked anew", f"document.getElementById('about').textContent !== '{about}'")
    expect(page.evaluate("document.activeElement.matches('#conflicts button')"), "the button has lost the focus")
    page.press("Enter")
    eventually("the store has what was overruled", lambda: is_text(laptop, "garden", "mow"))
    eventually("the other node has it too", lambda: is_text(phone, "garden", "mow"))
    page_checks.expect_quiet(page, driver.url(laptop), complaints=[NO_TOKEN])


def is_text(node, key, text):
    found = node.value("SELECT text FROM note WHERE key = ?", (key,))
    return True if found == text else (False, found)


def quarantine(stage):
    """Somebody else writes to the topic what no node understands."""
    driver = stage.driver
    laptop, phone = driver.add("laptop", "phone", token=True)
    driver.wait_until_ready(laptop, phone)
    phone.write("INSERT INTO note VALUES ('shopping', 'Shopping', 'tea')")
    eventually("the laptop has the note", lambda: laptop.value("SELECT count(*) FROM note") == 1)
    driver.write_garbage(b"hello", b'{"not": "a transaction"}', bytes(range(256)))
    eventually("three messages are quarantined", lambda: driver.status(laptop)["quarantined"] == 3)
    page = stage.open_with_token(laptop)
    page.wait_for("the page lists them", "document.querySelectorAll('#aside .bad').length === 3")
    page.wait_for("they are counted", "/^3\\s+quarantined$/.test(document.getElementById('tile-quarantined').innerText)")
    expect_equal(page.text("#ready"), "in step", "the page's badge: nothing else is held up")
    stage.show(page, "quarantine")
    page_checks.expect_keyboard(page)
    page_checks.tab_to(page, "#retry")
    page.press("Enter")
    page.wait_for("the page says what came of it", "/^Retried: 0 applied, 3 still/.test(said.textContent)")
    expect(("POST", driver.url(laptop) + "quarantine/retry") in page.requests, "nothing was asked of the agent")
    stage.show(page, "quarantine-tried")
    expect_equal(driver.status(laptop)["quarantined"], 3, "what is quarantined")
    page_checks.expect_quiet(page, driver.url(laptop), complaints=[NO_TOKEN])


STATES = {state.__name__: state for state in (healthy, behind, stuck, conflict, quarantine)}


def main():
    arguments = parse_arguments()
    document = source_page.document() if arguments.page == "sources" else None
    outcomes = runner.run_all(STATES, arguments.names, "martlet-dashboard",
                              lambda state, folder: run(state, folder, arguments, document))
    print(outcomes)
    return outcomes.exit_code


def run(state, folder, arguments, document):
    """Makes one state, with processes of its own."""
    with contextlib.closing(HTTPDriver(folder, arguments.binary)) as driver:
        find_chromium()
        driver.open()
        with contextlib.closing(Browser(folder)) as browser:
            state(Context(driver, browser, document, arguments.pictures))


def parse_arguments():
    parser = command_line.make_parser(__doc__)
    command_line.add_pictures(parser)
    parser.add_argument("--page", choices=["binary", "sources"], default="binary", help="which page is shown (default: binary)")
    arguments = command_line.parse_names(parser, "state", STATES)
    command_line.expect_binary(parser, arguments)
    return arguments
