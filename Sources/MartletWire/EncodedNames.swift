package import MartletCore

/// The names of a table and its columns as fields of a change, encoded once.
package struct EncodedNames {
    /// The fields of a column before and after its value and time: its name, and its former names.
    fileprivate struct Column {
        var beginning: [UInt8]
        var end: [UInt8]
    }
    fileprivate let table: [UInt8]
    let formerNames: [UInt8]
    fileprivate let columns: [Column]

    /// - Parameters:
    ///   - formerNames: the table's.
    ///   - columns: their names and former names.
    package init(of table: String, formerNames: [String], columns: [(name: String, formerNames: [String])]) {
        func encoded(_ write: (inout FieldWriter) -> Void) -> [UInt8] {
            var writer = FieldWriter(reserving: 0)
            write(&writer)
            return writer.bytes
        }
        self.table = encoded { $0.write(1, table) }
        self.formerNames = encoded { writer in for name in formerNames { writer.write(9, always: name) } }
        self.columns = columns.map { column in
            Column(
                beginning: encoded { $0.write(1, column.name) },
                end: encoded { writer in for name in column.formerNames { writer.write(4, always: name) } })
        }
    }
}

extension OutgoingChanges {
    /// The fields of a plain change that is being added.
    package struct PlainFields {
        private var writer = FieldWriter(reserving: 0)
        private let field: UInt8
        private let names: EncodedNames

        /// Borrows the bytes until ``end(_:)``: if both held them, the first change would copy them.
        init(_ kind: ChangeKind, of names: EncodedNames, _ whole: inout FieldWriter) {
            self.names = names
            field = kind == .delete ? 5 : 4
            swap(&writer, &whole)
            writer.write(encoded: names.table)
            writer.write(2, UInt64(WireChangeKind(kind).rawValue))
        }

        mutating func end(_ whole: inout FieldWriter) { swap(&writer, &whole) }

        /// Adds a value of the row's identity.
        package mutating func append(identity value: BorrowedValue) {
            writer.writeMessage(3) { $0.write(value) }
        }

        /// Adds a column, by its place in the table.
        ///
        /// - Parameter replaces: when the value was set that this one replaces.
        package mutating func append(_ place: Int, _ value: BorrowedValue, replaces: HybridTime) {
            let column = names.columns[place]
            writer.writeMessage(field) { writer in
                writer.write(encoded: column.beginning)
                writer.writeMessage(2) { $0.write(value) }
                writer.writeFixed(3, replaces.rawValue)
                writer.write(encoded: column.end)
            }
        }
    }
}
