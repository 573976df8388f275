"""Readers that follow the history."""

import os
import pathlib
import signal
import subprocess
import sys
import unittest
from unittest import mock

import martlet
from tests.support import StoreCase, names


class ChangesTests(StoreCase):
    def changes(self, **options):
        changes = martlet.changes(self.store, "reader", **options)
        self.addCleanup(changes.close)
        return changes

    def read(self, **options):
        """Everything that the reader has not processed yet."""
        return names(self.changes(follow=False, **options))

    def test_a_reader_gets_each_transaction_once_if_nothing_fails(self):
        self.attach_and_add("tea", "coffee")
        self.assertEqual(self.read(), ["tea", "coffee"])
        self.assertEqual(self.read(), [])
        self.add("bread")
        self.assertEqual(self.read(), ["bread"])

    def test_a_reader_waits_for_new_transactions(self):
        self.attach_and_add("tea")
        changes = self.changes()
        self.assertEqual(names([next(changes)]), ["tea"])
        for name in ["coffee", "bread"]:
            self.add(name)
            self.assertEqual(names([next(changes)]), [name])

    def test_a_new_reader_may_begin_with_what_comes(self):
        self.attach_and_add("tea")
        self.assertEqual(self.read(start="newest"), [])
        self.add("coffee")
        self.assertEqual(self.read(), ["coffee"])

    def test_what_was_not_processed_comes_again(self):
        self.attach_and_add("tea", "coffee", "bread")
        changes = self.changes()
        self.assertEqual(names([next(changes), next(changes)]), ["tea", "coffee"])
        changes.close()
        self.assertEqual(list(changes), [])
        changes = self.changes()
        self.assertEqual(names([next(changes)]), ["coffee"])
        changes.acknowledge()
        changes.close()
        self.assertEqual(self.read(), ["bread"])

    def test_a_reader_that_is_killed_loses_nothing(self):
        self.attach_and_add("tea", "coffee", "bread")
        program = """if True:
            import martlet, os, signal, sys
            for number, transaction in enumerate(martlet.changes(sys.argv[1], "reader")):
                print(transaction.changes[0].values["name"], flush=True)
                if number == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
            """
        root = pathlib.Path(martlet.__file__).resolve().parents[1]
        done = subprocess.run(
            [sys.executable, "-c", program, self.store], capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": os.fspath(root)})
        self.assertEqual(done.stdout.split(), ["tea", "coffee"], done.stderr)
        # It had begun with coffee, and perhaps the command did not get to note that it had finished tea.
        self.assertIn(self.read(), [["coffee", "bread"], ["tea", "coffee", "bread"]])

    def test_a_reader_that_goes_on_after_an_error_skips_nothing(self):
        self.attach_and_add("tea", "coffee", "bread")
        changes = self.changes()
        self.assertEqual(names([next(changes)]), ["tea"])
        with mock.patch("martlet._history.transaction", side_effect=ValueError), self.assertRaises(ValueError):
            next(changes)
        self.assertEqual(list(changes), [])
        self.assertEqual(self.read(), ["coffee", "bread"])

    def test_ctrl_c_is_for_the_program(self):
        self.attach_and_add("tea")
        program = """if True:
            import martlet, signal, sys
            signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
            for transaction in martlet.changes(sys.argv[1], "reader"):
                name = transaction.changes[0].values["name"]
                print(name, flush=True)
                if name == "coffee":
                    break
            """
        root = pathlib.Path(martlet.__file__).resolve().parents[1]
        process = subprocess.Popen(
            [sys.executable, "-c", program, self.store], stdout=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.fspath(root)})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "tea\n")
        # To the process group, as a terminal does.
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual(process.stdout.readline(), "interrupted\n")
        self.add("coffee")
        self.assertEqual(process.stdout.readline(), "coffee\n")
        self.assertEqual(process.wait(), 0)

    def test_a_forked_process_leaves_the_reader_to_its_parent(self):
        self.attach_and_add("tea", "coffee")
        changes = self.changes()
        self.assertEqual(names([next(changes)]), ["tea"])
        wait, end = os.pipe()
        child = os.fork()
        if child == 0:
            # It moves no cursor, and gets nothing that its parent has to get.
            try:
                list(changes)
                os.close(end)
                os.read(wait, 1)
            finally:
                os._exit(0)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.close, end)
        os.close(wait)
        self.assertEqual(names([next(changes)]), ["coffee"])
        changes.close()
        # It has ended because its input is closed. Otherwise, it would be killed after a while.
        self.assertEqual(changes._process.returncode, 0)
        self.assertEqual(self.read(), ["coffee"])

    def test_only_some_authors_or_tables(self):
        self.write("CREATE TABLE other (name TEXT PRIMARY KEY)")
        self.attach_and_add("tea")
        self.write("INSERT INTO other VALUES ('x')")
        self.assertEqual(self.read(entities=["other"]), ["x"])
        # What does not match needs no acknowledgement.
        self.assertEqual(self.cursor()["unreadTransactions"], 0)
        self.assertEqual(names(martlet.changes(self.store, "second", follow=False, author=martlet.SYNC_AUTHOR)), [])
        self.assertEqual(names(martlet.changes(self.store, "third", follow=False, no_author=True)), ["tea", "x"])
        self.assertEqual(
            names(martlet.changes(self.store, "fourth", follow=False, exclude_author=martlet.SYNC_AUTHOR)), ["tea", "x"])

    def test_history_stays_until_it_is_read(self):
        self.attach_and_add("tea", "coffee")
        changes = self.changes()
        next(changes)
        self.run_command("history", "prune", self.store, "--older-than", "0s", check=True)
        self.assertEqual(names([next(changes)]), ["coffee"])

    def test_a_reader_that_comes_too_late_has_to_load_the_rows(self):
        self.attach_and_add("tea", "coffee", "bread")
        self.run_command("history", "prune", self.store, "--older-than", "0s", check=True)
        with self.assertRaises(martlet.ReloadNeeded) as raised:
            self.read()
        self.assertEqual(raised.exception.code, 3)
        self.assertIsNone(self.cursor())
        self.add("milk")
        self.assertEqual(self.read(after=raised.exception.token), ["milk"])
        self.assertEqual(self.read(), [])

    def test_the_commands_say_what_a_reader_holds_back(self):
        self.attach_and_add("tea", "coffee")
        changes = self.changes()
        next(changes)
        next(changes)
        changes.close()
        cursor = self.cursor()
        self.assertIn(cursor["unreadTransactions"], [1, 2])
        self.assertGreater(cursor["heldBytes"], 0)
        self.assertGreaterEqual(cursor["ageSeconds"], 0)
        text = self.run_command("history", "cursors", self.store, check=True).stdout
        self.assertRegex(text, r"reader  has read up to \d+ of \d+, holds back \d transactions? \(.*\), moved 20")
        removed = self.run_command("history", "cursors", "remove", self.store, "reader", check=True).stdout
        self.assertEqual(removed, "Removed the cursor reader.\n")
        again = self.run_command("history", "cursors", "remove", self.store, "reader")
        self.assertEqual(again.returncode, 1)
        self.assertIn("There is no cursor reader", again.stderr)

    def test_two_readers_need_two_cursors(self):
        self.attach_and_add("tea", "coffee")
        one, two = self.changes(), self.changes()
        for changes in [one, two]:
            self.assertEqual(names([next(changes)]), ["tea"])
        # Both have got both. The second one to acknowledge finds that the cursor was moved.
        self.assertEqual(names([next(one)]), ["coffee"])
        one.acknowledge()
        with self.assertRaisesRegex(martlet.Error, "moved or removed"):
            while self.cursor()["unreadTransactions"] > 0:
                pass
            list(two)

    def test_a_name_of_martlets_own_is_refused(self):
        self.attach_and_add("tea")
        with self.assertRaisesRegex(martlet.Error, "one of Martlet's own"):
            list(martlet.changes(self.store, "martlet.publisher", follow=False))

    def test_many_transactions_arrive_in_order(self):
        martlet.attach(self.store)
        connection_statements = [("INSERT INTO item (name, price) VALUES (?, ?)", [f"i{i}", i]) for i in range(5_000)]
        self.write("BEGIN", *connection_statements[:2500], "COMMIT", *connection_statements[2500:])
        self.assertEqual(self.read(), [f"i{i}" for i in range(5_000)])
        self.assertEqual(self.cursor()["unreadTransactions"], 0)


if __name__ == "__main__":
    unittest.main()
