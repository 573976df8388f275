import Logging

final class KafkaMetrics: Sendable {
    init(role: String, topic: String) {}
    func record(_ json: UnsafeRawBufferPointer, logger: Logger) {}
}
