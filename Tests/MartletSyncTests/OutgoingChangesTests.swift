import Foundation
import MartletSync
import MartletTestSupport
import SwiftProtobuf
import Testing

/// This node's changes, which are encoded as they are added, compared with SwiftProtobuf's objects.
@Suite struct OutgoingChangesTests {
    private struct Column {
        var name: String
        var formerNames: [String]
        var value: Value
        var replaces: HybridTime
    }

    private static func formerNames(_ entity: String) -> [String] { entity.isEmpty ? ["list", ""] : [] }

    private struct Generator {
        var random: SplitMix
        var time = HybridTime(milliseconds: 1_790_000_000_000)

        mutating func count(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

        mutating func text() -> String {
            ["", "a", "task", "é🐦\u{2028}\0", "a name of more than fifteen bytes"].randomElement(using: &random) ?? ""
        }

        mutating func value(depth: Int = 0) -> Value {
            switch count(0...7) {
            case 0: .null
            case 1: .integer([Int64.min, -1, 0, 300, .max].randomElement(using: &random) ?? 0)
            case 2: .real([-0.0, 1.5, .nan, .infinity].randomElement(using: &random) ?? 0)
            case 3: .blob(random.bytes([0, 16, 127, 128, 20_000].randomElement(using: &random) ?? 0))
            case 4: .rawText([0xff] + random.bytes(count(0...200)))
            case 5 where depth < 3:
                .reference(
                    Reference(
                        entity: text(),
                        identity: StableID(values: (0..<count(1...2)).map { _ in value(depth: depth + 1) })))
            default: .text(String(repeating: text(), count: count(0...9)))
            }
        }

        mutating func change() -> (OutgoingChanges.Head, [Column]) {
            if random.next() % 8 != 0 { time = HybridTime(rawValue: time.rawValue + random.next() % 70_000) }
            let head = OutgoingChanges.Head(
                [.insert, .update, .delete].randomElement(using: &random) ?? .insert, of: text(),
                formerNames: (0..<max(0, count(-2...2))).map { _ in text() },
                StableID(values: (0..<count(1...3)).map { _ in value() }), at: time,
                localID: count(0...1) == 0 ? nil : [Int64.min, 0, 7].randomElement(using: &random),
                replaces: count(0...1) == 0 ? .zero : HybridTime(rawValue: random.next()))
            let columns = (0..<count(0...5)).map { _ in
                Column(
                    name: text(), formerNames: count(0...5) == 0 ? [text(), text()] : [], value: value(),
                    replaces: count(0...1) == 0 ? .zero : HybridTime(rawValue: random.next()))
            }
            return (head, columns)
        }

        mutating func header() -> WireTransaction {
            var header = WireTransaction()
            header.format = WireFormat.version
            header.origin = Data(random.bytes(16))
            header.originName = text()
            header.sequence = 7
            if count(0...1) == 0 { header.author = text() }
            if count(0...1) == 0 { header.clockNode = Data(random.bytes(16)) }
            if count(0...1) == 0 { header.restates = [1, 300] }
            header.hlc = time.rawValue
            return header
        }
    }

    private func message(_ value: Value) throws -> WireValue {
        var message = try WireValue(value)
        if case .reference(let reference) = value {
            message.reference.formerEntities = Self.formerNames(reference.entity)
        }
        return message
    }

    /// Returns the objects, with whole clock readings as their steps.
    private func message(_ change: (head: OutgoingChanges.Head, columns: [Column])) throws -> WireChange {
        var message = WireChange()
        message.entity = change.head.entity
        message.kind = WireChangeKind(change.head.kind)
        message.formerEntities = change.head.formerNames
        message.identity = try change.head.identity.values().map { try self.message($0) }
        message.clockStep = change.head.time.rawValue
        if let localID = change.head.localID { message.localID = localID }
        message.replaces = change.head.replaces.rawValue
        let columns = try change.columns.map { column in
            var message = WireColumn()
            message.name = column.name
            message.formerNames = column.formerNames
            message.value = try self.message(column.value)
            message.replaces = column.replaces.rawValue
            return message
        }
        if change.head.kind == .delete { message.tombstone = columns } else { message.columns = columns }
        return message
    }

    private func add(
        _ change: (head: OutgoingChanges.Head, columns: [Column]), to changes: inout OutgoingChanges
    ) throws {
        try changes.append(change.head) { columns in
            for column in change.columns {
                try columns.append(
                    column.name, formerNames: column.formerNames, column.value, replaces: column.replaces)
            }
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>) func bytesAreThoseOfProtobuf(seed: UInt64) throws {
        var generator = Generator(random: SplitMix(seed: seed))
        for _ in 0..<300 {
            let header = generator.header()
            let made = (0..<generator.count(0...5)).map { _ in generator.change() }
            var expected = header
            var changes = OutgoingChanges(formerNames: Self.formerNames)
            var previous = made.first?.0.time ?? HybridTime(rawValue: header.hlc)
            expected.hlc = previous.rawValue
            for change in made {
                try add(change, to: &changes)
                var message = try message(change)
                message.clockStep = change.0.time.rawValue - previous.rawValue
                previous = change.0.time
                expected.changes.append(message)
            }
            try #require(
                try changes.encoded(in: header, as: .protobuf) == expected.serializedBytes(), "\(expected)")
            #expect(try changes.encoded(in: header, as: .json) == expected.jsonUTF8Bytes())
            #expect(changes.isEmpty == made.isEmpty)
            #expect(changes.first == made.first?.0.time && changes.last == made.last?.0.time)
            let wire = try OutgoingChanges(made.map { try message($0) })
            #expect(try wire.encoded(in: header, as: .protobuf) == expected.serializedBytes())
        }
    }

    /// Wherever a transaction is divided.
    @Test(arguments: WireEncoding.allCases) func runsAreTheTransaction(encoding: WireEncoding) throws {
        var generator = Generator(random: SplitMix(seed: 5))
        for _ in 0..<200 {
            let header = generator.header()
            let made = (0..<generator.count(1...6)).map { _ in generator.change() }
            var whole = OutgoingChanges(formerNames: Self.formerNames)
            for change in made { try add(change, to: &whole) }
            var bytes: [UInt8] = []
            var rest = made[...]
            var last: HybridTime?
            while !rest.isEmpty {
                let run = rest.prefix(generator.count(1...3))
                rest = rest.dropFirst(run.count)
                var changes = OutgoingChanges(after: last, formerNames: Self.formerNames)
                for change in run { try add(change, to: &changes) }
                bytes += try changes.encodedRun(of: last == nil ? header : nil, as: encoding)
                last = changes.last
            }
            bytes += WireFormat.closing(encoding)
            let found = try WireFormat.decode(bytes)
            let expected = try WireFormat.decode(whole.encoded(in: header, as: encoding))
            // NaN is not equal to itself.
            try #require(try found.serializedBytes() as [UInt8] == expected.serializedBytes(), "\(expected)")
        }
    }
}
