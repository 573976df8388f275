/// A secret text. Its descriptions are always `***`, so that it is never printed.
public struct Secret: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The text itself. This property is the only way to read it.
    public var value: String

    public init(_ value: String) {
        self.value = value
    }

    public init(stringLiteral value: String) {
        self.init(value)
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
