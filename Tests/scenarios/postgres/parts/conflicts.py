"""PostgreSQL and a node change the same rows while a part between them is down: what wins is the same on both sides, and as documented."""

from shared.waiting import eventually, expect_equal, wait_for_clock_tick

COLUMNS = ("title", "stock", "manual")
BEFORE = ("before", 1, "before")

#: What happens to a row, in this order, and what it is then: (title, stock, manual), or None. `edge` and `pg` are statements; a row with
#: the title `new` does not exist before.
CASES = {
    "other column, the edge first": ([("edge", "UPDATE {} SET title = 'edge'"), ("pg", "UPDATE {} SET stock = 2")], ("edge", 2, "before")),
    "other column, PostgreSQL first": ([("pg", "UPDATE {} SET stock = 2"), ("edge", "UPDATE {} SET title = 'edge'")], ("edge", 2, "before")),
    "same column, the edge first": ([("edge", "UPDATE {} SET stock = 3"), ("pg", "UPDATE {} SET stock = 2")], ("before", 2, "before")),
    "same column, PostgreSQL first": ([("pg", "UPDATE {} SET stock = 2"), ("edge", "UPDATE {} SET stock = 3")], ("before", 3, "before")),
    "an update that changes nothing": ([("edge", "UPDATE {} SET stock = 3"), ("pg", "UPDATE {} SET stock = stock")], ("before", 3, "before")),
    "an update of a column of PostgreSQL's alone": (
        [("edge", "UPDATE {} SET stock = 3"), ("pg", "UPDATE {} SET checked = clock_timestamp()")], ("before", 3, "before")),
    "the same value on both sides": (
        [("pg", "UPDATE {} SET stock = 2"), ("edge", "UPDATE {} SET stock = 2, title = 'edge'"), ("pg", "UPDATE {} SET manual = 'pg'")],
        ("edge", 2, "pg")),
    "there and back": (
        [("edge", "UPDATE {} SET stock = 2"), ("pg", "UPDATE {} SET stock = 3"), ("edge", "UPDATE {} SET stock = 1")], ("before", 1, "before")),
    "the edge deletes, PostgreSQL updates": ([("edge", "DELETE FROM {}"), ("pg", "UPDATE {} SET stock = 2")], None),
    "PostgreSQL updates, the edge deletes": ([("pg", "UPDATE {} SET stock = 2"), ("edge", "DELETE FROM {}")], None),
    "PostgreSQL deletes, the edge updates": ([("pg", "DELETE FROM {}"), ("edge", "UPDATE {} SET stock = 2")], None),
    "the edge updates, PostgreSQL deletes": ([("edge", "UPDATE {} SET stock = 2"), ("pg", "DELETE FROM {}")], None),
    "both delete": ([("edge", "DELETE FROM {}"), ("pg", "DELETE FROM {}")], None),
    "the edge deletes, PostgreSQL inserts again": (
        [("edge", "DELETE FROM {}"), ("pg", "DELETE FROM {}"), ("pg", "INSERT INTO {} VALUES ('pg', 2, 'pg')")], ("pg", 2, "pg")),
    "PostgreSQL inserts again, the edge deletes": (
        [("pg", "DELETE FROM {}"), ("pg", "INSERT INTO {} VALUES ('pg', 2, 'pg')"), ("edge", "DELETE FROM {}")], None),
    "PostgreSQL deletes, the edge inserts again": (
        [("pg", "DELETE FROM {}"), ("edge", "DELETE FROM {}"), ("edge", "INSERT INTO {} VALUES ('edge', 3, 'edge')")], ("edge", 3, "edge")),
    "the edge inserts again, PostgreSQL deletes": (
        [("edge", "DELETE FROM {}"), ("edge", "INSERT INTO {} VALUES ('edge', 3, 'edge')"), ("pg", "DELETE FROM {}")], None),
    "both insert again, PostgreSQL last": (
        [("edge", "DELETE FROM {}"), ("edge", "INSERT INTO {} VALUES ('edge', 3, 'edge')"), ("pg", "DELETE FROM {}"),
         ("pg", "INSERT INTO {} VALUES ('pg', 2, 'pg')")], ("pg", 2, "pg")),
    "new row, the edge first": (
        [("edge", "INSERT INTO {} VALUES ('edge', 3, 'edge')"), ("pg", "INSERT INTO {} VALUES ('pg', 2, 'pg')")], ("pg", 2, "pg")),
    "new row, PostgreSQL first": (
        [("pg", "INSERT INTO {} VALUES ('pg', 2, 'pg')"), ("edge", "INSERT INTO {} VALUES ('edge', 3, 'edge')")], ("edge", 3, "edge")),
}


def run(rig):
    hub, phone, reader, writer = rig.add_both_ways()
    rig.driver.start(hub, phone)
    reader.start()
    writer.start()
    rig.send_barrier_to_edge(phone)
    rig.send_barrier_to_postgres(phone)

    for down in rig.victims:
        if down is rig.server:
            continue
        keys = {case: f"{down.name}: {case}" for case in CASES}
        for case, key in keys.items():
            if not case.startswith("new row"):
                _execute(rig, phone, "edge", f"INSERT INTO {{}} VALUES {BEFORE!r}", key)
        rig.send_barrier_to_postgres(phone)
        eventually("the first rows are in PostgreSQL", lambda: len(_rows(rig.server.execute, down.name)) == len(CASES) - 2)
        down.kill()
        _change(rig, phone, keys)
        down.start()
        for _ in range(2):
            rig.driver.settle(hub, phone)
            rig.send_barrier_to_edge(hub, phone)
            rig.send_barrier_to_postgres(phone)
        expected = {keys[case]: row for case, (_, row) in CASES.items() if row is not None}
        for name, execute in (("PostgreSQL", rig.server.execute), ("the edge", hub.rows)):
            eventually(f"{name} has the rows that are right", lambda: _differences(_rows(execute, down.name), expected))
        expect_equal(_rows(phone.rows, down.name), expected, "the rows of the other node")
    return f"{len(CASES)} conflicts, while each of {', '.join(victim.name for victim in rig.victims if victim is not rig.server)} was down"


def _change(rig, node, keys):
    """Makes the changes of all cases, step by step. All changes of a step come later than those of the one before."""
    for step in range(max(len(steps) for steps, _ in CASES.values())):
        wait_for_clock_tick()
        for case, (steps, _) in CASES.items():
            if step < len(steps):
                _execute(rig, node, *steps[step], keys[case])


def _execute(rig, node, side, statement, key):
    if statement.startswith("INSERT"):
        # What the other side has inserted may have arrived already.
        statement = (statement.format(f"product ({', '.join(COLUMNS)}, code)").removesuffix(")") + ", ?) ON CONFLICT (code) DO UPDATE SET "
                     + ", ".join(f"{column} = excluded.{column}" for column in COLUMNS))
    else:
        statement = f"{statement.format('product')} WHERE code = ?"
    if side == "edge":
        node.write((statement, (key,)))
    else:
        rig.server.execute(statement.replace("?", "%s"), (key,))


def _rows(execute, prefix):
    rows = execute(f"SELECT code, {', '.join(COLUMNS)} FROM product WHERE code LIKE '{prefix}%'")
    return {key: tuple(values) for key, *values in rows}


def _differences(actual, expected):
    wrong = [f"{key}: {actual.get(key)} instead of {expected.get(key)}" for key in sorted(actual.keys() | expected.keys())
             if actual.get(key) != expected.get(key)]
    return (False, "; ".join(wrong)) if wrong else True
