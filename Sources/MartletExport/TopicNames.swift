import MartletCore

/// The topics of an export, and which table each belongs to.
///
/// A table's name that a topic can't have is changed: other characters become `_`, and the end of the name is a digest
/// of the table's name, so that two tables never share a topic. A dot is such a character, too: the topic could belong
/// to an export with a longer prefix, and Kafka refuses two topics that differ in dots and underscores only. Whether a
/// name is changed depends on that name alone: other tables that come or go don't move a table to another topic.
package struct TopicNames: Sendable {
    package let prefix: String

    package init(prefix: String) { self.prefix = prefix }

    /// Where transactions begin and end.
    package var transactions: String { "\(prefix).transaction" }
    /// Who exports.
    package var lease: String { "\(prefix).export" }

    /// Kafka's limit.
    private static let maxLength = 249
    private static let reserved: Set<String> = ["transaction", "export"]

    package func table(_ name: String) -> String {
        let kept = name.unicodeScalars.map { Self.isLegal($0) && $0 != "." ? $0 : "_" }
        let legal = String(String.UnicodeScalarView(kept))
        let room = Self.maxLength - prefix.utf8.count - 1
        guard legal != name || legal.isEmpty || Self.reserved.contains(name) || legal.utf8.count > room else {
            return "\(prefix).\(name)"
        }
        let digest = Hex.text(Array(name.utf8).withUnsafeBytes { ContentDigest.sha256($0) }.prefix(8))
        return "\(prefix).\(legal.prefix(room - digest.count - 1))_\(digest)"
    }

    /// Returns what is wrong with a prefix. Nil if nothing is.
    package static func problem(ofPrefix prefix: String) -> String? {
        if prefix.isEmpty { return "is empty; leave it out, or set it to null, to export nothing" }
        if prefix.utf8.count > 100 { return "has more than 100 characters" }
        if !prefix.unicodeScalars.allSatisfy(isLegal) {
            return "\(prefix) may have only letters, digits, dots, underscores and hyphens, like all names of topics"
        }
        if prefix.hasPrefix(".") { return "\(prefix) begins with a dot" }
        return nil
    }

    private static func isLegal(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", ".", "_", "-": true
        default: false
        }
    }
}
