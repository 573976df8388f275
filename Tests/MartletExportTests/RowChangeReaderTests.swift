import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The rows that changes of the history lead to.
@Suite(.timeLimit(.minutes(5))) struct RowChangeReaderTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func node(_ schema: String, keepsOldValues: Bool = false) throws -> TestNode {
        var request = AttachRequest()
        request.keepsOldValues = keepsOldValues
        return try TestNode(
            "a", bus: InMemoryBus(topic: "t"), directory: directory, schema: schema, attach: request)
    }

    /// The changes after a place, as `kind before > after`, in parts of a size.
    private func changes(_ node: TestNode, parts: Int = 1000) throws -> [String] {
        var found: [String] = []
        var place = RowChangePlace(mark: 0)
        var isLast = false
        while !isLast {
            try node.engine.session.readStamped { db in
                let context = try ReplicaContext(db, now: node.engine.now)
                let reader = RowChangeReader(db, context, withIngested: false) { _ in true }
                let part = try reader.read(from: place, limits: .init(changes: parts, bytes: 1 << 20))
                for change in part.transactions.flatMap(\.changes) {
                    found.append("\(change.kind) \(text(change.before)) > \(text(change.after))")
                }
                (place, isLast) = (part.next, part.isLast)
            }
        }
        return found
    }

    private func text(_ row: RowChange.Row?) -> String {
        guard let row else { return "-" }
        let values = row.values.sorted { $0.key < $1.key }.map { slot, value in
            switch value {
            case .null: "NULL"
            case .integer(let number): "\(number)"
            case .text(let text): text
            case .reference(let reference): "->\(reference.entity)"
            default: "?\(slot)"
            }
        }
        return values.joined(separator: " ")
    }

    @Test(arguments: [1, 2, 1000])
    func columnsThatAChangeDidNotSetComeFromTheChangesBefore(parts: Int) throws {
        let node = try node("CREATE TABLE v(k TEXT PRIMARY KEY NOT NULL, a, b)")
        try node.write("INSERT INTO v VALUES ('x', 1, 1)")
        try node.write("UPDATE v SET a = 2")
        try node.write("UPDATE v SET b = 2")
        let found = try changes(node, parts: parts)
        // Read alone, a change knows of other columns only what they are today.
        let first = parts == 1 ? "update - > x 2 2" : "update - > x 2 1"
        #expect(found == ["insert - > x 1 1", first, "update - > x 2 2"])
    }

    @Test(arguments: [1, 1000])
    func keptValuesGiveTheRowBefore(parts: Int) throws {
        let node = try node("CREATE TABLE v(k TEXT PRIMARY KEY NOT NULL, a, b)", keepsOldValues: true)
        try node.write("INSERT INTO v VALUES ('x', 1, 1)")
        try node.write("UPDATE v SET a = 2")
        try node.write("DELETE FROM v")
        let found = try changes(node, parts: parts)
        #expect(found.first == "insert - > x 1 1")
        #expect(found.last == "delete x 2 1 > -")
        if parts == 1000 { #expect(found[1] == "update x 1 1 > x 2 1") }
    }

    @Test func anUpdateOfARowThatIsGoneIsLeftOutIfItIsNotKnown() throws {
        let node = try node("CREATE TABLE v(k TEXT PRIMARY KEY NOT NULL, a, b)")
        try node.write("INSERT INTO v VALUES ('x', 1, 1)")
        try node.write("UPDATE v SET a = 2")
        try node.write("DELETE FROM v")
        #expect(try changes(node, parts: 1) == ["insert - > x 1 1", "delete x > -"])
        #expect(try changes(node) == ["insert - > x 1 1", "update - > x 2 1", "delete x > -"])
    }

    @Test func aReferenceMeansTheRowThatHadTheNumberThen() throws {
        let node = try node(
            """
            CREATE TABLE p(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE c(k TEXT PRIMARY KEY NOT NULL, p INTEGER REFERENCES p(id));
            """)
        try node.write("INSERT INTO p VALUES (1, 'first'); INSERT INTO c VALUES ('x', 1)")
        let first = try parent(node)
        try node.write("UPDATE c SET p = NULL; DELETE FROM p; INSERT INTO p VALUES (1, 'second')")
        try node.write("UPDATE c SET p = 1")
        let second = try parent(node)
        #expect(first != second)
        var references: [StableID?] = []
        try node.engine.session.readStamped { db in
            let context = try ReplicaContext(db, now: node.engine.now)
            let reader = RowChangeReader(db, context, withIngested: false) { $0.name == "c" }
            let part = try reader.read(from: RowChangePlace(mark: 0), limits: .init(changes: 1000, bytes: 1 << 20))
            for change in part.transactions.flatMap(\.changes) {
                let values = change.after.map { Array($0.values.values) } ?? []
                references.append(
                    values.lazy.compactMap { value -> StableID? in
                        if case .reference(let reference) = value { reference.identity } else { nil }
                    }.first)
            }
        }
        #expect(references == [first, nil, second])
    }

    private func parent(_ node: TestNode) throws -> StableID? {
        try node.store.fetchHistory().flatMap(\.changes).last { $0.entity == "p" && $0.kind == .insert }?.identity
    }

    @Test func aRowComesWithItsIdentityAndGoesWithIt() throws {
        let node = try node("CREATE TABLE v(k TEXT PRIMARY KEY, a)")
        try node.write("INSERT INTO v VALUES (NULL, 1)")
        try node.write("UPDATE v SET a = 2")
        try node.write("UPDATE v SET k = 'x'")
        try node.write("UPDATE v SET a = 3, k = NULL")
        #expect(try changes(node) == ["insert - > x 2", "delete x > -"])
    }

    @Test func nothingRemainsAfterAnEmptyTransaction() throws {
        let node = try node("CREATE TABLE v(k TEXT PRIMARY KEY NOT NULL, a)")
        try node.write("INSERT INTO v VALUES ('x', 1)")
        try node.publish()
        // Leaves an empty transaction, so that no ID is used again.
        try node.store.deleteHistory(before: .distantFuture)
        try node.engine.session.readStamped { db in
            let context = try ReplicaContext(db, now: node.engine.now)
            let reader = RowChangeReader(db, context, withIngested: false) { _ in true }
            let part = try reader.read(from: RowChangePlace(mark: 0), limits: .init(changes: 10, bytes: 1 << 20))
            #expect(part.isLast && part.transactions.isEmpty)
            #expect(try RowChangeReader.remaining(db, after: part.next.mark) == 0)
        }
    }

    @Test func sequencesOfTransactionsAreFoundInALongOutbox() throws {
        let node = try node("CREATE TABLE v(k INTEGER PRIMARY KEY, a)")
        for number in 1...40 { try node.write("INSERT INTO v VALUES (\(number), 1)") }
        try node.engine.session.readStamped { db in
            let marks = try Int64.fetchAll(db, sql: "SELECT id FROM _martlet_log WHERE e = 0 ORDER BY id")
            #expect(marks.count == 40)
            for first in [0, 1, 17, 39] {
                let wanted = Array(marks[first...].prefix(3))
                let found = try Outbox.sequences(db, of: wanted)
                #expect(wanted.map { found[$0] } == wanted.indices.map { Int64(first + $0 + 1) })
            }
            #expect(try Outbox.sequences(db, of: []).isEmpty)
        }
    }
}
