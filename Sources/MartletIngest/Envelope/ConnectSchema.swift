/// A schema of Kafka Connect, as the JSON converter writes it with `schemas.enable=true`.
struct ConnectSchema: Decodable, Sendable, Equatable {
    /// `int8` to `int64`, `float`, `double`, `boolean`, `string`, `bytes`, `struct`, `array` or `map`.
    var type: String
    /// The name of the logical type, or of the struct.
    var name: String?
    /// The name of the field, for the schema of a field.
    var field: String?
    var fields: [ConnectSchema]?
    var parameters: [String: String]?

    /// Returns the schemas of a struct's fields, by name.
    var fieldsByName: [String: ConnectSchema] {
        let named = (fields ?? []).compactMap { schema in schema.field.map { ($0, schema) } }
        return Dictionary(named, uniquingKeysWith: { first, _ in first })
    }
}
