import Foundation
package import MartletStore
package import MartletSync

extension SyncStatus {
    /// Returns the document that `martlet status --json` prints, and that `/status` begins with.
    ///
    /// - Parameters:
    ///   - unnamed: how many rows have no stable ID, by table. Absent if they were not counted.
    ///   - history: what the history takes. Absent if it was not measured.
    ///   - file: what the file takes. Absent if that was not read.
    package func document(
        isRunning: Bool, unnamed: [String: Int]? = nil, history: HistoryReport? = nil, file: FileSpace? = nil
    ) -> [String: Any?] {
        [
            "node": node?.description, "name": name, "store": store.uuidString,
            "running": isRunning,
            "lastSequence": lastSequence, "acknowledged": acknowledged, "confirmed": confirmed,
            "unpublished": unpublished,
            "partitions": partitions.map { partition -> [String: Any?] in
                [
                    "topic": partition.topic, "partition": Int(partition.partition), "next": partition.next,
                    "end": partition.end,
                    "lag": partition.lag,
                ]
            },
            "origins": origins.map { origin -> [String: Any?] in
                [
                    "node": origin.node.description, "name": origin.name, "applied": origin.applied,
                    "heard": JSON.date(origin.heard),
                    "gaps": origin.gaps.map { [$0.lowerBound, $0.upperBound] },
                ]
            },
            "cursors": cursors.map { cursor -> [String: Any?] in
                ["name": cursor.name, "token": cursor.token.description, "updated": JSON.date(cursor.updated)]
            },
            "parked": parkedCount, "quarantined": quarantinedCount, "conflicts": conflictCount,
            "divergences": divergenceCount,
            "unkept": unkept.map { one -> [String: Any?] in
                [
                    "first": one.sequences.lowerBound, "last": one.sequences.upperBound, "bytes": one.bytes,
                    "since": JSON.date(one.since),
                ]
            },
            "filtered": filteredCount,
            "filters": [
                "ignore": filters.ignoredTables.sorted(), "localColumns": filters.columnNames,
                "publish": filters.publish, "subscribe": filters.subscribe,
            ] as [String: Any],
            "clockOffsetMs": clockOffset.map { [$0.lowerBound, $0.upperBound] },
            "collectedThrough": JSON.date(collectedThrough),
            "lostTables": lostTables, "rowsWithoutIdentity": unnamed,
            "history": history.map { Self.document($0) }, "file": file.map { Self.document($0) },
        ]
    }

    private static func document(_ history: HistoryReport) -> [String: Any?] {
        [
            "bytes": history.size.bytes, "transactions": history.size.transactions,
            "oldest": JSON.date(history.oldest),
            // Null in a store whose history no agent has deleted from yet.
            "retention": history.bounds.map { bounds -> [String: Any?] in
                ["ageSeconds": bounds.age.map { Int64($0 / .seconds(1)) }, "sizeBytes": bounds.sizeBytes]
            },
            "held": history.held.map { held -> [String: Any?] in
                ["cursor": held.cursor, "bytes": held.bytes, "updated": JSON.date(held.updated)]
            },
        ]
    }

    private static func document(_ file: FileSpace) -> [String: Any?] {
        ["bytes": file.bytes, "freeBytes": file.freeBytes, "isShrinkable": file.isShrinkable]
    }
}
