/// Where a change is in the log of its source: PostgreSQL's write-ahead log, or MySQL's or MariaDB's binary log.
///
/// Connectors deliver at least once. After a restart, they may send records again; the position tells such a record
/// from a new one.
package struct SourcePosition: Sendable, Hashable, Codable {
    /// What numbers belong to. Positions with different logs can't be compared.
    package var log: String
    /// The numbers, the most significant first.
    package var numbers: [UInt64]

    package init(log: String, numbers: [UInt64]) {
        self.log = log
        self.numbers = numbers
    }

    /// Returns whether the change comes later in the same log. False if the positions are of different logs.
    package func isAfter(_ other: SourcePosition) -> Bool {
        log == other.log && other.numbers.lexicographicallyPrecedes(numbers)
    }
}

extension SourcePosition {
    /// Reads the position from the `source` of a record.
    ///
    /// - Returns: nil if the connector is another one than those for PostgreSQL, MySQL and MariaDB, or if there is no
    ///   position.
    init?(source: [String: JSON]) {
        switch source["connector"]?.text {
        case "postgresql": self.init(postgreSQL: source)
        case "mysql", "mariadb": self.init(mySQL: source)
        default: return nil
        }
    }

    /// `sequence` is a JSON array in text: where the transaction before this one was committed (null at first), and
    /// where this change is. Changes come in the order of commits, so positions of changes alone are not ascending:
    /// transactions overlap in the log.
    private init?(postgreSQL source: [String: JSON]) {
        let log = "postgresql"
        if let text = source["sequence"]?.text, case .array(let parts)? = try? JSON(parsing: Array(text.utf8)),
            parts.count == 2, let change = Self.number(parts[1])
        {
            self.init(log: log, numbers: [Self.number(parts[0]) ?? 0, change])
        } else if let change = Self.number(source["lsn"]) {
            self.init(log: log, numbers: [0, change])
        } else {
            return nil
        }
    }

    /// The number of the transaction in its GTID, where there is one: it is the same on all servers, so it also tells
    /// records that come again after a failover. Otherwise, the number and position in the files of the binary log.
    private init?(mySQL source: [String: JSON]) {
        guard let file = source["file"]?.text, let position = Self.number(source["pos"]) else { return nil }
        let row = Self.number(source["row"]) ?? 0
        let gtid = source["gtid"]?.text ?? ""
        if !gtid.isEmpty {
            guard let split = gtid.lastIndex(where: { $0 == ":" || $0 == "-" }),
                let transaction = UInt64(gtid[gtid.index(after: split)...])
            else { return nil }
            // Within a transaction, positions are ascending on each server, though other ones on each.
            self.init(log: "gtid:\(Self.domain(gtid[..<split]))", numbers: [transaction, position, row])
            return
        }
        let digits = file.reversed().prefix { $0.isASCII && $0.isNumber }.count
        guard let number = UInt64(file.suffix(digits)) else { return nil }
        self.init(log: "binlog:\(file.dropLast(digits))", numbers: [number, position, row])
    }

    /// A GTID of MySQL is a server's UUID, perhaps a tag, and the transaction. One of MariaDB is a domain, a server and
    /// the transaction, whose number ascends in the domain.
    private static func domain(_ name: Substring) -> Substring {
        name.contains(":") || name.count >= 32 ? name : name.prefix { $0 != "-" }
    }

    private static func number(_ json: JSON?) -> UInt64? {
        switch json {
        case .string(let text): UInt64(text)
        case .number(let number): number.whole.flatMap { UInt64(exactly: $0) }
        default: nil
        }
    }
}
