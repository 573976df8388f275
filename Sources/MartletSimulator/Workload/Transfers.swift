import GRDB

/// Transactions that move an amount from one place to another.
enum Transfers {
    static func statements(_ node: String, _ random: inout SplitMix, _ db: Database) throws -> [String] {
        let amount = 1 + random.below(400)
        switch random.below(3) {
        case 0:
            let first = random.below(amount)
            return [
                "INSERT INTO sim_entry(account, amount) VALUES ('x\(random.below(4))', \(amount))",
                """
                INSERT INTO sim_entry(account, amount) \
                VALUES ('x\(random.below(4))', \(-first)), ('y', \(first - amount))
                """,
            ]
        case 1:
            let purse = "p\(random.below(3))"
            let isThere = try Int.fetchOne(db, sql: "SELECT 1 FROM sim_purse WHERE id = ?", arguments: [purse]) != nil
            if !isThere { return ["INSERT INTO sim_purse(id, l, r) VALUES ('\(purse)', \(amount), \(1000 - amount))"] }
            if random.once(in: 8) { return ["DELETE FROM sim_purse WHERE id = '\(purse)'"] }
            return ["UPDATE sim_purse SET l = l - \(amount), r = r + \(amount) WHERE id = '\(purse)'"]
        default:
            let isThere = try Int.fetchOne(db, sql: "SELECT 1 FROM sim_pair WHERE owner = ?", arguments: [node]) != nil
            let rows = ["\(node)1", "\(node)2"]
            guard isThere else {
                return rows.map { "INSERT INTO sim_pair(id, owner, balance) VALUES ('\($0)', '\(node)', 1000)" }
            }
            return [
                "UPDATE sim_pair SET balance = balance - \(amount) WHERE id = '\(rows[0])'",
                "UPDATE sim_pair SET balance = balance + \(amount) WHERE id = '\(rows[1])'",
            ]
        }
    }

    /// Returns three numbers, which are 0 in every committed state.
    static let check = """
        SELECT coalesce((SELECT sum(amount) FROM sim_entry), 0), (SELECT count(*) FROM sim_purse WHERE l + r <> 1000),
        (SELECT count(*) FROM (SELECT 1 FROM sim_pair GROUP BY owner HAVING sum(balance) <> 2000 OR count(*) <> 2))
        """
}
