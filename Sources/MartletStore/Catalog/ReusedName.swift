/// A name that means another table or column than before: two columns swapped names, or a renamed column has a
/// successor under its former name.
///
/// A node that has not made the same change assigns a value under that name to its own table or column of that name
/// (decision 31).
public struct ReusedName: Sendable, Hashable, CustomStringConvertible {
    /// The table, by its name today.
    public var table: String
    /// The column. Nil means the table itself.
    public var column: String?
    /// The table or column that had the name before, by its name today.
    public var formerOwner: String

    package init(table: String, column: String?, formerOwner: String) {
        self.table = table
        self.column = column
        self.formerOwner = formerOwner
    }

    public var description: String {
        guard let column else { return "\(table) was the name of another table, which is \(formerOwner) now" }
        return "\(table).\(column) was the name of another column, which is \(table).\(formerOwner) now"
    }
}

extension Catalog {
    /// The reused names of tracked tables and their columns, in the order of tables and columns.
    package var reusedNames: [ReusedName] {
        var found: [ReusedName] = []
        for entity in entities {
            for owner in entities where owner.id != entity.id && owner.formerNames.contains(entity.name) {
                found.append(ReusedName(table: entity.name, column: nil, formerOwner: owner.name))
            }
            for column in entity.columns {
                for owner in entity.columns
                where owner.slot != column.slot && owner.formerNames.contains(column.name) {
                    found.append(ReusedName(table: entity.name, column: column.name, formerOwner: owner.name))
                }
            }
        }
        return found
    }
}

extension Store {
    /// Returns the names of tables and columns that mean others than before.
    public func reusedNames() throws -> [ReusedName] {
        try read { try Catalog.load($0).reusedNames }
    }
}
