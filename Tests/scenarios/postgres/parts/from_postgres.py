"""What is written to PostgreSQL is on the nodes, whatever is killed: the agents, the reading program, and PostgreSQL."""


def run(rig):
    nodes = [rig.add_node("hub", rig.ingest_settings()), rig.add_node("phone")]
    rig.add_server()
    rig.publish()
    rig.add_postgres_writer("till", shares_rows=True)
    rig.add_postgres_writer("desk", shares_rows=True)
    reader = rig.add_reader()
    rig.driver.start(*nodes)
    reader.start()
    kills = rig.storm()

    rig.send_barrier_to_edge(*nodes)
    rig.driver.settle(*nodes)
    equal = rig.wait_until_equal(rig.postgres_rows, lambda table: rig.edge_rows(nodes[1], table), ("PostgreSQL", "the edge"))
    rig.expect_written(rig.postgres_rows)
    rig.expect_written(lambda table: rig.edge_rows(nodes[0], table))
    return rig.summary(kills, equal)
