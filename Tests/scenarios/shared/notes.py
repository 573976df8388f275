"""The tables of the dashboard, terminal and observability suites."""

SCHEMA = """
    CREATE TABLE note (key TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL, text TEXT);
    CREATE TABLE visit (id INTEGER PRIMARY KEY, place TEXT NOT NULL);
"""


def write_visits(node, transactions, rows=1):
    """Writes this many transactions, with this many rows each."""
    with node.connection() as connection:
        for number in range(transactions):
            visits = [(f"place {number} {visit}",) for visit in range(rows)]
            connection.executemany("INSERT INTO visit (place) VALUES (?)", visits)
            connection.commit()
