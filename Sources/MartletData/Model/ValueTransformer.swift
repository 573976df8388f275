import Foundation
import Synchronization

/// Turns values into data and back, for ``Schema/Attribute/Option/transformable(by:)-(ValueTransformer.Type)``.
/// Foundation has a class of this name on other systems, and none on Linux.
///
/// Called on the thread of whoever sets or reads an attribute, and of fetches: on several at once, so that a subclass
/// has no state that changes.
open class ValueTransformer {
    public required init() {}

    /// The class of what ``transformedValue(_:)`` returns. Of no effect here: it must be `Data`.
    open class func transformedValueClass() -> AnyClass { NSData.self }

    /// False, the default, for one whose values can't be read back, which no attribute can have.
    open class func allowsReverseTransformation() -> Bool { false }

    /// The value as `Data`, or nil where it has no form in data.
    open func transformedValue(_ value: Any?) -> Any? { value }

    /// What ``transformedValue(_:)`` made the data of, or nil where it made no such data.
    open func reverseTransformedValue(_ value: Any?) -> Any? { value }

    // MARK: Names

    /// Safe because transformers are made before they are shared, and keep no state that changes: what subclasses are
    /// told above.
    private struct Registered: @unchecked Sendable {
        var transformers: [String: ValueTransformer] = [:]
    }

    private static let registered = Mutex(Registered())

    /// Makes a transformer known under a name. Replaces the one that had it.
    public static func setValueTransformer(_ transformer: ValueTransformer?, forName name: NSValueTransformerName) {
        // Safe as above.
        nonisolated(unsafe) let transformer = transformer
        registered.withLock { $0.transformers[name.rawValue] = transformer }
    }

    public static func valueTransformerNames() -> [NSValueTransformerName] {
        registered.withLock { $0.transformers.keys.sorted() }.map { NSValueTransformerName(rawValue: $0) }
    }

    static func named(_ name: String) -> ValueTransformer? {
        registered.withLock { registered in
            // Safe as above.
            nonisolated(unsafe) let found = registered.transformers[name]
            return found
        }
    }
}

/// The name of a ``ValueTransformer``.
public struct NSValueTransformerName: RawRepresentable, Hashable, Sendable {
    public var rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// A transformer as an attribute names it. For what `@Model` writes.
public struct ValueTransformerReference: Sendable {
    let description: String
    let transformer: @Sendable () -> ValueTransformer?

    public init(_ type: ValueTransformer.Type) {
        description = "\(type)"
        transformer = { type.init() }
    }

    public init(_ name: String) {
        description = name
        transformer = { ValueTransformer.named(name) }
    }
}
