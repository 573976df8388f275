"""PostgreSQL and two nodes change the same rows at once, whatever is killed: in the end all have the same rows."""

#: Updates that change nothing for the nodes. They must not make a row look newer than a record.
TOUCHES = ("UPDATE product SET checked = clock_timestamp() WHERE code = ?", "UPDATE product SET title = title WHERE code = ?")


def run(rig):
    hub, phone, reader, writer = rig.add_both_ways()
    rig.driver.start(hub, phone)
    rig.start_both_ways(reader, writer)
    for node in (hub, phone):
        rig.add_edge_writer(node, shares_rows=True)
    rig.add_postgres_writer("till", shares_rows=True, touches=TOUCHES)
    kills = rig.storm()

    def wait():
        rig.send_barrier_to_edge(hub, phone)
        rig.driver.settle(hub, phone)
        rig.send_barrier_to_postgres(phone)
        return rig.wait_until_equal(rig.postgres_rows, lambda table: rig.edge_rows(hub, table), ("PostgreSQL", "the edge"))

    wait()
    # Equal rows could still be on their way to differ: what follows the last write comes before these barriers.
    equal = wait()
    rig.expect_written(rig.postgres_rows)
    rig.expect_written(lambda table: rig.edge_rows(phone, table))
    return rig.summary(kills, equal)
