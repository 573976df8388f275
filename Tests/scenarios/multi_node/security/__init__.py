"""A Kafka listener that requires TLS, SASL or ACLs, in front of a plaintext broker."""
