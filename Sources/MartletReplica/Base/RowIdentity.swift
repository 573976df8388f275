package import MartletCore
package import MartletStore

/// The entity and stable ID of a row.
package struct RowIdentity: Hashable {
    package var entity: Int64
    package var identity: StableID

    package init(entity: Int64, identity: StableID) {
        self.entity = entity
        self.identity = identity
    }

    /// Returns all results of a query for `entity, ident`.
    package static func all(_ find: PreparedStatement) throws -> [RowIdentity] {
        var names: [RowIdentity] = []
        while try find.step() {
            names.append(RowIdentity(entity: find.integer(0), identity: StableID(bytes: find.blob(1))))
        }
        return names
    }
}
