package import GRDB

extension Catalog {
    /// Returns the attached tables that Martlet no longer tracks, each with the reason. Without those whose name
    /// another table, or the same one attached again, has taken over.
    package static func lostTables(_ db: Database) throws -> [String: String] {
        Dictionary(try LostEntity.all(db).map { ($0.name, $0.reason) }, uniquingKeysWith: { a, _ in a })
    }
}
