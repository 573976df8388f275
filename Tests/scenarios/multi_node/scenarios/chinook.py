"""Programs without Martlet write concurrently to two copies of the Chinook sample database."""

import os
import pathlib
import random
import uuid

from multi_node.registry import scenario
from multi_node.writers import Writer
from shared.ledger import DELETED, Ledger, check
from shared.progress import Progress
from shared.waiting import Failure, Skip, expect_equal

WRITERS_PER_NODE = 3
TRANSACTIONS_PER_WRITER = 40
#: Changes in the largest transaction of each writer.
LARGEST_TRANSACTION = 5000
#: Writers use larger integers than any in the original database.
FIRST_UNIQUE_NUMBER = 10**9


@scenario()
def chinook_concurrent(driver, options):
    """Concurrent writes with colliding keys to two attached copies: both converge, and nothing is lost."""
    original = os.environ.get("MARTLET_CHINOOK")
    if not original:
        raise Skip("set MARTLET_CHINOOK to a chinook.sqlite file (it is copied, never written)")
    seed = ("--seed", str(uuid.UUID(int=random.Random(options.seed).getrandbits(128), version=4)))
    nodes = [driver.add_node(name, copy_of=pathlib.Path(original), attach=seed) for name in ("phone", "tablet")]
    seeds = SeedRows(nodes[0])
    before = contents(nodes[0], seeds)
    expect_equal(contents(nodes[1], seeds), before, "both copies before anything was written")

    driver.start(*nodes)
    ledgers, writers, progress = [], [], Progress()
    for node in nodes:
        ledger = Ledger()
        ledgers.append(ledger)
        for number in range(WRITERS_PER_NODE):
            rng = random.Random(f"{options.seed}-{node.name}-{number}")
            writers.append(ChinookWriter(node, f"w{number}", ledger, progress, rng, seeds, len(writers)))
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.finish()

    driver.settle(*nodes, deadline_seconds=300)
    for node in nodes:
        check(node.name, contents(node, seeds), ledgers, before)
    driver.expect_integrity(*nodes)
    driver.expect_each_transaction_once(*nodes)
    transactions = sum(ledger.transactions for ledger in ledgers)
    return f"{transactions} transactions with {sum(ledger.changes for ledger in ledgers)} changes"


class SeedRows:
    """The keys of the rows that both copies start with. They stay the same on both nodes."""

    def __init__(self, node):
        def keys(column, table):
            return [key for (key,) in node.rows(f"SELECT {column} FROM {table} ORDER BY 1")]

        self.tracks = keys("TrackId", "Track")
        self.customers = keys("CustomerId", "Customer")
        self.invoices = keys("InvoiceId", "Invoice")
        self.lines = keys("InvoiceLineId", "InvoiceLine")
        self.playlist_tracks = node.rows("SELECT PlaylistId, TrackId FROM PlaylistTrack ORDER BY 1, 2")
        self.media_types = keys("MediaTypeId", "MediaType")
        self.last_playlist = max(keys("PlaylistId", "Playlist"))


def contents(node, seeds):
    """The rows that writers touch, by keys that are the same on every node: names, and row ids of original rows."""
    found = {}

    def add(kind, sql, *parameters):
        for *key, state in node.rows(sql, parameters):
            name = (kind, *key)
            if name in found:
                raise Failure(f"{node.name} has {name} twice")
            found[name] = state

    last_track, last_line, last_playlist = max(seeds.tracks), max(seeds.lines), seeds.last_playlist
    add("artist", "SELECT Name, 1 FROM Artist WHERE Name LIKE 'mt-%'")
    add("album", "SELECT Title, r.Name FROM Album LEFT JOIN Artist r USING (ArtistId) WHERE Title LIKE 'mt-%'")
    add("track", """
        SELECT t.Name, coalesce(Composer, '') || '|' || Milliseconds || '|' || coalesce(Title, 'no album')
        FROM Track t LEFT JOIN Album USING (AlbumId) WHERE t.Name LIKE 'mt-%'""")
    add("playlist", "SELECT Name, 1 FROM Playlist WHERE Name LIKE 'mt-%'")
    add("playlist entry", """
        SELECT p.Name, TrackId, 1 FROM PlaylistTrack LEFT JOIN Playlist p USING (PlaylistId) WHERE PlaylistId > ?""",
        last_playlist)
    add("line", "SELECT Quantity, InvoiceId || '|' || TrackId FROM InvoiceLine WHERE InvoiceLineId > ?", last_line)
    add("seed playlist entry", "SELECT PlaylistId, TrackId, 1 FROM PlaylistTrack WHERE PlaylistId <= ?", last_playlist)
    add("seed line", "SELECT InvoiceLineId, Quantity FROM InvoiceLine WHERE InvoiceLineId <= ?", last_line)
    add("seed phone", "SELECT CustomerId, coalesce(Phone, '') FROM Customer")
    add("seed composer", "SELECT TrackId, coalesce(Composer, '') FROM Track WHERE TrackId <= ?", last_track)
    return found


class ChinookWriter(Writer):
    """Inserts related rows, changes and deletes its own, and competes with other writers for original rows."""

    def __init__(self, node, name, ledger, progress, rng, seeds, number):
        super().__init__(node, name, ledger, progress, rng)
        self._seeds = seeds
        self._next_number = FIRST_UNIQUE_NUMBER + number * 10**7
        # The writer's own committed tracks: name -> (row id, album).
        self._tracks = {}

    def work(self):
        largest_at = self.rng.randrange(TRANSACTIONS_PER_WRITER)
        for number in range(TRANSACTIONS_PER_WRITER):
            self._commit(LARGEST_TRANSACTION if number == largest_at else self._size())

    def _size(self):
        low, high = self.rng.choices([(1, 1), (2, 20), (20, 200), (200, 1000)], weights=[60, 22, 12, 6])[0]
        return self.rng.randint(low, high)

    def _commit(self, size):
        before = dict(self._tracks)

        def fill():
            # A retried transaction starts from the committed rows.
            self._tracks = dict(before)
            states, changes = {}, 0
            while changes < size:
                changes += self._step(states, size - changes)
            return states, changes

        self.transact(fill)

    def _step(self, states, most):
        """Makes at least one change and at most `most`, and returns their number."""
        steps = [self._change_own, self._delete_own, self._change_phone, self._change_composer, self._change_line,
                 self._delete_line, self._delete_playlist_entry, self._add_line]
        weights = [20, 8, 8, 8, 8, 2, 4, 8]
        if most >= 3:
            steps += [self._add_album, self._add_playlist]
            weights += [30, 10]
        step = self.rng.choices(steps, weights)[0]
        return step(states, most) or self._add_artist(states, most)

    # Each step returns its number of changes: 0 if it found nothing to do.

    def _add_artist(self, states, most):
        artist = self.marker("artist")
        self.insert("INSERT INTO Artist (Name) VALUES (?)", artist)
        states["artist", artist] = 1
        return 1

    def _add_album(self, states, most):
        artist, album = self.marker("artist"), self.marker("album")
        artist_id = self.insert("INSERT INTO Artist (Name) VALUES (?)", artist)
        album_id = self.insert("INSERT INTO Album (Title, ArtistId) VALUES (?, ?)", album, artist_id)
        states["artist", artist] = 1
        states["album", album] = artist
        count = self.rng.randint(1, most - 2) if most > 100 else min(most - 2, self.rng.randint(1, 15))
        for _ in range(count):
            track, composer, length = self.marker("track"), self.marker("composer"), self.rng.randint(1, 10**6)
            media_type = self.rng.choice(self._seeds.media_types)
            self._tracks[track] = self.insert(
                "INSERT INTO Track (Name, AlbumId, MediaTypeId, Composer, Milliseconds, UnitPrice)"
                " VALUES (?, ?, ?, ?, ?, 0.99)", track, album_id, media_type, composer, length), album
            states["track", track] = f"{composer}|{length}|{album}"
        return 2 + count

    def _add_playlist(self, states, most):
        playlist = self.marker("playlist")
        playlist_id = self.insert("INSERT INTO Playlist (Name) VALUES (?)", playlist)
        states["playlist", playlist] = 1
        tracks = self.rng.sample(self._seeds.tracks, min(most - 1, self.rng.randint(1, 30)))
        for track_id in tracks:
            self.insert("INSERT INTO PlaylistTrack (PlaylistId, TrackId) VALUES (?, ?)", playlist_id, track_id)
            states["playlist entry", playlist, track_id] = 1
        return 1 + len(tracks)

    def _add_line(self, states, most):
        invoice, track, number = self.rng.choice(self._seeds.invoices), self.rng.choice(self._seeds.tracks), self._number()
        self.insert("INSERT INTO InvoiceLine (InvoiceId, TrackId, UnitPrice, Quantity) VALUES (?, ?, 0.99, ?)",
                    invoice, track, number)
        states["line", number] = f"{invoice}|{track}"
        return 1

    def _change_own(self, states, most):
        if not self._tracks:
            return 0
        track = self.rng.choice(list(self._tracks))
        track_id, album = self._tracks[track]
        composer, length = self.marker("composer"), self.rng.randint(1, 10**6)
        if not self.changed("UPDATE Track SET Composer = ?, Milliseconds = ? WHERE TrackId = ? AND Name = ?",
                            composer, length, track_id, track):
            raise Failure(f"the writer's own row {track} is missing or has another row id")
        states["track", track] = f"{composer}|{length}|{album}"
        return 1

    def _delete_own(self, states, most):
        if not self._tracks:
            return 0
        track = self.rng.choice(list(self._tracks))
        track_id, _ = self._tracks.pop(track)
        if not self.changed("DELETE FROM Track WHERE TrackId = ? AND Name = ?", track_id, track):
            raise Failure(f"the writer's own row {track} is missing or has another row id")
        states["track", track] = DELETED
        return 1

    def _change_phone(self, states, most):
        customer, phone = self.rng.choice(self._seeds.customers), self.marker("phone")
        return self._change_seed(states, ("seed phone", customer), phone,
                                 "UPDATE Customer SET Phone = ? WHERE CustomerId = ?", phone, customer)

    def _change_composer(self, states, most):
        # Only a few rows, so that both nodes change the same ones.
        track, composer = self.rng.choice(self._seeds.tracks[:200]), self.marker("composer")
        return self._change_seed(states, ("seed composer", track), composer,
                                 "UPDATE Track SET Composer = ? WHERE TrackId = ?", composer, track)

    def _change_line(self, states, most):
        line, number = self.rng.choice(self._seeds.lines[:300]), self._number()
        return self._change_seed(states, ("seed line", line), number,
                                 "UPDATE InvoiceLine SET Quantity = ? WHERE InvoiceLineId = ?", number, line)

    def _delete_line(self, states, most):
        line = self.rng.choice(self._seeds.lines[:300])
        return self._change_seed(states, ("seed line", line), DELETED,
                                 "DELETE FROM InvoiceLine WHERE InvoiceLineId = ?", line)

    def _delete_playlist_entry(self, states, most):
        playlist, track = self.rng.choice(self._seeds.playlist_tracks)
        return self._change_seed(states, ("seed playlist entry", playlist, track), DELETED,
                                 "DELETE FROM PlaylistTrack WHERE PlaylistId = ? AND TrackId = ?", playlist, track)

    def _change_seed(self, states, key, state, sql, *parameters):
        # If another writer has deleted the row, there is nothing to acknowledge.
        if not self.changed(sql, *parameters):
            return 0
        states[key] = state
        return 1

    def _number(self):
        self._next_number += 1
        return self._next_number
