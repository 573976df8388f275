"""Tests what the command shows on a terminal: each view in tmux, with real agents and a broker per view.

    python3 Tests/scenarios/terminal --binary .build/release/martlet --pictures pictures
    python3 Tests/scenarios/terminal status pending

Each view waits until the terminal shows it (80 columns and 24 rows, also 120 and 40 if text is wrapped), and checks words, width, line
breaks, colours, and values with control characters. Output to a program must have no terminal sequences. `--pictures` saves
screenshots as PNG, drawn by Chromium. Without tmux or a broker the suite is skipped, visibly. It needs only Python's standard library.
"""

import contextlib
import pathlib
import re
import subprocess

from shared import command_line, runner
from shared.background_writers import LockHolder, VisitWriter
from shared.browser import Browser
from shared.fault_proxy import CUT
from shared.notes import write_visits
from shared.waiting import eventually, expect, expect_equal, wait_for_clock_tick
from terminal import screenshot
from terminal.driver import TerminalDriver
from terminal.tmux import Panes, find_tmux, plain_lines

ESCAPE = "\x1b"
SMALL = (80, 24)
LARGE = (120, 40)
#: For output that is longer than a screen, so that a screenshot contains all of it.
LONG = (80, 50)
#: Sets the window title, clears the screen, switches to red, breaks the line and reverses the text direction.
HOSTILE = "\x1b]0;mine\x07\x1b[2J\x1b[31mred\r\nsecond\u202eline"
HOSTILE_SHOWN = r'"\u{1B}]0;mine\u{07}\u{1B}[2J\u{1B}[31mred\r\nsecond\u{202E}line"'
#: Transactions to publish. Those within one millisecond are published as one.
BACKLOG = 15_000
LARGE_TABLE = 300_000
#: How long another program holds the write lock at a time.
LOCKED_SECONDS = 1.0
SNAPSHOT_ROWS = 100_000
FILL_TABLE = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
INSERT INTO visit (place) SELECT 'place ' || i FROM n
"""
#: A log line has one event, however long it is; the terminal wraps it.
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\S+ (info|notice|warning|error) martlet: ")
BAR = re.compile(r"\[#+\.+\] (\d+) %  (\d+) of (\d+) ")


class Context:
    """What a view needs: a driver, panes, and the folder for screenshots."""

    def __init__(self, driver, panes, browser, pictures):
        self.driver = driver
        self.open = panes.open
        self._browser = browser
        self._pictures = pictures

    def show(self, pane, name, shown, is_redrawn=False):
        """Checks what a pane showed, and takes a screenshot."""
        label = f"terminal-{name}" + ("-wide" if pane.columns > SMALL[0] else "")
        expect_no_broken_lines(pane, label, shown)
        if is_redrawn:
            expect_no_cut_lines(pane, label, shown)
        if self._browser is not None:
            screenshot.write(self._browser, self._pictures / f"{label}.png", shown, pane.columns)

    def run(self, command, name, codes=(0,), sizes=(SMALL, LARGE)):
        """Runs a command in terminals and through a pipe, and expects the same words. Returns what the first terminal showed."""
        done = self.run_piped(command)
        expect(done.returncode in codes, f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        first = None
        for size in sizes:
            pane = self.open(*size)
            shown = pane.run(command)
            self.show(pane, name, shown)
            lines = pane.whole_lines()[1:-1]
            # Lines are wrapped between words, so the words are the same.
            expect_equal(same_words("\n".join(lines)), same_words(done.stdout), f"{command} on {size[0]} columns")
            first = first or shown
        return first

    def run_piped(self, command, **variables):
        """Runs a command without a terminal, and expects no terminal sequences in its output."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.driver.folder, capture_output=True, text=True, timeout=120,
            env={"PATH": f"{self.driver.path}:/usr/bin:/bin", "HOME": str(self.driver.folder), "TERM": "xterm", **variables})
        expect(ESCAPE not in done.stdout + done.stderr, f"{command} prints terminal sequences into a pipe: {done.stdout!r}")
        return done


def same_words(text):
    text = " ".join(text.split())
    # librdkafka's messages about brokers contain times.
    return re.sub(r"/bootstrap: .* Check that", "/bootstrap: ... Check that", re.sub(r"\d+ MiB", "MiB", text)).split()


def expect_no_broken_lines(pane, label, shown):
    """Expects that no line is wider than the pane, and that every character is printable."""
    for line in pane.whole_lines():
        expect(len(line) <= pane.columns or LOG_LINE.match(line), f"{label}: the terminal had to break a line: {line}")
    for line in plain_lines(shown):
        expect(line.isprintable(), f"{label}: {line!r}")


def expect_no_cut_lines(pane, label, shown):
    """Expects that no line reaches the edge, where a redrawn view is cut."""
    for line in plain_lines(shown):
        expect(len(line) < pane.columns, f"{label}: a line is cut: {line}")


def has(lines, *patterns):
    """Whether each pattern matches in some line."""
    return all(any(re.search(pattern, line) for line in lines) for pattern in patterns)


def status(context):
    """`status --watch` of a node in sync, of one that is behind, and of one without a broker."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone", batch=1)
    driver.start(laptop, phone)
    pane = context.open()
    pane.begin("martlet status laptop.sqlite --watch")
    with VisitWriter(laptop), VisitWriter(phone):
        shown = pane.wait_for("the laptop is in sync, and both nodes write", lambda lines: has(
            lines, r"^node +laptop ", "^agent +running$", r"^to publish +\d+ transactions", r"^to read +notes\[\d\]: 0 messages \(offset \d+\)",
            r"^heard from +phone: sequence \d+", "^parked +0$", "^quarantined 0$", "^conflicts +0$",
            r"^per second +[1-9][\d.]* enqueued, [1-9][\d.]* published, [1-9][\d.]* applied"))
    context.show(pane, "healthy", shown, is_redrawn=True)
    driver.stop(laptop)
    shown = pane.wait_for("the agent is stopped", lambda lines: has(lines, "^agent +not running$"))
    expect(f"{ESCAPE}[31mnot running" in shown, f"the missing agent is not red: {shown!r}")
    write_visits(phone, 3000)
    driver.wait_until_published(phone)
    with LockHolder(laptop, LOCKED_SECONDS):
        driver.start(laptop)
        shown = pane.wait_for("the laptop is behind", lambda lines: has(
            lines, "^agent +running$", r"^to read +notes\[\d\]: [1-9]\d+ messages", r"[1-9][\d.]* applied$"))
        context.show(pane, "behind", shown, is_redrawn=True)
    pane.wait_for("the laptop is in sync again", lambda lines: not has(lines, r"^to read .*: [1-9]\d* messages"))
    driver.links["laptop"].set(CUT)
    write_visits(laptop, 40)
    shown = pane.wait_for("changes wait for the broker", lambda lines: has(
        lines, "^agent +running$", "^to publish +[1-9]\d* transactions", r"^per second +0\.0 enqueued, 0\.0 published, 0\.0 applied"))
    context.show(pane, "broker-gone", shown, is_redrawn=True)
    pane.interrupt()


def history(context):
    """`history tail`: changes of this node, of another one, and with control characters."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone")
    driver.start(laptop, phone)
    tails = [context.open(*size) for size in (SMALL, LARGE)]
    for pane in tails:
        pane.clear()
        pane.begin("martlet history tail laptop.sqlite")
        eventually("the command watches the store", lambda pane=pane: watches(pane.child()))
    laptop.write("INSERT INTO note VALUES ('shopping', 'Shopping', 'tea, milk and bread, and whatever else there is for a week')")
    eventually("the phone has it", lambda: phone.value("SELECT count(*) FROM note") == 1)
    phone.write("UPDATE note SET text = 'tea' WHERE key = 'shopping'")
    phone.write(("INSERT INTO note VALUES ('strange', ?, NULL)", (HOSTILE,)))
    phone.write("DELETE FROM note WHERE key = 'shopping'")
    for pane in tails:
        shown = pane.wait_for("all changes are listed", lambda lines: has(lines, '^    insert note "shopping"', '^    delete note "shopping"'))
        context.show(pane, "history", shown)
        expect(HOSTILE_SHOWN in " ".join(plain_lines(shown)), f"the title with control characters is not escaped: {shown}")
        expect(has(plain_lines(shown), "martlet.sync  from phone #1"), "the origin is not shown")
        pane.interrupt()


def watches(process):
    """Whether the process watches files."""
    links = pathlib.Path(f"/proc/{process}/fd").iterdir() if process else ()
    try:
        return any("inotify" in str(link.readlink()) for link in links)
    except FileNotFoundError:
        return False


def attach(context):
    """The progress bar of `attach`, while it adds the rows of a large table to the history."""
    driver = context.driver
    source = driver.folder / "shop.sqlite"
    subprocess.run(["sqlite3", source, "CREATE TABLE visit (id INTEGER PRIMARY KEY, place TEXT NOT NULL);"
                    + FILL_TABLE.format(rows=LARGE_TABLE)], check=True)
    pane = context.open()
    shown = bar(context, pane, "martlet attach shop.sqlite --publish-existing", "rows of visit added to the history")
    context.show(pane, "attach", shown)
    lines = plain_lines(pane.wait_for("it is done", lambda lines: lines[-1] == "$"))
    expect_equal(lines[1:], ["tracked   visit, identified by an ID that Martlet assigns", "$"], "what remains when the bar is gone")


def bar(context, pane, command, words, least=20, most=80):
    """Runs a command until its progress bar is about half full. Returns what the pane showed then."""
    pane.clear()
    pane.begin(command)

    def is_midway(lines):
        found = BAR.match(lines[-1])
        return found and words in lines[-1] and least <= int(found[1]) <= most

    shown = pane.wait_for(f"the bar of {command}", is_midway, 180)
    share, done, total = map(int, BAR.match(plain_lines(shown)[-1]).groups())
    expect_equal(share, done * 100 // total, "the percentage in the bar")
    return shown


def catch_up(context):
    """The progress bar of `run`, while it catches up."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone", batch=1)
    driver.start(phone)
    write_visits(phone, BACKLOG)
    driver.wait_until_published(phone)
    pane = context.open()
    with LockHolder(laptop, LOCKED_SECONDS):
        shown = bar(context, pane, "martlet run --config laptop.yaml", "/s, about ")
    expect(re.search(r" messages, [\d.]+/s, about \d+ s left$", plain_lines(shown)[-1]), f"the bar has no rate: {plain_lines(shown)[-1]}")
    context.show(pane, "catch-up", shown)
    lines = plain_lines(pane.wait_for("the bar disappears", lambda lines: laptop_has(laptop, BACKLOG) and not BAR.match(lines[-1]), 180))
    expect(not any("#" in line for line in lines), f"part of the bar remains: {lines}")
    pane.interrupt()


def laptop_has(node, count):
    return node.value("SELECT count(*) FROM visit") == count


def snapshot(context):
    """The progress bar of a late joiner that loads a snapshot."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone")
    with phone.connection() as connection:
        connection.execute(FILL_TABLE.format(rows=SNAPSHOT_ROWS))
        connection.commit()
    context.run_piped("martlet snapshot make phone.sqlite --config phone.yaml").check_returncode()
    pane = context.open()
    shown = bar(context, pane, "martlet snapshot load laptop.sqlite --config laptop.yaml", " messages, ")
    expect(re.search(r"\d+ rows$", plain_lines(shown)[-1]), f"the bar does not count rows: {plain_lines(shown)[-1]}")
    context.show(pane, "snapshot", shown)
    lines = plain_lines(pane.wait_for("it is done", lambda lines: lines[-1] == "$", 180))
    said = " ".join(" ".join(lines).split())
    expect(f" loaded: {SNAPSHOT_ROWS} rows, 0 tombstones." in said, f"the loaded rows are not reported: {lines}")


def pending(context):
    """Pending changes, quarantined messages, conflicts, and the doctor's report about them."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone")
    driver.start(laptop, phone)
    laptop.write("INSERT INTO note VALUES ('shopping', 'Shopping', 'tea')", "INSERT INTO note VALUES ('strange', 'Strange', 'x')")
    eventually("the phone has both", lambda: phone.value("SELECT count(*) FROM note") == 2)
    driver.stop(laptop, phone)
    laptop.write("UPDATE note SET text = 'tea, milk and bread' WHERE key = 'shopping'", "INSERT INTO tag (name) VALUES ('urgent')")
    laptop.write(("UPDATE note SET text = ? WHERE key = 'strange'", (HOSTILE,)))
    # The later change wins.
    wait_for_clock_tick()
    phone.write("UPDATE note SET text = 'coffee' WHERE key = 'shopping'", "INSERT INTO tag (name) VALUES ('urgent')")
    phone.write("UPDATE note SET text = 'nothing' WHERE key = 'strange'")
    driver.write_garbage(b"hello", b'{"not": "a transaction"}', bytes(range(256)))
    driver.start(laptop, phone)
    eventually("the laptop reports them", lambda: all(
        driver.status(laptop)[key] == count for key, count in {"conflicts": 3, "quarantined": 3, "parked": 1}.items()))
    lines = plain_lines(context.run("martlet conflicts laptop.sqlite", "conflicts"))
    expect(has(lines, 'note.text "shopping"  overruled "tea, milk and bread"'), f"the conflict is not listed: {lines}")
    expect(HOSTILE_SHOWN in " ".join(lines), f"the text with control characters is not escaped: {lines}")
    lines = plain_lines(context.run("martlet quarantine laptop.sqlite", "quarantine"))
    expect_equal(len([line for line in lines if re.match(r"\d  notes\[0\]@\d+  \d+ bytes", line)]), 3, "listed messages")
    lines = plain_lines(context.run("martlet parked laptop.sqlite", "parked"))
    expect(has(lines, "tag ", 'name="urgent"'), f"the parked row is not listed: {lines}")
    shown = watch(context)
    expect(f"{ESCAPE}[33m1" in shown and f"{ESCAPE}[31m3" in shown, f"the counts have no colours: {shown!r}")
    doctor(context, laptop)


def watch(context):
    pane = context.open()
    pane.begin("martlet status laptop.sqlite --watch")
    shown = pane.wait_for("the pending changes are counted", lambda lines: has(
        lines, "^parked +1$", "^quarantined 3$", "^conflicts +3$", "^per second"))
    context.show(pane, "pending", shown, is_redrawn=True)
    pane.interrupt()
    for variable in ("NO_COLOR=1", "TERM=dumb"):
        plain = pane.run(f"{variable} martlet status laptop.sqlite")
        expect(ESCAPE not in plain, f"{variable} has no effect: {plain!r}")
    return shown


def doctor(context, laptop):
    """The doctor reports each of several planted problems."""
    context.driver.stop(laptop)
    context.driver.links["laptop"].set(CUT)
    laptop.store.chmod(0o644)
    laptop.write("DROP TRIGGER " + laptop.value("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'tag' LIMIT 1"))
    refused = context.run_piped(r"martlet status $'no\e[2Jsuch.sqlite'")
    expect_equal(refused.returncode, 1, "exit code of a command that fails")
    expect(r"no\u{1B}[2Jsuch.sqlite" in refused.stderr, f"the error's control characters are not escaped: {refused.stderr!r}")
    shown = context.run("martlet doctor laptop.sqlite --config laptop.yaml", "doctor", codes=(1,), sizes=(LONG, LARGE))
    lines = plain_lines(shown)
    for pattern in ("^ok +integrity: ", "^problem +triggers: .* tag", "^warning +permissions: ", "^problem +quarantine: 3 ",
                    "^warning +parked: 1 ", "^problem +broker: "):
        expect(has(lines, pattern), f"doctor does not report {pattern}: {lines}")
    for colour, word in ((32, "ok"), (33, "warning"), (31, "problem")):
        expect(f"{ESCAPE}[{colour}m{word}" in shown, f"{word} has another colour: {shown!r}")


def demo(context):
    """The demo, in the middle and at its end."""
    pane = context.open()
    pane.begin("martlet demo")
    shown = pane.wait_for("the demo is at step 5", lambda lines: has(lines, "^5. The edge box") and not has(lines, "^6. "))
    context.show(pane, "demo", shown)
    shown = pane.wait_for("the demo ends", lambda lines: has(lines, "all digests are equal", r"^Done in [\d.]+ s\.") and lines[-1] == "$")
    context.show(pane, "demo-end", shown)
    expect(has(plain_lines(shown), "^ {12}update trip rating=5$"), f"the tablet's change is not indented: {shown}")
    expect_equal(context.run_piped("martlet demo").returncode, 0, "exit code of the demo without a terminal")


VIEWS = {view.__name__: view for view in (status, history, attach, catch_up, snapshot, pending, demo)}


def main():
    arguments = parse_arguments()
    outcomes = runner.run_all(VIEWS, arguments.names, "martlet-terminal", lambda view, folder: run(view, folder, arguments))
    print(outcomes)
    return outcomes.exit_code


def run(view, folder, arguments):
    """Runs one view, with its own processes."""
    with contextlib.closing(TerminalDriver(folder, arguments.binary)) as driver:
        find_tmux()
        driver.open()
        painter = contextlib.nullcontext() if arguments.pictures is None else contextlib.closing(Browser(folder))
        with painter as browser, contextlib.closing(Panes(folder, driver.path)) as panes:
            view(Context(driver, panes, browser, arguments.pictures))


def parse_arguments():
    parser = command_line.make_parser(__doc__)
    command_line.add_pictures(parser)
    arguments = command_line.parse_names(parser, "view", VIEWS)
    command_line.expect_binary(parser, arguments)
    return arguments
