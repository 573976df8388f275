import GRDB
import MartletSimulator
import MartletStore
import MartletSync
import Testing

/// The oracle by itself, on transactions that the tests construct.
@Suite struct OracleTests {
    typealias Change = PublishedTransaction.Change

    let entities: [Entity]
    let folder: SimulationFolder

    init() throws {
        folder = try SimulationFolder()
        let store = try Store.create(path: folder.path + "/store.sqlite")
        try store.write {
            try $0.execute(
                sql: """
                    CREATE TABLE place(code TEXT PRIMARY KEY NOT NULL, title TEXT, seat TEXT UNIQUE);
                    CREATE TABLE visit(id TEXT PRIMARY KEY NOT NULL, place TEXT NOT NULL REFERENCES place(code),
                      hint TEXT REFERENCES place(code));
                    """)
        }
        _ = try store.attach()
        entities = try store.trackedEntities()
        try store.close()
    }

    private func name(_ text: String) -> StableID { StableID(values: [.text(text)]) }

    private func stamp(_ time: Int64, _ node: UInt8 = 1) -> Stamp {
        Stamp(time: HybridTime(milliseconds: time), node: NodeID(bytes: [UInt8](repeating: node, count: 16)) ?? .none)
    }

    private func place(
        _ kind: ChangeKind, _ code: String, _ time: Int64, node: UInt8 = 1, _ values: [String: String?] = [:]
    ) -> Change {
        var columns = values.map { PublishedTransaction.Column($0.key, $0.value.map { .text($0) } ?? .null) }
        if kind == .insert { columns.append(.init("code", .text(code))) }
        return Change(kind, "place", name(code), at: stamp(time, node), columns)
    }

    private func visit(_ id: String, _ time: Int64, place: String, hint: String? = nil) -> Change {
        Change(
            .insert, "visit", name(id), at: stamp(time),
            [.init("id", .text(id)), .init("place", .text(place)), .init("hint", hint.map { .text($0) } ?? .null)])
    }

    /// The content of the tables, which must be the same for every rotation of the changes, reversed or not, each
    /// applied twice.
    private func rows(_ changes: Change...) -> [String] {
        var all: Set<[String]> = []
        for turn in changes.indices {
            let turned = Array(changes[turn...] + changes[..<turn])
            for order in [turned, turned.reversed()] {
                var oracle = Oracle()
                for change in order + order {
                    oracle.take(PublishedTransaction(origin: .none, sequence: 1, changes: [change]))
                }
                let tables = oracle.tables(entities) ?? [:]
                all.insert(
                    tables.values.flatMap { $0.values }.map { row in
                        row.sorted { $0.key < $1.key }.map { "\($0.key)=\(ValueText.text($0.value))" }
                            .joined(separator: " ")
                    }.sorted())
            }
        }
        #expect(all.count == 1, "the order decides: \(all)")
        return all.first ?? []
    }

    @Test func eachColumnKeepsItsNewestValue() {
        #expect(
            rows(
                place(.insert, "a", 1, ["title": "one", "seat": "s"]), place(.update, "a", 5, ["title": "five"]),
                place(.update, "a", 3, ["title": "three", "seat": "t"])) == ["code='a' seat='t' title='five'"])
    }

    @Test func theHigherNodeWinsAtEqualTimes() {
        #expect(
            rows(
                place(.insert, "a", 1), place(.update, "a", 5, node: 2, ["title": "two"]),
                place(.update, "a", 5, node: 1, ["title": "one"])) == ["code='a' title='two'"])
    }

    @Test func anUpdateNeverRevivesARow() {
        #expect(
            rows(
                place(.insert, "a", 1, ["title": "one"]), place(.delete, "a", 3),
                place(.update, "a", 9, ["title": "nine"])) == [])
    }

    @Test func valuesFromBeforeTheDeleteAreDropped() {
        #expect(
            rows(
                place(.insert, "a", 1, ["title": "one"]), place(.delete, "a", 3), place(.insert, "a", 5),
                place(.update, "a", 2, ["seat": "two"]), place(.update, "a", 4, ["title": "four"]))
                == ["code='a' title='four'"])
    }

    @Test func aUniqueKeyGoesToTheNewestClaimAndReturnsWhenThatRowIsDeleted() {
        let first = place(.insert, "a", 1, ["seat": "s"])
        let second = place(.insert, "b", 2, ["seat": "s"])
        #expect(rows(first, second) == ["code='b' seat='s'"])
        #expect(rows(first, second, place(.delete, "b", 3)) == ["code='a' seat='s'"])
        #expect(
            rows(first, second, place(.update, "b", 3, ["seat": "t"])) == ["code='a' seat='s'", "code='b' seat='t'"])
    }

    /// A replacement that is newer repeats what it replaces: others have refused that, or not.
    @Test func aTransactionFromTheFutureDoesNotCountOnceItIsReplaced() {
        let early = PublishedTransaction(origin: .none, sequence: 1, changes: [place(.insert, "a", 1)])
        let late = PublishedTransaction(
            origin: .none, sequence: 2, changes: [place(.insert, "b", 2), place(.insert, "c", 90)])
        var newer = PublishedTransaction(origin: .none, sequence: 3, changes: [place(.insert, "c", 5)])
        newer.time = HybridTime(milliseconds: 5)
        newer.restates = [1, 2]
        #expect(Oracle.counting([early, late, newer]).map(\.sequence) == [1, 3])
        newer.origin = NodeID(bytes: [UInt8](repeating: 7, count: 16)) ?? .none
        #expect(Oracle.counting([early, late, newer]).map(\.sequence) == [1, 2, 3])
    }

    @Test func aReferenceWaitsForItsTarget() {
        let target = place(.insert, "a", 1)
        let child = visit("v", 2, place: "a", hint: "b")
        #expect(rows(child) == [])
        #expect(rows(child, target) == ["code='a'", "id='v' place='a'"])
        #expect(rows(child, target, place(.delete, "a", 3)) == [])
        #expect(
            rows(child, target, place(.insert, "b", 4)) == ["code='a'", "code='b'", "hint='b' id='v' place='a'"])
    }
}
