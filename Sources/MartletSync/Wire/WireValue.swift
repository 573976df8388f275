import Foundation
import MartletStore

extension WireValue {
    init(_ value: Value) throws {
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

    /// The value in the terms of the store.
    ///
    /// - Throws: ``WireError`` where the message sets no kind.
    func value() throws(WireError) -> Value {
        switch kind {
        case .null: return .null
        case .integer(let value): return .integer(value)
        case .real(let value): return .real(value + 0)
        case .text(let value): return .text(value)
        case .blob(let value): return .blob(value.withUnsafeBytes { Array($0) })
        case .rawText(let value): return .rawText(value.withUnsafeBytes { Array($0) })
        case .reference(let value):
            return .reference(Reference(entity: value.entity, identity: try StableID(wire: value.identity)))
        case nil: throw WireError("A value has no kind.")
        }
    }
}

extension StableID {
    init(wire: [WireValue]) throws(WireError) {
        var values: [Value] = []
        values.reserveCapacity(wire.count)
        for value in wire { values.append(try value.value()) }
        self.init(values: values)
    }
}

/// A message that can't be understood. It goes to quarantine, and blocks nothing.
struct WireError: Error, Equatable, CustomStringConvertible {
    let description: String
    /// True where it is not proven who the message is from: nothing is concluded from what its headers say.
    private(set) var isUnproven = false
    /// The key that would open it, and how many key rings there had been when it was looked for.
    private(set) var missingKey: MissingKey?

    struct MissingKey: Equatable {
        var id: String
        var generation: Int
    }

    init(_ description: String) { self.description = description }

    static func unproven(_ description: String) -> WireError {
        var error = WireError(description)
        error.isUnproven = true
        return error
    }

    static func missingKey(_ id: String, _ generation: Int, _ description: String) -> WireError {
        var error = unproven(description)
        error.missingKey = MissingKey(id: id, generation: generation)
        return error
    }
}
