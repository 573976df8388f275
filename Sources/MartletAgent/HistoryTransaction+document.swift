import Foundation
package import MartletStore
import MartletSync

extension HistoryTransaction {
    /// The document that `martlet history list --json` and `/changes` print.
    package var document: [String: Any?] {
        [
            "transaction": id, "token": token.description, "author": author,
            "context": context, "process": process,
            "timestamp": JSON.date(timestamp), "traceID": trace?.traceID,
            "origin": origin.map { origin -> [String: Any?] in
                [
                    "node": origin.node.uuidString, "name": origin.name, "sequence": origin.sequence,
                    "author": origin.author,
                    "timestamp": JSON.date(origin.timestamp),
                ]
            } as Any?,
            "changes": changes.map { change -> [String: Any?] in
                [
                    "change": change.id, "entity": change.entity, "kind": change.kind.rawValue, "row": change.row,
                    "identity": JSON.identity(change.identity), "values": JSON.values(change.values),
                    "oldValues": change.oldValues.isEmpty ? nil : JSON.values(change.oldValues),
                    "tombstone": change.kind == .delete ? JSON.values(change.tombstone) : nil,
                    "timestamp": JSON.date(change.timestamp),
                ]
            },
        ]
    }
}
