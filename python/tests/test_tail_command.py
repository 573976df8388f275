"""`martlet history tail` as a program in any language uses it."""

import json
import os
import signal
import sqlite3
import subprocess
import unittest

from tests.support import COMMAND, StoreCase


class TailCommandTests(StoreCase):
    def tail(self, *arguments, **options):
        process = subprocess.Popen(
            [COMMAND, "history", "tail", os.fspath(self.store), "--json", *arguments],
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options})
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        for pipe in [process.stdin, process.stdout, process.stderr]:
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass

    @staticmethod
    def name(line):
        return json.loads(line)["changes"][0]["values"]["name"]

    def all(self, *arguments):
        done = self.run_command("history", "tail", self.store, "--json", "--no-follow", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [self.name(line) for line in done.stdout.splitlines()]

    def test_the_cursor_survives_a_kill(self):
        self.attach_and_add("tea", "coffee")
        process = self.tail("--cursor", "reader")
        self.assertEqual([self.name(process.stdout.readline()) for _ in range(2)], ["tea", "coffee"])
        self.add("bread")
        self.assertEqual(self.name(process.stdout.readline()), "bread")
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.add("milk")
        # The cursor moves right after the lines are written, so that bread may come again, but milk is not lost.
        self.assertIn(self.all("--cursor", "reader"), [["milk"], ["bread", "milk"]])
        self.assertEqual(self.all("--cursor", "reader"), [])

    def test_it_ends_when_nobody_reads_its_output_any_more(self):
        self.attach_and_add("tea")
        process = self.tail("--start", "oldest")
        self.assertEqual(self.name(process.stdout.readline()), "tea")
        # Nothing is written from here on.
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(process.stderr.read(), "")

    def test_what_was_not_written_comes_again(self):
        self.attach_and_add("tea")
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [COMMAND, "history", "tail", os.fspath(self.store), "--json", "--cursor", "reader"],
            stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(self.all("--cursor", "reader"), ["tea"])

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk_moves_no_cursor(self):
        self.attach_and_add("tea")
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [COMMAND, "history", "tail", os.fspath(self.store), "--json", "--cursor", "reader", "--no-follow"],
                stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Standard output can't be written: No space left", done.stderr)
        self.assertEqual(self.all("--cursor", "reader"), ["tea"])

    def test_the_cursor_moves_only_to_acknowledged_tokens(self):
        self.attach_and_add("tea", "coffee", "bread")
        process = self.tail("--cursor", "reader", "--acknowledge", stdin=subprocess.PIPE)
        lines = [process.stdout.readline() for _ in range(3)]
        process.stdin.write(json.loads(lines[1])["token"] + "\n")
        process.stdin.close()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(self.all("--cursor", "reader"), ["bread"])

    def test_acknowledgements_count_though_the_output_is_closed_right_after_them(self):
        self.attach_and_add("tea", "coffee")
        process = self.tail("--cursor", "reader", "--acknowledge", stdin=subprocess.PIPE)
        lines = [process.stdout.readline() for _ in range(2)]
        # The cursor can't move before the command notices that nobody reads its output.
        writer = sqlite3.connect(self.store, isolation_level=None)
        self.addCleanup(writer.close)
        writer.execute("BEGIN IMMEDIATE")
        process.stdin.write(json.loads(lines[0])["token"] + "\n")
        process.stdin.flush()
        process.stdout.close()
        writer.execute("ROLLBACK")
        self.assertEqual(process.wait(), 0)
        self.assertEqual(self.all("--cursor", "reader"), ["coffee"])

    def test_a_follower_waits_while_the_store_is_locked(self):
        self.attach_and_add("tea")
        process = self.tail("--cursor", "reader", "--acknowledge", stdin=subprocess.PIPE)
        token = json.loads(process.stdout.readline())["token"]
        writer = sqlite3.connect(self.store, isolation_level=None)
        self.addCleanup(writer.close)
        writer.execute("BEGIN IMMEDIATE")
        process.stdin.write(token + "\n")
        process.stdin.flush()
        # Longer than one attempt to lock the store.
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(7)
        writer.execute("INSERT INTO item (name) VALUES ('coffee')")
        writer.execute("COMMIT")
        self.assertEqual(self.name(process.stdout.readline()), "coffee")
        process.stdin.close()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(self.all("--cursor", "reader"), ["coffee"])

    def test_the_order_of_acknowledgements_does_not_matter(self):
        self.attach_and_add("tea", "coffee")
        process = self.tail("--cursor", "reader", "--acknowledge", "--no-follow", stdin=subprocess.PIPE)
        tokens = [json.loads(process.stdout.readline())["token"] for _ in range(2)]
        process.stdin.write(f"{tokens[1]}\n{tokens[0]}\n")
        process.stdin.flush()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(self.all("--cursor", "reader"), [])

    def test_no_other_token_can_be_acknowledged(self):
        self.attach_and_add("tea")
        for text in ["nonsense\n", "F7B2A3C8-6F7D-4C0B-9C28-0E6C1C0B4E57:1\n", "x" * 500]:
            process = self.tail("--cursor", "reader", "--acknowledge", stdin=subprocess.PIPE)
            process.stdout.readline()
            process.stdin.write(text)
            process.stdin.flush()
            self.assertEqual(process.wait(), 1)
            self.assertRegex(process.stderr.read(), "not a list of tokens|was not handed out")

    def test_expired_history_is_an_event_and_an_exit_code(self):
        self.attach_and_add("tea", "coffee")
        token = json.loads(
            self.run_command("history", "list", self.store, "--json", "--limit", "1", check=True).stdout)["token"]
        self.attach_and_add("bread")
        self.run_command("history", "prune", self.store, "--older-than", "0s", check=True)
        done = self.run_command("history", "tail", self.store, "--json", "--after", token, "--no-follow")
        self.assertEqual(done.returncode, 3)
        event = json.loads(done.stdout)
        self.assertEqual(event["event"], "reload")
        self.assertEqual(self.all("--after", event["token"]), [])
        plain = self.run_command("history", "tail", self.store, "--after", token, "--no-follow")
        self.assertEqual((plain.returncode, plain.stdout), (3, ""))
        self.assertIn(f"The newest token is {event['token']}.", plain.stderr)

    def test_options_that_don_t_go_together_are_refused(self):
        self.attach_and_add("tea")
        for arguments in [
                ["--no-follow"], ["--acknowledge", "--cursor", "reader"], ["--json", "--acknowledge"],
                ["--after", "5"], ["--start", "nonsense"], ["--start", "newest", "--after", "5"],
                ["--author", "a", "--no-author"]]:
            with self.subTest(arguments):
                self.assertEqual(self.run_command("history", "tail", self.store, *arguments).returncode, 64)

    def test_cursors_can_be_removed_as_before(self):
        self.attach_and_add("tea")
        self.assertEqual(self.all("--cursor", "reader"), ["tea"])
        self.assertEqual(self.run_command("history", "cursors", self.store, "--remove", "reader").returncode, 64)
        self.run_command("history", "cursors", self.store, "--remove", "reader", "--yes", check=True)
        self.assertIsNone(self.cursor())


if __name__ == "__main__":
    unittest.main()
