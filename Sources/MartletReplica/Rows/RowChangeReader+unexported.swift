import GRDB
package import MartletCore
import MartletStore

extension RowChangeReader {
    /// Returns the place before the first transaction with changes of the wanted tables that was not exported, from a
    /// time on. Nil if all were.
    ///
    /// - Parameters:
    ///   - time: milliseconds since 1970.
    ///   - isExported: whether a transaction was, by its origin and sequence. Transactions without these are skipped:
    ///     what a node did by itself.
    package func firstUnexported(
        since time: Int64, _ isExported: (NodeID, Int64) throws -> Bool
    ) throws -> RowChangePlace? {
        let tables = entities.map { String($0.id) }.joined(separator: ", ")
        let read = try PreparedStatement(
            db,
            """
            SELECT s.id, s.r, s.c4, s.c5 FROM \(InternalName.log) AS s
            WHERE s.e = 0 AND s.t >= ?1 AND s.r < s.id AND \(isRead) AND EXISTS (
              SELECT 1 FROM \(InternalName.log) AS c WHERE c.id >= s.r AND c.id < s.id AND c.e IN (\(tables)))
            ORDER BY s.id
            """)
        read.bind(1, time)
        var isEnd = false
        while !isEnd {
            var marks: [(id: Int64, first: Int64, origin: (NodeID, Int64)?)] = []
            while marks.count < 1000 {
                guard try read.step() else {
                    isEnd = true
                    break
                }
                let node = read.optionalBlob(2).flatMap { NodeID(bytes: $0) }
                marks.append((read.integer(0), read.integer(1), node.map { ($0, read.integer(3)) }))
            }
            let own = try Outbox.sequences(db, of: marks.map(\.id))
            for mark in marks {
                guard let origin = mark.origin ?? own[mark.id].map({ (context.node, $0) }) else { continue }
                if try !isExported(origin.0, origin.1) {
                    read.reset()
                    return RowChangePlace(mark: mark.first - 1)
                }
            }
        }
        return nil
    }
}
