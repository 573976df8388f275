package import Foundation
package import MartletStore
import MartletSync

/// Builds the output of commands with `--json`: one document a line, with sorted keys.
package enum JSON {
    package static func line(_ object: [String: Any?]) throws -> String {
        let data = try JSONSerialization.data(
            withJSONObject: plain(object), options: [.sortedKeys, .withoutEscapingSlashes])
        return String(decoding: data, as: UTF8.self)
    }

    private static func plain(_ value: Any?) -> Any {
        switch value {
        case nil: NSNull()
        case let object as [String: Any?]: object.mapValues { plain($0) }
        case let list as [Any?]: list.map { plain($0) }
        case let value?: value
        }
    }

    /// Returns a row's value. Values that JSON can't express become objects: `{"blob": base64}`, `{"rawText": base64}`,
    /// `{"real": "inf"}`, `{"reference": entity, "identity": [...]}`.
    package static func value(_ value: Value) -> Any? {
        switch value {
        case .null: return nil
        case .integer(let value): return value
        case .real(let value): return value.isFinite ? value : ["real": "\(value)"]
        case .text(let value): return value
        case .blob(let value): return ["blob": Data(value).base64EncodedString()]
        case .rawText(let value): return ["rawText": Data(value).base64EncodedString()]
        case .reference(let reference):
            return ["reference": reference.entity, "identity": identity(reference.identity)] as [String: Any?]
        }
    }

    package static func values(_ values: [String: Value]) -> [String: Any?] { values.mapValues { value($0) } }

    /// Returns a stable ID: the UUID that Martlet assigned, or the list of its values.
    package static func identity(_ identity: StableID?) -> Any? {
        guard let identity, let values = try? identity.values() else { return nil }
        if values.count == 1, case .blob(let bytes) = values[0], let uuid = UUID(bytes: bytes) {
            return uuid.uuidString
        }
        return values.map { value($0) }
    }

    package static func date(_ date: Date?) -> String? {
        date?.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
