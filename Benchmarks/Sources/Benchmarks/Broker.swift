import CBaseline
import Foundation
import Logging

/// The Kafka broker that benchmarks share: the given one, or one that is started when first needed.
final class Broker {
    private var address: String?
    private var script: String?
    private var hasTried = false

    init(given: String?) { address = given ?? ProcessInfo.processInfo.environment["MARTLET_TEST_BOOTSTRAP"] }

    /// The address of the broker, or nil if none is available.
    func bootstrap() -> String? {
        if address != nil || hasTried { return address }
        hasTried = true
        guard
            let script = ["scripts/test-broker.sh", "../scripts/test-broker.sh"].first(
                where: FileManager.default.fileExists)
        else { return nil }
        guard let output = try? Self.run(script, "start"), let range = output.range(of: "MARTLET_TEST_BOOTSTRAP=")
        else { return nil }
        self.script = script
        address = output[range.upperBound...].trimmingCharacters(in: .whitespacesAndNewlines)
        return address
    }

    /// Stops the broker if it was started by this object.
    func stop() {
        if let script { _ = try? Self.run(script, "stop") }
        script = nil
    }

    /// Creates a topic with one partition.
    static func makeTopic(_ bootstrap: String) throws -> String {
        let topic = "bench-\(UUID().uuidString.prefix(8))"
        guard baseline_create_topic(bootstrap, topic) == 0 else { throw Failure("The topic could not be made.") }
        return topic
    }

    /// Runs the script and returns its output. Doesn't use Foundation's `Process`, which waits until every descendant
    /// has closed an inherited socket: here that includes the broker, which keeps running.
    private static func run(_ script: String, _ command: String) throws -> String {
        guard let stream = popen("bash \(script) \(command)", "r") else { throw Failure("\(script) could not be run.") }
        var output = ""
        while let character = UnicodeScalar(Int(fgetc(stream))) { output.unicodeScalars.append(character) }
        guard pclose(stream) == 0 else { throw Failure("\(script) failed.") }
        return output
    }
}

extension UnicodeScalar {
    /// Nil at the end of a stream.
    fileprivate init?(_ byte: Int) {
        guard let byte = UInt8(exactly: byte) else { return nil }
        self.init(byte)
    }
}

/// The settings of Martlet's Kafka clients, for clients in C.
struct KafkaProperties {
    let bootstrap: String

    var producer: [(String, String)] {
        [
            ("bootstrap.servers", bootstrap), ("message.max.bytes", "1000000"), ("linger.ms", "0"),
            ("compression.codec", "lz4"), ("queue.buffering.max.kbytes", "16384"), ("message.timeout.ms", "0"),
            ("partitioner", "murmur2_random"), ("enable.idempotence", "true"), ("enable.gapless.guarantee", "true"),
            ("acks", "all"), ("max.in.flight", "5"),
        ]
    }

    var consumer: [(String, String)] {
        [
            ("bootstrap.servers", bootstrap), ("group.id", "martlet.baseline"), ("queued.max.messages.kbytes", "8192"),
            ("fetch.wait.max.ms", "500"), ("enable.auto.commit", "false"), ("enable.partition.eof", "true"),
        ]
    }

    /// Calls `body` with the properties in C's representation.
    static func withProperties<T>(
        _ list: [(String, String)], _ body: (UnsafePointer<baseline_property>?, Int32) throws -> T
    ) rethrows -> T {
        let copies = list.map { (strdup($0.0), strdup($0.1)) }
        defer {
            for (name, value) in copies {
                free(name)
                free(value)
            }
        }
        let properties = copies.map { baseline_property(name: UnsafePointer($0.0), value: UnsafePointer($0.1)) }
        return try properties.withUnsafeBufferPointer { try body($0.baseAddress, Int32($0.count)) }
    }
}

extension Logger {
    /// Logs errors only: librdkafka warns about intended settings.
    static let quiet = {
        var logger = Logger(label: "benchmarks")
        logger.logLevel = .error
        return logger
    }()
}
