"""What several suites use: brokers, drivers of nodes, proxies, workloads, deadlines."""
