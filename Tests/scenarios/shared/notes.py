"""The tables of the tests of the dashboard, of the terminal and of alerts."""

SCHEMA = """
    CREATE TABLE note (key TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL, text TEXT);
    CREATE TABLE visit (id INTEGER PRIMARY KEY, place TEXT NOT NULL);
"""


def write_visits(node, transactions, rows=1):
    """As many transactions, of so many rows each."""
    with node.connection() as connection:
        for number in range(transactions):
            visits = [(f"place {number} {visit}",) for visit in range(rows)]
            connection.executemany("INSERT INTO visit (place) VALUES (?)", visits)
            connection.commit()
