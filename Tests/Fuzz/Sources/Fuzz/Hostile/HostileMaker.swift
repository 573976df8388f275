import Foundation
import SwiftProtobuf

// Decoders are internal to the package. Debug builds make them accessible to the package of the fuzzer.
@testable import MartletBus
@testable import MartletCore
@testable import MartletWire

/// Makes decodable messages of values that no node sends: each field at the ends of its range, and in contradiction to
/// others.
struct HostileMaker {
    var choose: ChoiceReader
    /// The nodes for which messages are forged. Without keys, anybody can forge messages of any node; the good node is
    /// not among these, because its messages must still be applied.
    let origins: [NodeID]
    let now: Int64

    // MARK: Transactions

    mutating func time() -> UInt64 {
        switch choose.choice(4) {
        case 0: HybridTime(milliseconds: now).rawValue
        case 1: HybridTime(milliseconds: now + Int64(choose.byte()) * 1000).rawValue
        case 2: HybridTime(milliseconds: now - Int64(choose.byte()) * 1000).rawValue
        default: choose.unsigned()
        }
    }

    mutating func origin() -> Data {
        choose.isRare(12) ? choose.data() : Data(choose.pick(origins).bytes)
    }

    mutating func value(_ depth: Int = 0) -> WireValue {
        var value = WireValue()
        switch choose.choice(9) {
        case 0: value.integer = choose.integer()
        case 1: value.text = choose.text()
        case 2: value.null = true
        case 3:
            value.real = choose.pick([
                0, -0.0, 1.5, .infinity, -.infinity, .nan, .greatestFiniteMagnitude, .leastNonzeroMagnitude, 1e18,
            ])
        case 4: value.blob = choose.data()
        case 5: value.rawText = choose.data()
        case 6: value.reference = reference(depth)
        case 7: break
        default: value.integer = Int64(choose.byte())
        }
        return value
    }

    private mutating func reference(_ depth: Int) -> WireReference {
        var reference = WireReference()
        reference.entity = choose.text()
        if depth < 3 { reference.identity = identity(depth + 1) }
        // As deep as a message may be nested, and deeper.
        for _ in 0..<(choose.isLong(6) ? 60 : 0) {
            var outer = WireReference()
            outer.entity = reference.entity
            var value = WireValue()
            value.reference = reference
            outer.identity = [value]
            reference = outer
        }
        return reference
    }

    mutating func identity(_ depth: Int = 0) -> [WireValue] {
        guard choose.choice(4) > 0 else { return values(depth) }
        var value = WireValue()
        value.text = "k\(choose.choice(8))"
        return [value]
    }

    private mutating func values(_ depth: Int = 0) -> [WireValue] {
        let count = choose.choice(4)
        if count == 3, choose.isLong(4) { return Array(repeating: value(depth), count: 2000) }
        return (0..<count).map { _ in value(depth) }
    }

    private mutating func names() -> [String] { choose.list(2, long: 2000) { $0.text() } }

    private mutating func columns() -> [WireColumn] {
        let count = choose.choice(4)
        let isLong = count == 3 && choose.isLong(4)
        let columns = (0..<(isLong ? 1 : count)).map { _ in
            var column = WireColumn()
            column.name =
                choose.choice(3) > 0 ? choose.pick(["key", "value", "name", "budget", "trip"]) : choose.text()
            column.value = value()
            column.replaces = choose.isRare(3) ? time() : 0
            if choose.isRare(6) { column.formerNames = names() }
            return column
        }
        return isLong ? Array(repeating: columns[0], count: 2000) : columns
    }

    mutating func change() -> WireChange {
        var change = WireChange()
        change.entity = choose.choice(4) > 0 ? choose.pick(["setting", "trip", "stop"]) : choose.text()
        change.kind = choose.pick([.insert, .update, .delete, .unspecified, .UNRECOGNIZED(99)])
        change.identity = identity()
        change.columns = columns()
        if choose.isRare(4) { change.tombstone = columns() }
        if choose.isRare(4) { change.clockStep = choose.unsigned() }
        if choose.isRare(3) { change.localID = choose.integer() }
        if choose.isRare(3) { change.replaces = time() }
        if choose.isRare(6) { change.formerEntities = names() }
        return change
    }

    mutating func transaction() -> WireTransaction {
        var transaction = WireTransaction()
        transaction.format = choose.isRare(10) ? UInt32(truncatingIfNeeded: choose.integer()) : 1
        transaction.origin = origin()
        transaction.sequence = choose.choice(4) > 0 ? UInt64(choose.byte()) : choose.unsigned()
        transaction.hlc = time()
        if choose.isRare(4) { transaction.author = choose.text() }
        transaction.timestampMs = choose.isRare(3) ? choose.integer() : now
        transaction.originName = choose.text()
        let count = choose.choice(5)
        transaction.changes =
            count == 4 && choose.isLong(4)
            ? Array(repeating: change(), count: 1000) : (0..<count).map { _ in change() }
        if choose.isRare(6) { transaction.clockNode = origin() }
        if choose.isRare(5) { transaction.restates = choose.list(long: 20_000) { $0.unsigned() } }
        return transaction
    }

    /// A message of any kind for the topic of transactions, including kinds that belong to other topics.
    mutating func message() -> OutgoingMessage {
        choose.beginMessage()
        let transaction = transaction()
        var payload: [UInt8]
        switch choose.choice(12) {
        case 8: payload = (try? transaction.jsonUTF8Bytes()) ?? []
        case 9: payload = encoded(check())
        case 10: payload = (try? SnapshotFormat.encode(.header(header()))) ?? []
        // The decompressed size of a few hundred bytes on the topic.
        case 11: payload = [UInt8](repeating: choose.byte(), count: 1 << choose.choice(20))
        default: payload = encoded(transaction)
        }
        let sequence = choose.isRare(4) ? choose.integer() : Int64(clamping: transaction.sequence)
        var headers = [
            MessageHeader(WireHeader.format, "protobuf"),
            MessageHeader(
                WireHeader.origin, NodeID(bytes: transaction.origin).map(\.description) ?? choose.text()),
            MessageHeader(WireHeader.sequence, choose.isRare(20) ? choose.text() : "\(sequence)"),
        ]
        if choose.isRare(3) {
            let small = choose.choice(3) > 0
            let (index, count) = (small ? Int64(choose.choice(4)) : choose.integer(), small ? 4 : choose.integer())
            headers.append(MessageHeader(WireHeader.chunk, "\(index)/\(count)"))
            if choose.isRare(2) { headers.append(MessageHeader(WireHeader.size, "\(choose.integer())")) }
            if choose.isRare(2) { payload = Array(payload.prefix(1000)) }
        }
        if choose.isRare(8) { headers.append(MessageHeader(WireHeader.keyID, choose.text())) }
        if choose.isRare(8) { headers.append(MessageHeader("traceparent", choose.text())) }
        if choose.isRare(8) { headers.append(MessageHeader(choose.text(), choose.text())) }
        if choose.isRare(8) { headers.append(MessageHeader(WireHeader.signature, choose.text())) }
        if !choose.isRare(8) { headers.append(MessageHeader(WireHeader.checksum, CRC32.digits(payload))) }
        return OutgoingMessage(
            key: choose.isRare(10) ? Array(choose.data()) : [1], headers: headers, payload: payload, tag: 0)
    }

    private func encoded(_ message: some SwiftProtobuf.Message) -> [UInt8] { (try? message.serializedBytes()) ?? [] }

    // MARK: Snapshots

    private mutating func stamp(_ header: WireSnapshotHeader) -> WireSnapshotStamp {
        var stamp = WireSnapshotStamp()
        stamp.hlc = choose.isRare(4) ? choose.unsigned() : header.hlc &- UInt64(choose.byte())
        stamp.node = choose.isRare(6) ? UInt32(truncatingIfNeeded: choose.integer()) : 0
        return stamp
    }

    mutating func header() -> WireSnapshotHeader {
        var header = WireSnapshotHeader()
        header.snapshot = Data(choose.pick(origins).bytes)
        header.maker = origin()
        header.makerName = choose.text()
        header.madeMs = choose.isRare(3) ? choose.integer() : now
        header.hlc = time()
        header.topic = choose.isRare(6) ? choose.text() : "t"
        header.partitionCount = choose.isRare(4) ? UInt32(truncatingIfNeeded: choose.integer()) : 1
        header.nodes = [Data(choose.pick(origins).bytes)] + choose.list(2) { $0.data() }
        header.collected = choose.isRare(3) ? time() : 0
        let positions = choose.choice(3)
        header.positions = (0..<positions).map { _ in position() }
        let count = choose.choice(4)
        header.origins = (0..<count).map { _ in snapshotOrigin() }
        var setting = WireSnapshotEntity()
        setting.name = choose.isRare(6) ? choose.text() : "setting"
        setting.formerNames = choose.isRare(8) ? names() : []
        setting.columns = ["key", "value"].map { name in
            var column = WireSnapshotColumn()
            column.name = choose.isRare(8) ? choose.text() : name
            return column
        }
        header.entities = choose.isLong(8) ? Array(repeating: setting, count: 300) : [setting]
        return header
    }

    private mutating func position() -> WireSnapshotPosition {
        var position = WireSnapshotPosition()
        position.partition = choose.isRare(3) ? Int32(truncatingIfNeeded: choose.integer()) : 7
        position.next = choose.integer()
        position.origin = choose.isRare(3) ? choose.data() : Data()
        position.sequence = choose.isRare(3) ? choose.unsigned() : 0
        if choose.isRare(3) { position.appendedMs = choose.integer() }
        return position
    }

    private mutating func snapshotOrigin() -> WireSnapshotOrigin {
        var one = WireSnapshotOrigin()
        one.node = origin()
        one.name = choose.text()
        one.applied = choose.unsigned()
        if choose.isRare(6) {
            // Many valid gaps.
            one.gaps = (0..<(1 + UInt64(choose.choice(60)) * 200)).map { Self.gap($0 * 4 + 1, $0 * 4 + 2) }
            one.applied = max(one.applied, 60_000)
        } else {
            let count = choose.choice(4)
            one.gaps = (0..<count).map { _ in Self.gap(choose.unsigned(), choose.unsigned()) }
        }
        return one
    }

    private static func gap(_ first: UInt64, _ last: UInt64) -> WireSnapshotRange {
        var gap = WireSnapshotRange()
        (gap.first, gap.last) = (first, last)
        return gap
    }

    mutating func contents(of header: WireSnapshotHeader) -> WireSnapshotContents {
        var contents = WireSnapshotContents()
        let rows = choose.choice(4)
        contents.rows = (0..<rows).map { _ in row(header) }
        let tombstones = choose.choice(3)
        contents.tombstones = (0..<tombstones).map { _ in
            var tombstone = WireSnapshotTombstone()
            tombstone.entity = choose.isRare(8) ? UInt32(truncatingIfNeeded: choose.integer()) : 0
            tombstone.identity = identity()
            tombstone.deleted = stamp(header)
            tombstone.lasting = choose.isRare(2)
            return tombstone
        }
        if choose.isRare(3) {
            let transaction = transaction()
            contents.deferred = Array(repeating: Data(encoded(transaction)), count: 1 + choose.choice(3))
        }
        let chunks = choose.isRare(2) ? choose.choice(4) : 0
        contents.chunks = (0..<chunks).map { _ in
            var chunk = WireSnapshotChunk()
            chunk.origin = origin()
            chunk.sequence = choose.unsigned()
            chunk.index = UInt32(truncatingIfNeeded: choose.integer())
            chunk.count = UInt32(truncatingIfNeeded: choose.integer())
            chunk.payload = choose.data()
            return chunk
        }
        return contents
    }

    private mutating func row(_ header: WireSnapshotHeader) -> WireSnapshotRow {
        var row = WireSnapshotRow()
        row.entity = choose.isRare(8) ? UInt32(truncatingIfNeeded: choose.integer()) : 0
        row.identity = identity()
        row.values = choose.isRare(5) ? values() : row.identity + [value()]
        if choose.isRare(5) { row.columns = choose.list(long: 2000) { UInt32(truncatingIfNeeded: $0.integer()) } }
        if !choose.isRare(6) { row.inserted = stamp(header) }
        if choose.isRare(3) { row.deleted = stamp(header) }
        let exceptions = choose.choice(3)
        row.exceptions = (0..<exceptions).map { _ in
            var exception = WireSnapshotException()
            exception.column = choose.isRare(3) ? UInt32(truncatingIfNeeded: choose.integer()) : 1
            exception.stamp = stamp(header)
            return exception
        }
        if choose.isRare(4) { row.localID = choose.integer() }
        return row
    }

    /// A snapshot that could be loaded except for its values, or one with false headers.
    mutating func snapshot() throws -> [OutgoingMessage] {
        choose.beginMessage()
        var header = header()
        let id = NodeID(UUID())
        let maker = NodeID(bytes: header.maker) ?? origins[0]
        if !choose.isRare(8) {
            header.snapshot = Data(id.bytes)
            header.maker = Data(maker.bytes)
        }
        var parts = [try SnapshotFormat.encode(.header(header))]
        var trailer = WireSnapshotTrailer()
        let count = choose.choice(3)
        for _ in 0..<count {
            let contents = contents(of: header)
            trailer.rows &+= UInt64(contents.rows.count)
            trailer.tombstones &+= UInt64(contents.tombstones.count)
            parts.append(try SnapshotFormat.encode(.contents(contents)))
        }
        trailer.parts = UInt64(parts.count)
        trailer.digest = Data(parts.reduce([]) { SnapshotFormat.digest($0, $1) })
        if choose.isRare(6) { (trailer.rows, trailer.parts) = (choose.unsigned(), choose.unsigned()) }
        parts.append(try SnapshotFormat.encode(.trailer(trailer)))
        var framer = SnapshotFramer(snapshot: id, maker: maker, slot: 0, maxBytes: 20_000)
        var messages: [OutgoingMessage] = []
        for (index, part) in parts.enumerated() { messages += framer.messages(part, isLast: index == parts.count - 1) }
        guard choose.isRare(4) else { return messages }
        for index in messages.indices where choose.isRare(3) {
            for name in [SnapshotMessageHeader.number, SnapshotMessageHeader.part, SnapshotMessageHeader.count]
            where choose.isRare(2) {
                messages[index].headers.removeAll { $0.name == name }
                messages[index].headers.append(MessageHeader(name, "\(choose.integer())"))
            }
            if choose.isRare(2) {
                messages[index].headers.removeAll { $0.name == WireHeader.chunk }
                messages[index].headers.append(
                    MessageHeader(WireHeader.chunk, "\(choose.integer())/\(choose.integer())"))
            }
        }
        return messages
    }

    // MARK: Checks

    private mutating func checked(_ shape: [UInt8]) -> WireCheckEntity {
        var entity = WireCheckEntity()
        entity.name = choose.isRare(4) ? choose.text() : "setting"
        entity.shape = choose.isRare(6) ? choose.data() : Data(shape)
        entity.ranges = choose.list(17, long: 5000) { choose in
            var range = WireCheckRange()
            range.level = choose.isRare(6) ? UInt32(truncatingIfNeeded: choose.integer()) : UInt32(choose.choice(3))
            range.prefix = choose.isRare(6) ? UInt32(truncatingIfNeeded: choose.integer()) : 0
            range.rows = choose.isRare(3) ? choose.unsigned() : UInt64(choose.choice(3))
            range.digest = range.rows == 0 ? Data() : Data(choose.bytes(16))
            return range
        }
        return entity
    }

    /// - Parameter shape: the shape of the table of settings.
    mutating func check(_ shape: [UInt8] = []) -> WireCheckMessage {
        var wire = WireCheckMessage()
        choose.beginMessage()
        wire.format = choose.isRare(12) ? UInt32(truncatingIfNeeded: choose.integer()) : 1
        wire.check = choose.isRare(8) ? choose.data() : Data(choose.pick(origins).bytes)
        wire.step = choose.isRare(4) ? UInt32(truncatingIfNeeded: choose.integer()) : UInt32(choose.choice(4))
        wire.header = header()
        // The node answers at once only if it has everything that the check's header names.
        if choose.choice(3) > 0 { wire.header.origins = [] }
        let digests = choose.choice(3)
        wire.digests = (0..<digests).map { _ in checked(shape) }
        if choose.isLong(8) { wire.digests = Array(repeating: checked(shape), count: 5000) }
        let covered = choose.choice(3)
        wire.covered = (0..<covered).map { _ in checked(shape) }
        if !choose.isRare(3) { wire.contents = contents(of: wire.header) }
        wire.ignored = choose.isRare(3) ? choose.unsigned() : 0
        return wire
    }
}
