import Foundation
import MartletSync

extension AgentConfiguration {
    mutating func readSecurity(_ reader: inout KeyReader) {
        security.keyRingFile = reader.text("security.keyRingFile")
        security.signingKeyFile = reader.text("security.signingKeyFile")
        if let text = reader.time("security.acceptPlaintext") {
            switch text {
            case .flag(let flag): security.rules.acceptPlaintext = flag ? .accept : .refuse
            case .time(let date): security.rules.acceptPlaintext = .before(date)
            }
        }
        if let table = reader.table("security.origins") { readOrigins(table, &reader) }
        var rules = security.rules
        rules.maxMessageBytes = reader.integer("security.limits.maxMessageBytes") ?? rules.maxMessageBytes
        rules.maxTransactionBytes = reader.integer("security.limits.maxTransactionBytes") ?? rules.maxTransactionBytes
        rules.maxRowBytes = reader.integer("security.limits.maxRowBytes") ?? rules.maxRowBytes
        rules.maxQuarantineBytes = reader.integer("security.limits.maxQuarantineBytes") ?? rules.maxQuarantineBytes
        security.rules = rules
    }

    private mutating func readOrigins(_ table: [String: String], _ reader: inout KeyReader) {
        var origins: [UUID: [NodePublicKey]] = [:]
        for (name, text) in table.sorted(by: { $0.key < $1.key }) {
            guard let node = UUID(uuidString: name) else {
                reader.problem("security.origins: \(name) is not a node's UUID; find it with `martlet status`")
                continue
            }
            let keys = text.split(whereSeparator: { $0 == "," || $0.isWhitespace }).map(String.init)
            let parsed = keys.compactMap(NodePublicKey.init)
            // `any` must be alone: if signing were optional for a node, its messages would prove nothing.
            if keys == ["any"] {
                origins[node] = []
            } else if !keys.isEmpty, parsed.count == keys.count {
                origins[node] = parsed
            } else {
                reader.problem(
                    "security.origins.\(name): must be public keys (`ed25519:...`, comma-separated), or any")
            }
        }
        security.rules.origins = origins
    }
}
