/// The trace that an application names in the context of a transaction, with the words `traceparent=...` and
/// `tracestate=...`. The context may contain other words.
package struct GivenTrace: Sendable, Equatable {
    private static let parentName = "traceparent="
    private static let stateName = "tracestate="
    private static let maxStateBytes = 512
    private static let maxStateMembers = 32

    package var trace: TraceContext
    /// Data that tracers add for their own use. Passed on unchanged.
    package var state: String?

    /// Parses a context. Returns nil if it names no trace or several, or if the trace is malformed.
    package init?(in context: String) {
        let words = context.split(whereSeparator: \.isWhitespace)
        guard let parent = Self.only(Self.parentName, words), let trace = TraceContext(traceparent: parent) else {
            return nil
        }
        self.trace = trace
        state = Self.only(Self.stateName, words).flatMap { Self.isState($0) ? $0 : nil }
    }

    /// Returns the word of a context that names a trace.
    package static func context(of trace: TraceContext) -> String { parentName + trace.traceparent }

    private static func only(_ name: String, _ words: [Substring]) -> String? {
        let found = words.filter { $0.hasPrefix(name) }
        return found.count == 1 ? String(found[0].dropFirst(name.count)) : nil
    }

    /// Returns whether the text is a list of `key=value` that is no longer than every recipient must accept. Its
    /// contents are the tracers' business.
    private static func isState(_ text: String) -> Bool {
        guard !text.isEmpty, text.utf8.count <= maxStateBytes, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else { return false }
        let members = text.split(separator: ",", omittingEmptySubsequences: false)
        return members.count <= maxStateMembers
            && members.allSatisfy { member in
                guard let sign = member.firstIndex(of: "=") else { return false }
                return sign != member.startIndex && member.index(after: sign) != member.endIndex
            }
    }
}
