import Foundation
import MartletSync
import MartletTestSupport
import SwiftProtobuf
import Testing

/// Changes that are encoded and decoded without SwiftProtobuf, compared with SwiftProtobuf.
@Suite struct PlainChangeTests {
    /// What is decoded of a change.
    private struct Fields: Equatable {
        /// Its bytes, since NaN is not equal to itself.
        var message: [UInt8]
        var entity: String
        var formerEntities: [String]
        var clockStep: UInt64
        var replaces: HybridTime
        var localID: Int64?
        var hasIdentity: Bool
        var names: [String]
        var kind: ChangeKind?
        var identity: StableID?
        var identityValues: [Value]?
        var values: [Value]?
        var replaced: [HybridTime]?

        init(_ change: DecodedChange) throws {
            message = WireFormat.encode(try change.message())
            entity = change.entity
            formerEntities = change.formerEntities
            clockStep = change.clockStep
            replaces = change.replaces
            localID = change.localID
            hasIdentity = change.hasIdentity
            names = change.names
            let row = try? change.row.get()
            (kind, identity, identityValues) = (row?.kind, row?.identity, row?.identityValues)
            let columns = try? change.columns.get()
            (values, replaced) = (columns?.map(\.value), columns?.map(\.replaces))
        }
    }

    /// A generator of changes, in some of which there is something that only Protobuf decodes.
    private struct Generator {
        var random: SplitMix
        /// How many in a hundred parts are unusual.
        let oddness: Int

        private static let texts = ["", "a", "task", "é🐦\u{2028}", "\0", "a name of more than fifteen bytes"]

        mutating func isOdd() -> Bool { Int.random(in: 0..<100, using: &random) < oddness }

        mutating func text() -> String { Self.texts.randomElement(using: &random) ?? "" }

        mutating func value(depth: Int = 0) -> WireValue {
            var value = WireValue()
            if isOdd() { return value }
            switch Int.random(in: 0..<8, using: &random) {
            case 0: value.null = Bool.random(using: &random)
            case 1: value.integer = [Int64.min, -1, 0, 1, 300, .max].randomElement(using: &random) ?? 0
            case 2:
                value.real =
                    [-0.0, 0, 1.5, .nan, .infinity, -.leastNonzeroMagnitude].randomElement(using: &random) ?? 0
            case 3: value.blob = Data(random.bytes(Int.random(in: 0..<200, using: &random)))
            case 4: value.rawText = Data(Bool.random(using: &random) ? random.bytes(5) : Array(text().utf8))
            case 5 where depth < 2:
                value.reference.entity = text()
                value.reference.identity = (0..<2).map { _ in self.value(depth: depth + 1) }
                if isOdd() { value.reference.formerEntities = [text()] }
            default: value.text = text()
            }
            return value
        }

        mutating func change() -> WireChange {
            var change = WireChange()
            change.entity = text()
            change.kind = isOdd() ? .unspecified : [.insert, .update, .delete].randomElement(using: &random) ?? .insert
            for _ in 0..<(isOdd() ? 0 : Int.random(in: 1...3, using: &random)) { change.identity.append(value()) }
            change.clockStep = UInt64(Int.random(in: 0..<3, using: &random)) << 20
            if Bool.random(using: &random) { change.localID = [Int64.min, -5, 0, 7, .max].randomElement() ?? 0 }
            if Bool.random(using: &random) { change.replaces = random.next() }
            if isOdd() { change.formerEntities = [text()] }
            if change.kind == .delete { change.tombstone = (0..<2).map { column($0) } }
            // Often the columns of the change before, or the first of them.
            for place in 0..<Int.random(in: 0..<6, using: &random) { change.columns.append(column(place)) }
            return change
        }

        private mutating func column(_ place: Int) -> WireColumn {
            var column = WireColumn()
            column.name = isOdd() ? text() : "c\(place)"
            if !isOdd() { column.value = value() }
            if Bool.random(using: &random) { column.replaces = random.next() }
            if isOdd() { column.formerNames = [text()] }
            return column
        }

        mutating func transaction() -> WireTransaction {
            var transaction = WireTransaction()
            transaction.format = WireFormat.version
            transaction.origin = Data(random.bytes(16))
            transaction.sequence = 7
            transaction.hlc = HybridTime(milliseconds: 1_790_000_000_000).rawValue
            if Bool.random(using: &random) { transaction.author = text() }
            if isOdd() { transaction.clockNode = Data(random.bytes(16)) }
            if isOdd() { transaction.restates = [1, 300] }
            transaction.changes = (0..<Int.random(in: 0..<5, using: &random)).map { _ in change() }
            return transaction
        }
    }

    private func fields(of transaction: DecodedTransaction) throws -> [Fields] {
        var fields: [Fields] = []
        try transaction.forEachChange { fields.append(try Fields($0)) }
        return fields
    }

    /// Whatever the changes of earlier transactions were.
    @Test(arguments: [0, 1, 10]) func decodingGivesTheSameAsProtobuf(oddness: Int) throws {
        var generator = Generator(random: SplitMix(seed: UInt64(oddness)), oddness: oddness)
        var names = KnownNames()
        for _ in 0..<3000 {
            let transaction = generator.transaction()
            let payload = try WireFormat.encode(transaction, as: .protobuf)
            try #require(try payload == transaction.serializedBytes())
            let decoded = try DecodedTransaction(payload: payload, &names)
            let expected = DecodedTransaction(try WireFormat.decode(payload))
            try #require(try fields(of: decoded) == fields(of: expected), "\(payload)")
            #expect(decoded.header == expected.header && decoded.latest == expected.latest)
            #expect(decoded.mayHaveFault == expected.mayHaveFault)
        }
    }

    /// A change that is decoded without Protobuf is one that Protobuf accepts, and means the same to it. What it does
    /// not accept is refused.
    @Test func damagedChangesAreDecodedAsByProtobuf() throws {
        var generator = Generator(random: SplitMix(seed: 11), oddness: 1)
        var count = 0
        for _ in 0..<20_000 {
            var payload = try WireFormat.encode(generator.transaction(), as: .protobuf)
            for _ in 0..<Int.random(in: 1...3, using: &generator.random) {
                let place = payload.indices.randomElement(using: &generator.random) ?? 0
                switch Int.random(in: 0..<3, using: &generator.random) {
                case 0: payload[place] = UInt8.random(in: 0...255, using: &generator.random)
                case 1: payload.insert(UInt8.random(in: 0...255, using: &generator.random), at: place)
                default: payload.remove(at: place)
                }
            }
            let expected = try? fields(of: DecodedTransaction(WireFormat.decode(payload)))
            let found = try? fields(of: DecodedTransaction(payload: payload))
            try #require(found == expected, "\(payload)")
            if let expected { count += expected.count }
        }
        #expect(count > 1000)
    }

    /// What a newer program added to a message stays in it.
    @Test func unknownFieldsAreKept() throws {
        var generator = Generator(random: SplitMix(seed: 13), oddness: 5)
        for _ in 0..<500 {
            let payload: [UInt8] = try generator.transaction().serializedBytes()
            var extended = payload + [15 << 3, 5]
            // The tag of another field in some message.
            if let place = payload.firstIndex(of: 1 << 3 | 2) { extended[place] = 15 << 3 | 2 }
            guard let transaction = try? WireTransaction(serializedBytes: extended) else { continue }
            #expect(try WireFormat.encode(transaction, as: .protobuf) == transaction.serializedBytes())
        }
    }

    /// A transaction of more changes than are decoded together.
    @Test func transactionsOfManyChangesAreDecodedInBlocks() throws {
        var generator = Generator(random: SplitMix(seed: 12), oddness: 1)
        var transaction = generator.transaction()
        transaction.changes = (0..<5000).map { _ in generator.change() }
        let payload = try WireFormat.encode(transaction, as: .protobuf)
        let decoded = try DecodedTransaction(payload: payload)
        #expect(try fields(of: decoded) == fields(of: DecodedTransaction(transaction)))
        #expect(decoded.latest == DecodedTransaction(transaction).latest)
    }

    /// A field that is added to the messages has to be added to `FieldWriter`, and to `PlainChange`, which declines
    /// what it doesn't know, and then here.
    @Test func bothKnowAllFields() throws {
        var messages: [String: [String]] = [:]
        var name = ""
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let file = root.appendingPathComponent("proto/martlet/v1/transaction.proto")
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
            let words = line.split { " ;{".contains($0) }.map(String.init)
            if words.first == "message" { name = words[1] }
            // Type, name, number. Cases of an enumeration have no type.
            guard let place = words.firstIndex(of: "="), place >= 2, !name.isEmpty else { continue }
            messages[name, default: []].append(words[place - 1])
        }
        #expect(
            messages == [
                "Transaction": [
                    "format", "origin", "sequence", "hlc", "author", "timestamp_ms", "origin_name", "changes",
                    "clock_node", "restates",
                ],
                "Change": [
                    "entity", "kind", "identity", "columns", "tombstone", "clock_step", "local_id", "replaces",
                    "former_entities",
                ],
                "Column": ["name", "value", "replaces", "former_names"],
                "Value": ["null", "integer", "real", "text", "blob", "raw_text", "reference"],
                "Reference": ["entity", "identity", "former_entities"],
            ])
    }

    /// What the publisher sends of an ordinary table: only such changes are decoded fast.
    @Test func changesOfOrdinaryTablesArePlain() throws {
        let lab = try Lab()
        let node = try lab.node("a")
        try node.write("INSERT INTO setting VALUES ('k', 1), ('l', 2)")
        try node.write("UPDATE setting SET value = 3 WHERE key = 'k'")
        try node.write("DELETE FROM setting WHERE key = 'l'")
        try node.publish()
        let changes = try lab.messages().flatMap { try WireFormat.decode($0.payload).changes }
        #expect(changes.map(\.kind) == [.insert, .insert, .update, .delete])
        var names = KnownNames()
        for change in changes {
            let bytes = WireFormat.encode(change)
            #expect(bytes.withUnsafeBytes { PlainChange(encoded: $0, &names) } != nil, "\(change)")
        }
    }

    @Test func p235AChangeReservesNoMoreMemoryThanItNeeds() throws {
        var names = KnownNames()
        func plain(_ bytes: [UInt8]) throws -> PlainChange {
            try #require(bytes.withUnsafeBytes { PlainChange(encoded: $0, &names) })
        }
        func columns(_ count: Int) -> [WireColumn] {
            (0..<count).map { place in
                var column = WireColumn()
                column.name = "c\(place)"
                column.value.integer = 1
                return column
            }
        }
        var change = WireChange()
        change.entity = "task"
        change.kind = .insert
        change.identity = [columns(1)[0].value]
        change.columns = columns(10_000)
        #expect(try plain(WireFormat.encode(change)).columns.count == 10_000)
        // The kind follows the columns, so that they are compared with those of the insert.
        var head = change
        head.kind = .update
        head.columns = []
        var few = WireChange()
        few.columns = columns(2)
        let update = try plain(WireFormat.encode(few) + WireFormat.encode(head))
        #expect(update.kind == .update)
        #expect(update.columns.count == 2)
        #expect(update.columns.capacity < 100)
    }
}
