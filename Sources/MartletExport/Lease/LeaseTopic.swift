import Foundation
package import MartletBus
import Synchronization

/// The lease of an export on its topic. Used by one thread.
package final class LeaseTopic {
    /// How long the topic may take to return what was sent, or the next of what it has.
    private static let patience = Duration.seconds(10)
    private static let key = Array("lease".utf8)
    /// How many of the newest offsets of a partition a new connection reads. The broker compacts no segment that is
    /// still written to, so the topic may have the renewals of a week: more than a hundred thousand. The newest record
    /// has all that counts.
    private static let tail: Int64 = 1000

    /// Why the broker has not taken a record of a producer.
    private final class Refusal: Sendable {
        let error = Mutex<BusError?>(nil)
    }

    package private(set) var lease: ExportLease
    private let bus: any Bus
    private let now: @Sendable () -> ContinuousClock.Instant
    private let waitingClock: () -> ContinuousClock.Instant
    private let isStopped: () -> Bool
    private var consumer: (any BusConsumer)?
    private var producer: (any BusProducer)?
    private var refusal = Refusal()
    /// The offset up to which each partition was read.
    private var read: [Int32: Int64] = [:]

    /// - Parameter waitingClock: measures how long the topic takes.
    package init(
        _ lease: ExportLease, _ bus: any Bus, now: @escaping @Sendable () -> ContinuousClock.Instant,
        waitingClock: @escaping () -> ContinuousClock.Instant = { .now }, isStopped: @escaping () -> Bool
    ) {
        self.lease = lease
        self.bus = bus
        self.now = now
        self.waitingClock = waitingClock
        self.isStopped = isStopped
    }

    deinit { disconnect() }

    /// Reads what is new, and claims or renews the lease if it is time.
    ///
    /// - Returns: true if this run may export now.
    /// - Throws: ``/MartletBus/BusError``; the next call connects again.
    package func hold() throws -> Bool {
        do {
            try readToEnd()
            // If this process was stopped or the machine slept, the others look silent until their records have come.
            if lease.mayClaim(at: now()) { try readToEndOfBroker() }
            if let record = lease.next(at: now()) { try sendAndReadBack(record) }
        } catch {
            disconnect()
            throw error
        }
        return lease.mayExport(at: now())
    }

    /// Returns true if this run may still export. Renews the lease if that is due.
    package func stillHolds() throws -> Bool {
        if lease.mayExport(at: now()), !lease.isRenewalDue(at: now()) { return true }
        return try hold()
    }

    /// Gives the lease back, so that another node need not wait. Best effort.
    package func release() {
        if let record = lease.release(at: now()), let producer {
            // If it gets lost, the others wait until the lease has run out.
            try? send(record, producer)
            _ = producer.flush(timeout: .seconds(2))
        }
        disconnect()
    }

    package func disconnect() {
        consumer?.close()
        producer?.close()
        (consumer, producer) = (nil, nil)
        read = [:]
    }

    private func connected() throws -> any BusConsumer {
        if let consumer { return consumer }
        let made = try bus.makeConsumer()
        consumer = made
        let count = try made.partitionCount(timeout: .seconds(5))
        let begin = try (0..<Int32(count)).map { partition in
            let marks = try made.watermarks(partition: partition, timeout: .seconds(5))
            return PartitionPosition(partition: partition, offset: max(marks.low, marks.high - Self.tail))
        }
        try made.assign(begin)
        for position in begin { noteRead(position.partition, position.offset) }
        // What was read on an earlier connection is read again, and changes nothing.
        let ends = try (0..<Int32(count)).map { try made.watermarks(partition: $0, timeout: .seconds(5)) }
        var left = Set(ends.indices.filter { ends[$0].high > ends[$0].low }.map { Int32($0) })
        var deadline = deadline
        while !left.isEmpty {
            let batch = try poll(made, .milliseconds(200), until: deadline)
            if !batch.messages.isEmpty { deadline = self.deadline }
            for message in batch.messages
            where message.position.offset + 1 >= ends[Int(message.position.partition)].high {
                left.remove(message.position.partition)
            }
            for case .endOfPartition(let position) in batch.events { left.remove(position.partition) }
        }
        return made
    }

    private func noteRead(_ partition: Int32, _ offset: Int64) {
        read[partition] = max(read[partition] ?? 0, offset)
    }

    /// Asks the broker for the end of the topic, and reads up to it.
    private func readToEndOfBroker() throws {
        let consumer = try connected()
        var deadline = deadline
        for partition in read.keys.sorted() {
            let end = try consumer.watermarks(partition: partition, timeout: .seconds(5)).high
            while read[partition] ?? end < end {
                let batch = try poll(consumer, .milliseconds(200), until: deadline)
                if !batch.messages.isEmpty { deadline = self.deadline }
            }
        }
    }

    /// The wait is short: the topic is small, and what comes later is read by the next call.
    private func readToEnd() throws {
        let consumer = try connected()
        while try !poll(consumer, .milliseconds(1), until: deadline).messages.isEmpty {}
    }

    private func sendAndReadBack(_ record: LeaseRecord) throws {
        let consumer = try connected()
        let producer = try self.producer ?? makeProducer()
        try send(record, producer)
        let deadline = deadline
        var isBack = false
        while !isBack {
            if let error = refusal.error.withLock({ $0 }) { throw error }
            let batch = try poll(consumer, .milliseconds(200), until: deadline)
            isBack = batch.messages.contains { decode($0) == record }
        }
    }

    private func makeProducer() throws -> any BusProducer {
        let refusal = Refusal()
        let topic = bus.topic
        let made = try bus.makeProducer { acknowledgement in
            guard case .failure(let error) = acknowledgement.result else { return }
            var described = error
            described.message = "topic \(topic): \(error.message)"
            refusal.error.withLock { [described] in $0 = $0 ?? described }
        }
        self.refusal = refusal
        producer = made
        return made
    }

    private func send(_ record: LeaseRecord, _ producer: any BusProducer) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try producer.send(
            OutgoingMessage(
                key: Self.key, headers: [], payload: Array(try encoder.encode(record)), tag: UInt64(record.beat)))
    }

    private var deadline: ContinuousClock.Instant { waitingClock() + Self.patience }

    private func poll(
        _ consumer: any BusConsumer, _ timeout: Duration, until deadline: ContinuousClock.Instant
    ) throws -> ConsumerBatch {
        if isStopped() { throw CancellationError() }
        guard waitingClock() < deadline else {
            throw BusError(.timedOut, "the topic \(bus.topic) does not return what it has", isRetriable: true)
        }
        let batch = try consumer.poll(maxCount: 100, timeout: timeout)
        for event in batch.events {
            switch event {
            case .endOfPartition(let position): noteRead(position.partition, position.offset)
            case .error(let error): throw error
            case .disconnected(let reason): throw BusError(.unreachable, reason, isRetriable: true)
            case .offsetOutOfRange:
                throw BusError(.other, "the topic \(bus.topic) was replaced while it was read", isRetriable: true)
            }
        }
        for message in batch.messages {
            noteRead(message.position.partition, message.position.offset + 1)
            if let record = decode(message) { lease.note(record, at: now()) }
        }
        return batch
    }

    private func decode(_ message: IncomingMessage) -> LeaseRecord? {
        guard message.key == Self.key, message.problem == nil, message.cut == nil else { return nil }
        return try? JSONDecoder().decode(LeaseRecord.self, from: Data(message.payload))
    }
}
