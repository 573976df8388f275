extension Entity {
    /// Returns SQL that is true for the row whose identity columns hold exactly these values, and for no other.
    ///
    /// Two IDs are equal if their bytes and storage classes are. But a column's collation may treat 'a' and 'A' as
    /// equal, and its index does so for 1 and 1.0. So the plain comparison only finds the row through its index, and
    /// does not decide.
    ///
    /// It uses `IS`, not `=`: after `=`, SQLite asks the parameter for its type in place of the column. To an integer
    /// column, -9223372036854775808 and -9223372036854775808.0 are equal, yet they stay two values.
    ///
    /// - Parameters:
    ///   - alias: The table's name in the query followed by a point, or nothing.
    ///   - parameter: The number of the statement's parameter for the first column's value.
    package func identityMatch(_ alias: String = "", from parameter: Int) -> String {
        identityColumns.enumerated().map { index, column in
            let name = alias + column.name.quotedName
            let value = "?\(parameter + index)"
            return "\(name) IS \(value) AND \(name) IS \(value) COLLATE BINARY AND typeof(\(name)) = typeof(\(value))"
        }.joined(separator: " AND ")
    }
}
