#!/usr/bin/env python3
"""Keeps the stock of each item in a file of its own, from the movements in a till's store. See README.md."""

import argparse
import sqlite3

import martlet

SCHEMA = """
    CREATE TABLE IF NOT EXISTS movement (id INTEGER PRIMARY KEY, item TEXT, count INTEGER);
    CREATE VIEW IF NOT EXISTS stock AS SELECT item, sum(count) AS count FROM movement GROUP BY item ORDER BY item;
"""


def apply(stock, transaction):
    """Repeats a transaction on the copy. Harmless if it is there already: the last one may come twice."""
    with stock:
        for change in transaction.changes:
            if change.entity != "movement":
                continue
            if change.kind == "insert":
                stock.execute(
                    "INSERT OR REPLACE INTO movement VALUES (?, ?, ?)",
                    [change.row, change.values["item"], change.values["count"]])
            elif change.kind == "update":
                stock.execute(
                    "UPDATE movement SET item = coalesce(?, item), count = coalesce(?, count) WHERE id = ?",
                    [change.values.get("item"), change.values.get("count"), change.row])
            else:
                stock.execute("DELETE FROM movement WHERE id = ?", [change.row])


def reload(stock, store):
    """Copies the rows as they are now."""
    rows = sqlite3.connect(store).execute("SELECT id, item, count FROM movement").fetchall()
    with stock:
        stock.execute("DELETE FROM movement")
        stock.executemany("INSERT INTO movement VALUES (?, ?, ?)", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", help="the till's file")
    parser.add_argument("stock", help="the file to keep")
    parser.add_argument("--once", action="store_true", help="end when everything is read")
    arguments = parser.parse_args()

    stock = sqlite3.connect(arguments.stock)
    stock.executescript(SCHEMA)
    after = None
    while True:
        changes = martlet.changes(
            arguments.store, cursor="stock", entities=["movement"], after=after, follow=not arguments.once)
        try:
            for transaction in changes:
                apply(stock, transaction)
            return
        except martlet.ReloadNeeded as error:
            reload(stock, arguments.store)
            after = error.token


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
