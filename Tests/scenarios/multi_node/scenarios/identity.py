"""Copied and restored stores, and a topic that lost its messages: the messages for the user, and no lost changes."""

import shutil

from multi_node.registry import scenario
from shared.waiting import eventually, expect, expect_equal

SCHEMA = """
CREATE TABLE note (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL
);
"""
TEXTS = "SELECT text FROM note ORDER BY text"


def note(text):
    return ("INSERT INTO note (text) VALUES (?)", (text,))


def expect_refused(driver, node, *words):
    """Expects that the agent ends with an error that explains why and what to do."""
    code, text = driver.wait_for_exit(node)
    expect_equal(code, 1, f"exit code of the agent of {node.name}")
    for word in (*words, f"martlet fork {driver.store_argument(node)}"):
        expect(word in text, f"the agent of {node.name} does not say {word!r}:\n{text[-2000:]}")
    return text


def expect_texts(nodes, *texts):
    for node in nodes:
        expect_equal(node.rows(TEXTS), [(text,) for text in sorted(texts)], f"notes of {node.name}")


@scenario()
def a_copied_store(driver, options):
    """The agent refuses a copy; once forked, the copy keeps its own rows beside rows of the original with the same keys."""
    phone, tablet = driver.add_node("phone", SCHEMA), driver.add_node("tablet", SCHEMA)
    driver.start(phone, tablet)
    phone.write(note("before the copy"))
    driver.settle(phone, tablet)
    driver.stop(phone)
    copy = driver.copy_store(phone, "copy")
    driver.start(phone)
    phone.write(note("from the phone"))
    copy.write(note("from the copy"))
    driver.start(copy)
    said = expect_refused(driver, copy, "is a copy of a store that has synced")
    printed = driver.martlet("fork", driver.store_argument(copy))
    driver.start(copy)
    driver.settle(phone, tablet, copy)
    expect_texts((phone, tablet, copy), "before the copy", "from the copy", "from the phone")
    driver.expect_each_transaction_once(phone, tablet, copy)
    driver.expect_integrity(phone, tablet, copy)
    driver.stop(phone, tablet, copy)
    return f"the agent said:\n{said.strip().splitlines()[-1]}\nmartlet fork said:\n{printed.strip()}"


@scenario()
def a_restored_backup(driver, options):
    """The agent refuses a restored backup; once forked, it gets the changes published since the backup from the topic."""
    phone, tablet = driver.add_node("phone", SCHEMA), driver.add_node("tablet", SCHEMA)
    driver.start(phone, tablet)
    phone.write(note("yesterday"))
    driver.settle(phone, tablet)
    driver.stop(phone)
    backup = driver.folder / "backup"
    shutil.copytree(phone.store.parent, backup)
    driver.start(phone)
    phone.write(note("today"))
    phone.write(note("today, and deleted"))
    phone.write("DELETE FROM note WHERE text = 'today, and deleted'")
    driver.settle(phone, tablet)
    driver.stop(phone)
    shutil.rmtree(phone.store.parent)
    shutil.copytree(backup, phone.store.parent)
    phone.write(note("after the restore"))
    driver.start(phone)
    said = expect_refused(driver, phone, "the store was restored from a backup, or another copy of it is in use")
    printed = driver.martlet("fork", driver.store_argument(phone))
    driver.start(phone)
    driver.settle(phone, tablet)
    expect_texts((phone, tablet), "after the restore", "today", "yesterday")
    driver.expect_each_transaction_once(phone, tablet)
    driver.expect_integrity(phone, tablet)
    driver.stop(phone, tablet)
    return f"the agent said:\n{said.strip().splitlines()[-1]}\nmartlet fork said:\n{printed.strip()}"


@scenario(own_broker=True)
def a_wiped_topic(driver, options):
    """The broker restarts without its data: the nodes republish, and a late joiner gets everything."""
    phone, tablet = driver.add_node("phone", SCHEMA), driver.add_node("tablet", SCHEMA)
    driver.start(phone, tablet)
    phone.write(note("from the phone"))
    tablet.write(note("from the tablet"))
    driver.settle(phone, tablet)
    driver.wipe_broker()
    phone.write(note("after the wipe"))
    late = driver.add_node("late", SCHEMA)
    driver.start(late)
    eventually("the late node has what the topic lost", lambda: len(late.rows(TEXTS)) == 3)
    driver.settle(phone, tablet, late)
    expect_texts((phone, tablet, late), "after the wipe", "from the phone", "from the tablet")
    driver.expect_each_transaction_once(phone, tablet, late)
    driver.stop(phone, tablet, late)
