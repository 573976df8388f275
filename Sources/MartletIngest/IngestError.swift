/// An error of ingest: a record that can't be understood, or settings that don't fit the records.
///
/// It names topics, tables and columns, never values of rows.
public struct IngestError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of error. Compare it with the constants; later versions may add more.
    public struct Code: Hashable, Sendable, RawRepresentable {
        public var rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A key or a value is not JSON, or not what Kafka Connect's JSON converter writes.
        public static let notJSON = Code(rawValue: "notJSON")
        /// A value is JSON, but no change event of Debezium.
        public static let notAnEvent = Code(rawValue: "notAnEvent")
        /// The table was truncated at the source: the record names no rows.
        public static let truncated = Code(rawValue: "truncated")
        /// The record has no key, and so no row.
        public static let missingKey = Code(rawValue: "missingKey")
        /// The columns of the record and those of the mapping or the table don't fit together.
        public static let columns = Code(rawValue: "columns")
        /// A value is not of the type that its schema names, or beyond the range of that type.
        public static let invalidValue = Code(rawValue: "invalidValue")
        /// The record has no schema, and without one the value could mean different things.
        public static let ambiguousValue = Code(rawValue: "ambiguousValue")
        /// A setting is invalid.
        public static let configuration = Code(rawValue: "configuration")
    }

    public var code: Code
    public var message: String
    /// The operator's next step.
    public var hint: String

    public init(_ code: Code, _ message: String, hint: String) {
        self.code = code
        self.message = message
        self.hint = hint
    }

    public var description: String { "\(message). \(hint)" }
}
