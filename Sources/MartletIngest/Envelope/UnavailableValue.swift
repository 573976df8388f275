import Foundation

/// What the connector for PostgreSQL writes in place of a large value that did not change: PostgreSQL's log does not
/// have it then (TOAST). Its form depends on the type of the column.
enum UnavailableValue {
    /// The default of the connector's `unavailable.value.placeholder`.
    static let placeholder = "__debezium_unavailable_value"

    private static let bytes = Array(placeholder.utf8)
    private static let base64 = Data(bytes).base64EncodedString()
    /// The name-based UUID (version 3) of the placeholder.
    private static let uuid = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"
    private static let hstore = #"{"\#(placeholder)":"\#(placeholder)"}"#
    /// Points in well-known binary that nobody has: (-99999999, -99999999) and (179.999999, 89.999999).
    private static let places: Set<String> = [
        "AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==", "AQEAACDmEAAADCHn/f9/ZkAYQs77/39WQA==",
    ]

    static func isPlaceholder(_ json: JSON) -> Bool {
        switch json {
        case .string(let text): text == placeholder || text == base64 || text == hstore
        case .array(let elements): isPlaceholder(elements)
        case .object(let members):
            members == [placeholder: .string(placeholder)]
                || members["wkb"]?.text.map(places.contains) == true && members["x"] == nil
                || members["x"]?.real == -99_999_999 && members["y"]?.real == -99_999_999
        case .null, .boolean, .number: false
        }
    }

    /// One element for text, bytes and UUIDs; one for each byte for numbers.
    private static func isPlaceholder(_ elements: [JSON]) -> Bool {
        if elements.count == 1, case .string(let text) = elements[0] {
            return text == placeholder || text == base64 || text == uuid
        }
        return elements.count == bytes.count && zip(elements, bytes).allSatisfy { isNumber($0, $1) }
    }

    private static func isNumber(_ json: JSON, _ byte: UInt8) -> Bool {
        switch json {
        case .number(let number): number.whole == Int64(byte)
        case .string(let text): text == Data([byte]).base64EncodedString()
        case .object(let members): members["value"].map { isNumber($0, byte) } ?? false
        case .null, .boolean, .array: false
        }
    }
}
