"""Tests the dashboard in a real browser, in five states of a node, with real agents and a broker per state.

    python3 Tests/scenarios/dashboard --binary .build/release/martlet --pictures pictures
    python3 Tests/scenarios/dashboard --page sources conflict

Each state waits until the page shows it, and checks text, contrast, width, keyboard, console and requests, on a desktop (1280 pixels
wide) and a phone (390), in light and dark colours. `--pictures` saves screenshots as PNG. `--page sources` tests the page in Sources
instead of the one in the binary. Without Chromium or a broker the suite is skipped, visibly. It needs only Python's standard library.
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
#: The most pixels of screenshots; further down the page are only lists.
PICTURE_HEIGHTS = {"desktop": 1000, "phone": 1400}
#: The fewest points of the charts in a screenshot; the page adds one every two seconds.
CHART_POINTS = 12
#: Chromium's own console message for a response 401, which asks for the token.
NO_TOKEN = "401 (Unauthorized)"


class Context:
    """What a state needs: a driver, a browser, and the folder for screenshots."""

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
        """Opens the page, and enters the token with the keyboard."""
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
        """Checks the page on both screens, and takes screenshots."""
        for screen, (width, height) in {"desktop": DESKTOP, "phone": PHONE}.items():
            for is_dark in (False, True):
                page.size(width, height, is_dark)
                label = f"{name}-{screen}" + ("-dark" if is_dark else "")
                if self._pictures is not None and (dark or not is_dark):
                    page.picture(self._pictures / f"{label}.png", PICTURE_HEIGHTS[screen])
                page_checks.expect_readable(page, label)
        page.size(*DESKTOP)


def healthy(context):
    """Three nodes in sync, all of which write."""
    driver = context.driver
    laptop, phone, tablet = nodes = driver.add("laptop", "phone", "tablet")
    driver.wait_until_ready(*nodes)
    page = context.open(laptop)
    for number in range(CHART_POINTS):
        for node, count in ((laptop, 1 + number % 3), (phone, 2 + number % 4), (tablet, number % 2)):
            for visit in range(count):
                node.write(("INSERT INTO visit (place) VALUES (?)", (f"{node.name} {number} {visit}",)))
        points = f"document.querySelector('#lag polyline')?.points.length > {number}"
        page.wait_for("the charts go on", points)
    phone.write("INSERT INTO note VALUES ('shopping', 'Shopping', 'tea')")
    page.wait_for("the page lists the phone's change", "stream.innerText.includes('note: 1 inserted')")
    page.wait_for("the page reports no problem", "ready.textContent === 'in step' && reasons.children.length === 0")
    expect_equal(sorted(page.evaluate("[...nodes.rows].map(row => row.cells[0].innerText)")), ["phone", "tablet"],
                 "the nodes that the page lists")
    context.show(page, "healthy", dark=True)
    page_checks.expect_keyboard(page)
    use_keyboard(page, driver.digest(laptop) and driver.martlet("digest", laptop.store).split())
    page_checks.expect_quiet(page, driver.url(laptop))


def use_keyboard(page, digests):
    """Pauses and resumes the page, and requests the digest, with only the keyboard."""
    page_checks.tab_to(page, "#pause")
    page.press("Enter")
    page.wait_for("the page pauses", "pause.getAttribute('aria-pressed') === 'true'")
    page.press(" ")
    page.wait_for("the page resumes", "pause.getAttribute('aria-pressed') === 'false'")
    page_checks.tab_to(page, "#digest")
    page.press("Enter")
    page.wait_for("the page shows the digest", "/^[0-9a-f]{16,} at/.test(digestNow.textContent)")
    expect(page.text("#digestNow").split()[0] in digests, f"{page.text('#digestNow')} is not one of {digests}")


def behind(context):
    """A node that was offline while another published a lot, and whose store is locked most of the time."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone")
    driver.wait_until_ready(laptop, phone)
    driver.stop(laptop)
    write_visits(phone, 3000, rows=20)
    driver.wait_until_published(phone)
    with LockHolder(laptop):
        driver.start(laptop)
        eventually("the laptop responds", lambda: reachable(driver, laptop))
        page = context.open(laptop)
        page.wait_for("the page reports that the node is behind", "ready.textContent === 'behind' && / s behind /.test(reasons.innerText)")
        page.wait_for("the charts show how it catches up", f"document.querySelector('#lag polyline').points.length >= {CHART_POINTS}")
        page.wait_for("the node is still behind", "ready.textContent === 'behind'")
        context.show(page, "behind")
    page.wait_for("the node is in sync again", "ready.textContent === 'in step' && reasons.children.length === 0", 180)
    page_checks.expect_quiet(page, driver.url(laptop))


def reachable(driver, node):
    try:
        return driver.get(node)
    except OSError:
        return False


def stuck(context):
    """The connection to the broker stalls; then it is cut."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone")
    driver.wait_until_ready(laptop, phone)
    page = context.open(laptop)
    driver.links["laptop"].set(STALL)
    for number in range(40):
        laptop.write(("INSERT INTO visit (place) VALUES (?)", (f"place {number}",)))
    page.wait_for("the page reports that nothing progresses", "/acknowledged nothing for|Reading has made no progress/.test(reasons.innerText)", 120)
    expect_equal(page.text("#ready"), "stuck", "the page's badge")
    context.show(page, "stuck")
    driver.links["laptop"].set(CUT)
    page.wait_for("the page reports that the broker is unreachable", "/Reading fails/.test(reasons.innerText)", 120)
    context.show(page, "broker-gone")
    driver.links["laptop"].set(PASS)
    page.wait_for("the node is in sync again", "ready.textContent === 'in step'", 120)
    driver.kill(laptop)
    page.wait_for("the page reports that the agent is gone", "ready.textContent === 'no answer' && /this page shows its state at/.test(reasons.innerText)")
    context.show(page, "agent-gone")
    page_checks.expect_quiet(page, driver.url(laptop), complaints=["net::ERR_CONNECTION_REFUSED"])


def conflict(context):
    """Concurrent writes of two nodes to one column; then the page reapplies the overruled values."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone", token=True)
    driver.wait_until_ready(laptop, phone)
    laptop.write("INSERT INTO note VALUES ('shopping', 'Shopping', 'tea')", "INSERT INTO note VALUES ('garden', 'Garden', 'water')")
    eventually("the phone has both", lambda: phone.value("SELECT count(*) FROM note") == 2)
    driver.stop(laptop, phone)
    laptop.write("UPDATE note SET text = 'tea and milk' WHERE key = 'shopping'")
    laptop.write("UPDATE note SET text = 'mow' WHERE key = 'garden'")
    # The later change wins.
    wait_for_clock_tick()
    phone.write("UPDATE note SET text = 'tea and bread' WHERE key = 'shopping'")
    phone.write("UPDATE note SET text = 'water and mow' WHERE key = 'garden'")
    driver.start(laptop, phone)
    eventually("both nodes report the conflicts", lambda: all(driver.status(node)["conflicts"] == 2 for node in (laptop, phone)))
    expect_equal(is_text(laptop, "shopping", "tea and bread"), True, "the later value wins")
    page = context.open_with_token(laptop)
    page.wait_for("the page lists the conflicts", "conflicts.querySelectorAll('button').length === 2")
    for words in ("note.text", "shopping", "tea and milk", "tea and bread", "laptop", "phone"):
        expect(words in page.text("#conflicts"), f"the conflicts don't contain {words}: {page.text('#conflicts')}")
    context.show(page, "conflict")
    page_checks.expect_keyboard(page)
    row = "[...conflicts.rows].find(row => row.innerText.includes('shopping'))"
    page.evaluate(f"{row}.querySelector('button').id = 'chosen'")
    page.click("#chosen")
    eventually("the store has the overruled value again", lambda: is_text(laptop, "shopping", "tea and milk"))
    page.wait_for("the page reports that", f"{row}.innerText.includes('reapplied') && !{row}.querySelector('button')")
    # The other conflict, with the keyboard. The page refreshes meanwhile, which must not move the focus.
    page_checks.tab_to(page, "#conflicts button")
    about = page.evaluate("document.getElementById('about').textContent")
    page.wait_for("the page has refreshed", f"document.getElementById('about').textContent !== '{about}'")
    expect(page.evaluate("document.activeElement.matches('#conflicts button')"), "the button has lost the focus")
    page.press("Enter")
    eventually("the store has the overruled value again", lambda: is_text(laptop, "garden", "mow"))
    eventually("the other node has it too", lambda: is_text(phone, "garden", "mow"))
    page_checks.expect_quiet(page, driver.url(laptop), complaints=[NO_TOKEN])


def is_text(node, key, text):
    found = node.value("SELECT text FROM note WHERE key = ?", (key,))
    return True if found == text else (False, found)


def quarantine(context):
    """The topic contains messages that no node can decode."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone", token=True)
    driver.wait_until_ready(laptop, phone)
    phone.write("INSERT INTO note VALUES ('shopping', 'Shopping', 'tea')")
    eventually("the laptop has the note", lambda: laptop.value("SELECT count(*) FROM note") == 1)
    driver.write_garbage(b"hello", b'{"not": "a transaction"}', bytes(range(256)))
    eventually("three messages are quarantined", lambda: driver.status(laptop)["quarantined"] == 3)
    page = context.open_with_token(laptop)
    page.wait_for("the page lists them", "document.querySelectorAll('#aside .bad').length === 3")
    page.wait_for("the page counts them", "/^3\\s+quarantined$/.test(document.getElementById('tile-quarantined').innerText)")
    expect_equal(page.text("#ready"), "in step", "the page's badge: quarantined messages hold nothing up")
    context.show(page, "quarantine")
    page_checks.expect_keyboard(page)
    page_checks.tab_to(page, "#retry")
    page.press("Enter")
    page.wait_for("the page shows the result", "/^Retried: 0 applied, 3 still/.test(said.textContent)")
    expect(("POST", driver.url(laptop) + "quarantine/retry") in page.requests, "the page sent no request to the agent")
    context.show(page, "quarantine-tried")
    expect_equal(driver.status(laptop)["quarantined"], 3, "quarantined messages")
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
    """Runs one state, with its own processes."""
    with contextlib.closing(HTTPDriver(folder, arguments.binary)) as driver:
        find_chromium()
        driver.open()
        with contextlib.closing(Browser(folder)) as browser:
            state(Context(driver, browser, document, arguments.pictures))


def parse_arguments():
    parser = command_line.make_parser(__doc__)
    command_line.add_pictures(parser)
    parser.add_argument("--page", choices=["binary", "sources"], default="binary", help="which page to test (default: binary)")
    arguments = command_line.parse_names(parser, "state", STATES)
    command_line.expect_binary(parser, arguments)
    return arguments
