/// What went wrong on the bus.
public struct BusError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of error it is. Compare with the constants; more may be added.
    public struct Code: Hashable, Sendable, RawRepresentable {
        public var rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        /// No broker could be reached within the time allowed.
        public static let unreachable = Code(rawValue: "unreachable")
        /// The topic does not exist.
        public static let unknownTopic = Code(rawValue: "unknownTopic")
        /// The topic is there already.
        public static let alreadyExists = Code(rawValue: "alreadyExists")
        /// The producer's bounded queue has no room.
        public static let queueFull = Code(rawValue: "queueFull")
        /// The broker, or the client's own limit, refuses a message of this size.
        public static let messageTooLarge = Code(rawValue: "messageTooLarge")
        /// The message was not delivered in the time allowed.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The client can't go on and must be made anew (a fenced or out-of-sequence idempotent producer, ...).
        public static let fatal = Code(rawValue: "fatal")
        /// The client was closed.
        public static let closed = Code(rawValue: "closed")
        /// The broker refuses these credentials, or this operation to them.
        public static let unauthorized = Code(rawValue: "unauthorized")
        /// A setting was refused.
        public static let configuration = Code(rawValue: "configuration")
        /// Anything else.
        public static let other = Code(rawValue: "other")
    }

    public var code: Code
    public var message: String
    /// What an operator can do about it.
    public var hint: String
    /// The transport's own error code (librdkafka's number), where there is one.
    public var underlyingCode: Int32?
    /// True when the same call may succeed later.
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
