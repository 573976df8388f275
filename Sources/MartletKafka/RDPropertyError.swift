import CRdKafka

/// librdkafka's rejection of a property. Its text may contain the value, except for secrets.
struct RDPropertyError: Error {
    var name: String
    var reason: String
    /// True if librdkafka has no property of that name.
    var isUnknown = false
}

/// Sets one property of a configuration object.
func rdSetProperty(_ configuration: OpaquePointer?, _ name: String, _ value: String) throws(RDPropertyError) {
    var (code, reason) = (RD_KAFKA_CONF_OK, "")
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
        buffer.initialize(repeating: 0)
        code = rd_kafka_conf_set(configuration, name, value, buffer.baseAddress, buffer.count)
        reason = buffer.baseAddress.map { String(cString: $0) } ?? ""
    }
    guard code != RD_KAFKA_CONF_OK else { return }
    if code == RD_KAFKA_CONF_UNKNOWN {
        reason = "librdkafka \(String(cString: rd_kafka_version_str())) has no such property"
    } else if RDProperties.isSecret(name) {
        reason = "librdkafka refuses this value"
    }
    throw RDPropertyError(name: name, reason: reason, isUnknown: code == RD_KAFKA_CONF_UNKNOWN)
}
