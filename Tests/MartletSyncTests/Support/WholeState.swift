import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The whole state of a node as text, equal on nodes that agree. A line for each row of the tracked tables, then a line
/// for each pending change, and the number of quarantined messages, if there are any:
///
///     note trip=->'Alps' text='pack'
///     trip name='Alps' budget=12.5
///     pending missingTarget stop trip=->? place='Bern'
///     quarantined 1
///
/// Integer keys that each node assigns by itself are left out. A reference to such a key is shown as an arrow and the
/// first plain column of the row that it leads to, or `->?` if that row is not in its table and has an assigned ID.
/// Lines are sorted as text within each table. A pending change has the reason, the columns of its row that are known
/// and not NULL, and the row's identity if columns form it. As in `martlet parked`, updates of deleted rows and changes
/// that a filter rejects are left out. A state without any line is the text `nothing`.
struct WholeState {
    static let nothing = "nothing"

    private let db: Database
    private let catalog: Catalog
    private let resolver: IdentityResolver

    static func text(of node: TestNode) throws -> String {
        let parked = try node.store.parked()
        let quarantined = try node.store.quarantined().count
        var lines = try node.store.database.read { db -> [String] in
            let catalog = try Catalog.load(db)
            let state = WholeState(
                db: db, catalog: catalog, resolver: IdentityResolver(catalog: catalog, statements: StatementCache()))
            let entities = catalog.entities.sorted { $0.name < $1.name }
            return try entities.flatMap { try state.rows(of: $0).sorted() } + parked.map(state.line).sorted()
        }
        if quarantined > 0 { lines.append("quarantined \(quarantined)") }
        return lines.isEmpty ? nothing : lines.joined(separator: "\n")
    }

    /// Returns what the actual text lacks (`-`) and has in excess (`+`), among the lines that both have.
    static func difference(_ actual: String, from expected: String) -> String {
        let wanted = expected.split(separator: "\n", omittingEmptySubsequences: false)
        let found = actual.split(separator: "\n", omittingEmptySubsequences: false)
        var missing: Set<Int> = []
        var extra: Set<Int> = []
        for change in found.difference(from: wanted) {
            switch change {
            case .remove(let offset, _, _): missing.insert(offset)
            case .insert(let offset, _, _): extra.insert(offset)
            }
        }
        var lines: [String] = []
        var (left, right) = (0, 0)
        while left < wanted.count || right < found.count {
            if missing.contains(left) {
                lines.append("- \(wanted[left])")
                left += 1
            } else if extra.contains(right) {
                lines.append("+ \(found[right])")
                right += 1
            } else {
                lines.append("  \(wanted[left])")
                left += 1
                right += 1
            }
        }
        return lines.joined(separator: "\n")
    }

    private func rows(of entity: Entity) throws -> [String] {
        let names = entity.columns.map(\.name.quotedName).joined(separator: ", ")
        let read = try PreparedStatement(
            db, "SELECT \(names.isEmpty ? "NULL" : names) FROM \(entity.name.quotedName)")
        var lines: [String] = []
        while try read.step() {
            let columns = try entity.columns.enumerated().map { index, column in
                "\(column.name)=\(try text(read.value(Int32(index)), in: column))"
            }
            lines.append(([entity.name] + columns).joined(separator: " "))
        }
        return lines
    }

    private func line(_ item: ParkedItem) throws -> String {
        var words = ["pending", item.reason.rawValue]
        guard let name = item.entity else { return words.joined(separator: " ") }
        words.append(name)
        var values = item.values
        let entity = catalog[name]
        let identity = try item.identity?.values() ?? []
        if !isAssigned(identity) {
            for (column, value) in zip(entity?.identityColumns ?? [], identity) where values[column.name] == nil {
                values[column.name] = value
            }
        }
        for column in entity?.columns ?? [] {
            guard let value = values.removeValue(forKey: column.name), !value.isNull else { continue }
            // A number in the column of a reference is not the number of a row: the author's column was no reference.
            words.append("\(column.name)=\(try text(value))")
        }
        for (column, value) in values.sorted(by: { $0.key < $1.key }) { words.append("\(column)=\(try text(value))") }
        return words.joined(separator: " ")
    }

    private func text(_ value: Value, in column: EntityColumn) throws -> String {
        guard let name = column.reference, let target = catalog[name], let row = column.referredRow(value) else {
            return try text(value)
        }
        return try "->" + label(of: row, in: target)
    }

    private func text(_ value: Value) throws -> String {
        switch value {
        case .null: return "NULL"
        case .integer(let number): return "\(number)"
        case .real(let number): return "\(number)"
        case .text(let text): return "'\(text.replacing("'", with: "''"))'"
        case .blob(let bytes): return "x'\(hex(bytes))'"
        case .rawText(let bytes): return "raw'\(hex(bytes))'"
        case .reference(let reference):
            guard let target = catalog[reference.entity] else { return "->?" }
            if let row = try resolver.row(db, target, reference.identity) {
                return try "->" + label(of: row, in: target)
            }
            let identity = try reference.identity.values()
            return try isAssigned(identity) ? "->?" : "->" + identity.map { try text($0) }.joined(separator: ",")
        }
    }

    /// Returns a row's first column that refers to no other row, or else the label of the row that its first column
    /// refers to.
    private func label(of row: Int64, in entity: Entity, depth: Int = 0) throws -> String {
        guard let key = entity.integerKey, depth < 4 else { return "?" }
        let column = entity.columns.first { $0.reference == nil } ?? entity.columns.first
        let read = try PreparedStatement(
            db,
            """
            SELECT \(column?.name.quotedName ?? "NULL") FROM \(entity.name.quotedName)
            WHERE \(key.quotedName) = \(row)
            """)
        guard let value = try read.first({ $0.value(0) }) else { return "?" }
        if let column, let name = column.reference, let target = catalog[name], let next = column.referredRow(value) {
            return try label(of: next, in: target, depth: depth + 1)
        }
        return try text(value)
    }

    /// Whether Martlet assigned the ID: it differs from run to run.
    private func isAssigned(_ identity: [Value]) -> Bool {
        if identity.count == 1, case .blob(let bytes) = identity[0] { bytes.count == 16 } else { false }
    }

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// Expects this whole state of a node, written as ``WholeState`` describes.
func expectState(
    _ node: TestNode, is expected: String, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let actual = try WholeState.text(of: node)
    if actual == expected { return }
    Issue.record(
        "The state of \(node.name) differs:\n\(WholeState.difference(actual, from: expected))",
        sourceLocation: sourceLocation)
}

/// Expects the same whole state of both nodes.
func expectBoth(
    _ a: TestNode, _ b: TestNode, are expected: String, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    try expectAll([a, b], are: expected, sourceLocation: sourceLocation)
}

/// Expects the same whole state of all nodes.
func expectAll(
    _ nodes: [TestNode], are expected: String, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    for node in nodes { try expectState(node, is: expected, sourceLocation: sourceLocation) }
}
