import MartletCore
package import MartletStore

/// A table as its topic shows it: the fields of its rows, and those of the records' keys.
package struct ExportTable: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        enum Source: Sendable, Equatable {
            /// The ID that Martlet assigned to the row.
            case identity
            /// The row's number on the node that exports.
            case number
            /// The column with this slot in the log.
            case column(Int)
        }

        package var name: String
        package var type: ConnectType
        var source: Source
        package var isKey = false
    }

    package let name: String
    package let topic: String
    package let fields: [Field]
    /// The fields of a key, in the order of the values of an ID.
    let keyFields: [Field]
    private let isHidden: Bool

    package init(_ entity: Entity, topic: String) {
        name = entity.name
        self.topic = topic
        isHidden = entity.identity == .hidden
        let identity = entity.identityColumns
        var fields: [Field] = []
        let assigned = Field(name: Self.identityName(entity), type: .uuid, source: .identity, isKey: true)
        if isHidden { fields.append(assigned) }
        if let key = entity.localKey { fields.append(Field(name: key, type: .integer, source: .number)) }
        func field(_ column: EntityColumn) -> Field {
            Field(
                name: column.name, type: ConnectType(of: column), source: .column(column.slot),
                isKey: identity.contains { $0.slot == column.slot })
        }
        fields += entity.sharedColumns.map(field)
        self.fields = fields
        keyFields = isHidden ? [assigned] : identity.map(field)
    }

    /// Returns the name of the field with the ID that Martlet assigns. Another column may have the usual one.
    private static func identityName(_ entity: Entity) -> String {
        var name = "_martlet_id"
        let taken = Set(entity.columns.map { $0.name.lowercased() } + [entity.integerKey?.lowercased() ?? ""])
        while taken.contains(name) { name = "_\(name)" }
        return name
    }

    /// Describes the fields. If it changes, the records that the topic has are not what they would be today.
    package var shape: String {
        fields.map { "\($0.name)\u{1f}\($0.type.type)\u{1f}\($0.type.name ?? "")\u{1f}\($0.isKey)" }
            .joined(separator: "\u{1e}")
    }

    /// Returns the fields and values of the key of a row with this ID.
    ///
    /// A row keeps the ID that it was inserted with. If the rule for IDs has changed since, that one may not have the
    /// values of today's key: then it is one field, with the ID as text.
    func key(_ identity: StableID) -> [(field: Field, value: Value)] {
        let values = (try? identity.values()) ?? []
        if isHidden, values.count == 1, case .blob(let bytes) = values[0], bytes.count == 16 {
            return [(keyFields[0], .text(RowName.text(identity)))]
        }
        if !isHidden, values.count == keyFields.count, !values.contains(.null) {
            return zip(keyFields, values).map { (field: $0, value: $1) }
        }
        let field = Field(name: "_martlet_id", type: .string, source: .identity, isKey: true)
        return [(field, .text(RowName.text(identity)))]
    }

    /// Returns true if the key of a row with this ID has the values of today's key, by which other systems know it.
    package func hasKey(of identity: StableID) -> Bool { !isHidden && key(identity).map(\.field) == keyFields }

    /// Returns the values of a row, in the order of the fields.
    ///
    /// - Parameter values: by slot.
    func row(_ identity: StableID, number: Int64?, _ values: [Int: Value]) -> [Value] {
        fields.map { field in
            switch field.source {
            case .identity: .text(RowName.text(identity))
            case .number: number.map { .integer($0) } ?? .null
            case .column(let slot): values[slot] ?? .null
            }
        }
    }
}
