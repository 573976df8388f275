import GRDB
import MartletStore
import MartletSync

/// The details of the nodes that the trace of a failed seed shows.
extension Simulation {
    private static let mostRows = 12

    /// Adds the contents of the generated tables and the pending changes to the trace. Skips nodes that can't be read:
    /// the failure has been reported already.
    func noteRows() {
        guard schema.isGenerated else { return }
        for node in nodes {
            do {
                try alive(node) {
                    let store = try start(node).store
                    for line in try store.database.read(lines) { note("\(node.name)  has \(line)") }
                    for item in try store.parked().prefix(Self.mostRows) {
                        let values = item.values.sorted { $0.key < $1.key }.map { "\($0): \(ValueText.text($1))" }
                        note(
                            """
                            \(node.name)  parks \(item.entity ?? "a transaction") \
                            \(item.identity.map(ValueText.text) ?? "?") \
                            \(item.id) \(item.reason.rawValue) \(values.joined(separator: ", "))
                            """)
                    }
                }
            } catch {
                note("\(node.name)  can't be read: \(error)")
            }
        }
    }

    private func lines(_ db: Database) throws -> [String] {
        var lines: [String] = []
        for entity in try Catalog.load(db).entities where !entity.name.hasPrefix("sim_") {
            let names = ([entity.integerKey] + entity.columns.map(\.name)).compactMap(\.self)
            let read = try PreparedStatement(
                db,
                """
                SELECT \(names.map(\.quotedName).joined(separator: ", "))
                FROM \(entity.name.quotedName) LIMIT \(Self.mostRows)
                """)
            while try read.step() {
                let values = names.indices.map { "\(names[$0]): \(ValueText.text(read.value(Int32($0))))" }
                lines.append("\(entity.name) \(values.joined(separator: ", "))")
            }
        }
        return lines
    }
}
