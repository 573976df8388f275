extension Entity {
    /// SQL that is true of the row whose identity columns hold exactly these values, and of no other.
    ///
    /// Two IDs are one where their bytes and storage classes are. To a column's collation 'a' and 'A' may be equal, to
    /// its index 1 and 1.0 are: so what the column says only leads to the row, by its index, and does not decide.
    ///
    /// `IS` and not `=`, after which SQLite asks the parameter for its type in place of the column: to a column of
    /// integers, -9223372036854775808 and -9223372036854775808.0 are equal, and stay two.
    ///
    /// - Parameters:
    ///   - alias: what the table is called in the query, with a point behind it, or nothing.
    ///   - parameter: the number of the first column's value among the parameters of the statement.
    package func identityMatch(_ alias: String = "", from parameter: Int) -> String {
        identityColumns.enumerated().map { index, column in
            let name = alias + column.name.quotedName
            let value = "?\(parameter + index)"
            return "\(name) IS \(value) AND \(name) IS \(value) COLLATE BINARY AND typeof(\(name)) = typeof(\(value))"
        }.joined(separator: " AND ")
    }
}
