"""Scenarios with several nodes, as processes or containers: convergence, kill -9, TLS, SASL, access control, copied stores."""
