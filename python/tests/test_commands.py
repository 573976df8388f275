"""attach, status and wait, with the command."""

import os
import subprocess
import unittest
from unittest import mock

import martlet
from tests.support import COMMAND, StoreCase


class CommandTests(StoreCase):
    def test_attach_tracks_tables(self):
        self.write("CREATE TABLE other (id INTEGER PRIMARY KEY)")
        done = martlet.attach(self.store, tables=["item"], identity={"item": ["name"]}, keep_old_values=True)
        self.assertEqual([one["table"] for one in done["attached"]], ["item"])
        again = martlet.attach(self.store)
        self.assertEqual(again["alreadyTracked"], ["item"])
        self.assertEqual([one["table"] for one in again["attached"]], ["other"])

    def test_attach_tells_which_tables_can_t_be_tracked(self):
        self.write("CREATE VIRTUAL TABLE search USING fts5(text)")
        done = martlet.attach(self.store)
        self.assertEqual([one["table"] for one in done["attached"]], ["item"])
        self.assertEqual([one["table"] for one in done["refused"]], ["search"])
        self.assertIn("virtual table", done["refused"][0]["reason"])
        with self.assertRaises(martlet.Error) as raised:
            martlet.attach(self.store, tables=["search"])
        self.assertIn("virtual table", str(raised.exception))

    def test_attach_adds_existing_rows_to_the_history(self):
        self.add("tea")
        self.assertEqual(martlet.attach(self.store)["existingRows"], 1)
        martlet.attach(self.store, publish_existing=True)
        with martlet.changes(self.store, "reader", follow=False) as changes:
            self.assertEqual([change.values["name"] for one in changes for change in one.changes], ["tea"])

    def test_status_describes_the_node(self):
        self.attach_and_add("tea")
        status = martlet.status(self.store)
        self.assertFalse(status["running"])
        self.assertEqual(status["history"]["transactions"], 1)

    def test_waiting_ends_when_the_time_is_over(self):
        self.attach_and_add("tea")
        for what in [{"published": True}, {"on": ["stall"]}, {"on": "stall"}]:
            with self.assertRaises(martlet.WaitTimeout) as raised:
                martlet.wait(self.store, timeout=0.05, **what)
            self.assertIn("no agent runs on the store", str(raised.exception))
            self.assertIsInstance(raised.exception, TimeoutError)

    def test_waiting_needs_something_to_wait_for(self):
        martlet.attach(self.store)
        for what in [{}, {"published": True, "on_all": True}, {"published": True, "timeout": -1}, {"published": True, "through": "5"}]:
            with self.assertRaises(martlet.UsageError):
                martlet.wait(self.store, **what)

    def test_an_error_says_what_happened(self):
        with self.assertRaises(martlet.Error) as raised:
            martlet.attach(self.folder / "nothing.sqlite")
        self.assertIn("There is no file at", str(raised.exception))
        self.assertEqual(raised.exception.code, 1)
        with self.assertRaises(martlet.UsageError):
            martlet.attach(self.store, seed="5")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_output_that_is_lost_is_an_error(self):
        self.attach_and_add("tea")
        for arguments in [["history", "list"], ["digest"], ["status", "--json"]]:
            with self.subTest(arguments), open("/dev/full", "w") as full:
                done = subprocess.run(
                    [COMMAND, *arguments, os.fspath(self.store)], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 1)
                self.assertIn("Standard output can't be written: No space left", done.stderr)

    def test_a_store_may_have_any_name(self):
        os.rename(self.store, self.folder / "--help")
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        self.assertEqual(len(martlet.attach("--help")["attached"]), 1)

    def test_the_package_has_the_version_of_the_command(self):
        printed = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(martlet.__version__, printed.strip())


class MissingCommandTests(unittest.TestCase):
    def test_a_missing_command_is_named(self):
        with mock.patch.dict(os.environ, {"MARTLET_BINARY": "/nowhere/martlet"}):
            with self.assertRaisesRegex(martlet.CommandMissing, "/nowhere/martlet"):
                martlet.status("shop.sqlite")
            with self.assertRaises(martlet.CommandMissing):
                martlet.changes("shop.sqlite", "reader")

    def test_a_full_disk_is_the_only_error(self):
        with mock.patch("tempfile.TemporaryFile", side_effect=OSError), mock.patch("sys.unraisablehook") as hook:
            with self.assertRaises(OSError):
                martlet.changes("shop.sqlite", "reader")
        hook.assert_not_called()


if __name__ == "__main__":
    unittest.main()
