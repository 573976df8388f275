package import GRDB
package import MartletCore
package import MartletStore

extension StableID {
    /// Stands for a row without an ID where an ID is required. No identity begins with NULL.
    package static let withoutIdentity = StableID(values: [.null])

    /// The ID of a pending row of that kind.
    package static func withoutIdentity(_ number: Int64) -> StableID { StableID(values: [.null, .integer(number)]) }

    /// True for an ID that no other node can know.
    package var hasNoIdentity: Bool { bytes.first == 0 }
}

extension EntityTable {
    /// The condition that is true of a row without an ID. Nil if every row has one.
    package var noIdentityCondition: String? {
        guard entity.integerKey == nil, !entity.isWithoutRowID else { return nil }
        let columns = identityColumns.filter { !$0.isNotNull }
        return columns.isEmpty ? nil : columns.map { "\($0.name.quotedName) IS NULL" }.joined(separator: " OR ")
    }

    /// A name of the rowid that no column has. Nil if every row has an ID.
    package var rowid: String? {
        guard noIdentityCondition != nil else { return nil }
        return ["rowid", "_rowid_", "oid"].first { name in
            !entity.columns.contains { $0.name.lowercased() == name }
        }
    }

    /// Returns the rowid of a row without an ID.
    ///
    /// - Parameter found: the result of ``findRival(_:row:_:)``.
    /// - Returns: nil if the row has an ID.
    package func withoutIdentity(_ found: [Value]) -> Int64? {
        guard rowid != nil, found.dropLast().contains(.null), case .integer(let row)? = found.last else { return nil }
        return row
    }

    /// Returns the identity of a row as far as it has one. Only for people to read.
    package func incompleteIdentity(_ values: [Int: Value]) -> StableID {
        StableID(values: identityColumns.map { values[$0.slot] ?? .null })
    }

    package func read(_ db: Database, rowid row: Int64) throws -> [Int: Value]? {
        guard let rowid else { return nil }
        let names = entity.columns.map(\.name.quotedName).joined(separator: ", ")
        let read = try PreparedStatement(
            db, "SELECT \(names) FROM \(entity.name.quotedName) WHERE \(rowid) = ?1")
        read.bind(1, row)
        return try read.first { found in
            Dictionary(uniqueKeysWithValues: slots.enumerated().map { ($1, found.value(Int32($0))) })
        }
    }

    package func delete(_ db: Database, rowid row: Int64) throws {
        guard let rowid else { return }
        let delete = try PreparedStatement(db, "DELETE FROM \(entity.name.quotedName) WHERE \(rowid) = ?1")
        delete.bind(1, row)
        try delete.run()
    }

    /// Sets a column to NULL.
    ///
    /// - Returns: false if the table refuses that.
    package func clear(_ db: Database, _ column: EntityColumn, rowid row: Int64) throws -> Bool {
        guard let rowid else { return false }
        let update = try PreparedStatement(
            db,
            "UPDATE OR ABORT \(entity.name.quotedName) SET \(column.name.quotedName) = NULL WHERE \(rowid) = ?1")
        update.bind(1, row)
        do {
            try update.run()
            return true
        } catch let error as StoreError where error.refusesRow {
            return false
        }
    }
}
