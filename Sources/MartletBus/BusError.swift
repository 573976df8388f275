/// An error of the bus.
public struct BusError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of error. Compare it with the constants; later versions may add more.
    public struct Code: Hashable, Sendable, RawRepresentable {
        public var rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        /// No broker could be reached within the timeout.
        public static let unreachable = Code(rawValue: "unreachable")
        /// The topic does not exist.
        public static let unknownTopic = Code(rawValue: "unknownTopic")
        /// The topic already exists.
        public static let alreadyExists = Code(rawValue: "alreadyExists")
        /// The producer's bounded queue has no room.
        public static let queueFull = Code(rawValue: "queueFull")
        /// The message exceeds the broker's or the client's own size limit.
        public static let messageTooLarge = Code(rawValue: "messageTooLarge")
        /// The message was not delivered within the timeout.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The client can't continue and must be recreated (a fenced or out-of-sequence idempotent producer, ...).
        public static let fatal = Code(rawValue: "fatal")
        /// The client was closed.
        public static let closed = Code(rawValue: "closed")
        /// The broker rejects these credentials, or does not authorize this operation.
        public static let unauthorized = Code(rawValue: "unauthorized")
        /// A setting was rejected.
        public static let configuration = Code(rawValue: "configuration")
        /// Anything else.
        public static let other = Code(rawValue: "other")
    }

    public var code: Code
    public var message: String
    /// The operator's next step.
    public var hint: String
    /// The transport's own error code (librdkafka's number), if any.
    public var underlyingCode: Int32?
    /// True if the same call may succeed later.
    public var isRetriable: Bool

    public init(
        _ code: Code, _ message: String, hint: String = "", underlyingCode: Int32? = nil, isRetriable: Bool = false
    ) {
        self.code = code
        self.message = message
        self.hint = hint
        self.underlyingCode = underlyingCode
        self.isRetriable = isRetriable
    }

    public var description: String {
        var text = "\(code.rawValue): \(message)"
        if let underlyingCode { text += " (code \(underlyingCode))" }
        if !hint.isEmpty { text += ". \(hint)" }
        return text
    }
}
