import Foundation
package import MartletCore

extension WireValue {
    package init(_ value: Value) throws {
        self.init()
        switch value {
        case .null: kind = .null(true)
        case .integer(let value): kind = .integer(value)
        case .real(let value): kind = .real(value)
        case .text(let value): kind = .text(value)
        case .blob(let value): kind = .blob(Data(value))
        case .rawText(let value): kind = .rawText(Data(value))
        case .reference(let value):
            var reference = WireReference()
            reference.entity = value.entity
            reference.identity = try value.identity.values().map(WireValue.init)
            kind = .reference(reference)
        }
    }

    /// Returns the value as the store represents it: NaN as NULL, and bytes that are valid text as text. A row's ID
    /// with another form of the value would differ from the one that the store reads back.
    ///
    /// - Throws: ``WireError`` if the message sets no kind.
    package func value() throws(WireError) -> Value {
        switch kind {
        case .null: return .null
        case .integer(let value): return .integer(value)
        case .real(let value): return value.isNaN ? .null : .real(value + 0)
        case .text(let value): return .text(value)
        case .blob(let value): return .blob(value.withUnsafeBytes { Array($0) })
        case .rawText(let value):
            if let text = String(validating: value, as: UTF8.self) { return .text(text) }
            return .rawText(value.withUnsafeBytes { Array($0) })
        case .reference(let value):
            return .reference(Reference(entity: value.entity, identity: try StableID(wire: value.identity)))
        case nil: throw WireError("A value has no kind.")
        }
    }
}

extension StableID {
    package init(wire: [WireValue]) throws(WireError) {
        var values: [Value] = []
        values.reserveCapacity(wire.count)
        for value in wire { values.append(try value.value()) }
        self.init(values: values)
    }
}

/// The error for a message that can't be understood. Such a message goes to the dead-letter queue (quarantine), and
/// does not block others.
package struct WireError: Error, Equatable, CustomStringConvertible {
    package let description: String
    /// True if the message's origin is not proven. Nothing in its headers may be relied on.
    package private(set) var isUnproven = false
    /// The key that the message needs, and the number of key ring changes at the time of the lookup.
    package private(set) var missingKey: MissingKey?
    /// True if the origin's signature was verified, although the payload can't be decrypted or should have been
    /// encrypted: the headers can be relied on.
    package var isSigned = false

    package struct MissingKey: Equatable {
        package var id: String
        package var generation: Int
    }

    package init(_ description: String) { self.description = description }

    package static func unproven(_ description: String) -> WireError {
        var error = WireError(description)
        error.isUnproven = true
        return error
    }

    package static func missingKey(_ id: String, _ generation: Int, _ description: String) -> WireError {
        var error = unproven(description)
        error.missingKey = MissingKey(id: id, generation: generation)
        return error
    }
}
