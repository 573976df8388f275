package import GRDB

extension Catalog {
    /// Returns the attached tables that Martlet no longer tracks, each with the reason.
    package static func lostTables(_ db: Database) throws -> [String: String] {
        let lost = try Row.fetchAll(
            db, sql: "SELECT name, reason FROM \(InternalName.entities) WHERE state <> 'tracked'")
        return Dictionary(lost.map { ($0["name"], $0["reason"] ?? "") }, uniquingKeysWith: { a, _ in a })
    }
}
