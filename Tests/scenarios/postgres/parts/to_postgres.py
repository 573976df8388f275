"""What two nodes write is in PostgreSQL, whatever is killed: the agents, the writing program, and PostgreSQL."""


def run(rig):
    nodes = [rig.add_node("hub", rig.export_settings()), rig.add_node("phone")]
    rig.add_server()
    writer = rig.add_writer_program()
    rig.driver.start(*nodes)
    writer.start()
    for node in nodes:
        rig.add_edge_writer(node, shares_rows=True)
    kills = rig.storm()
    rig.driver.settle(*nodes)

    rig.send_barrier_to_postgres(nodes[1])
    equal = rig.wait_until_equal(rig.postgres_rows, lambda table: rig.edge_rows(nodes[0], table), ("PostgreSQL", "the edge"))
    rig.expect_written(rig.postgres_rows)
    return rig.summary(kills, equal)
