"""The workload of kill9_storm and of the torture rig: random changes to the tables `item` and `register`."""

from shared.waiting import Failure

SCHEMA = """
CREATE TABLE item (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    parent_id INTEGER REFERENCES item (id)
);
CREATE TABLE register (
    name TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);
"""

REGISTERS = [f"r{number:02}" for number in range(20)]


def item_contents(node):
    """All rows, by keys that are the same on every node."""
    found = {}
    rows = node.rows("""
        SELECT i.name, i.value || '|' || coalesce(p.name, CASE WHEN i.parent_id IS NULL THEN '' ELSE 'dangling' END)
        FROM item i LEFT JOIN item p ON p.id = i.parent_id""")
    for name, state in rows:
        if ("item", name) in found:
            raise Failure(f"{node.name} has item {name} twice")
        found["item", name] = state
    for name, value in node.rows("SELECT name, value FROM register"):
        found["register", name] = value
    return found


class ItemWorkload:
    """The rows of one writer. `marker` makes a text of a kind that no other writer uses."""

    def __init__(self, connection, marker, rng):
        self._connection = connection
        self._marker = marker
        self._rng = rng
        # The writer's committed rows: name -> (row id, name of the parent). Only leaves are deleted.
        self._roots, self._leaves = {}, {}

    def size(self):
        """A random number of changes for a transaction."""
        return self._rng.choices([1, self._rng.randint(2, 20), 200], weights=[70, 28, 2])[0]

    def saved(self):
        """The state that `restore` needs if a transaction isn't committed."""
        return dict(self._roots), dict(self._leaves)

    def restore(self, saved):
        roots, leaves = saved
        self._roots, self._leaves = dict(roots), dict(leaves)

    def change(self, count):
        """Makes this many changes. Returns the state of each changed key; None if its row is deleted."""
        states = {}
        for _ in range(count):
            self._step(states)
        return states

    def _step(self, states):
        kind = self._rng.choices(["root", "leaf", "change", "delete", "register"], weights=[20, 30, 25, 10, 15])[0]
        if kind == "register":
            name, value = self._rng.choice(REGISTERS), self._marker("value")
            self._run("UPDATE register SET value = ? WHERE name = ?", value, name)
            states["register", name] = value
        elif kind == "leaf" and self._roots:
            parent = self._rng.choice(list(self._roots))
            self._add(states, self._leaves, parent, self._roots[parent][0])
        elif kind == "change" and self._leaves:
            name, value = self._rng.choice(list(self._leaves)), self._marker("value")
            row, parent = self._leaves[name]
            self._run("UPDATE item SET value = ? WHERE id = ? AND name = ?", value, row, name)
            states["item", name] = f"{value}|{parent}"
        elif kind == "delete" and self._leaves:
            name = self._rng.choice(list(self._leaves))
            row, _ = self._leaves.pop(name)
            self._run("DELETE FROM item WHERE id = ? AND name = ?", row, name)
            states["item", name] = None
        else:
            self._add(states, self._roots, "", None)

    def _add(self, states, rows, parent, parent_row):
        name, value = self._marker("item"), self._marker("value")
        cursor = self._connection.execute(
            "INSERT INTO item (name, value, parent_id) VALUES (?, ?, ?)", (name, value, parent_row))
        rows[name] = (cursor.lastrowid, parent)
        states["item", name] = f"{value}|{parent}"

    def _run(self, sql, *parameters):
        if self._connection.execute(sql, parameters).rowcount != 1:
            raise RuntimeError(f"the writer's own row is missing or has another row id: {parameters}")
