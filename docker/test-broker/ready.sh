#!/bin/bash
# Whether the broker takes connections: for the health check of the compose files, which names this file as Apache Kafka has it.
exec 3<>"/dev/tcp/$(hostname -i)/9092"
