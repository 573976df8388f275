/// Of which storage class a column makes values, where it can (https://www.sqlite.org/datatype3.html#determination_of_column_affinity).
package enum Affinity: Sendable {
    case integer, text, blob, real, numeric

    package init(declaredType: String) {
        let type = declaredType.uppercased()
        func has(_ words: String...) -> Bool { words.contains(where: type.contains) }
        self =
            if has("INT") {
                .integer
            } else if has("CHAR", "CLOB", "TEXT") {
                .text
            } else if type.isEmpty || has("BLOB") || type == "ANY" {
                // ANY is a number's affinity in a table that is not STRICT. What is done for a column without one does for it, too.
                .blob
            } else if has("REAL", "FLOA", "DOUB") {
                .real
            } else {
                .numeric
            }
    }
}

extension EntityColumn {
    package var affinity: Affinity { Affinity(declaredType: declaredType) }

    /// True of a column that keeps all values as they are.
    var hasNoAffinity: Bool { affinity == .blob }
}
