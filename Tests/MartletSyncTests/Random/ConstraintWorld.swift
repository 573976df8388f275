import MartletTestSupport

/// A schema whose constraints interact, and statements that violate them.
struct ConstraintWorld {
    struct Table {
        var name: String
        /// Columns that can be set, and the SQL of their values, in which `?N` stands for a number, and
        /// `?ROW(table.column)` for a value of some row.
        var columns: [(name: String, values: [String])]
    }

    var schema: String
    var identities: [String: [String]] = [:]
    var tables: [Table]
    /// Whole statements, for writes that one row can't express.
    var scripts: [String] = []

    private static let few = ["1", "2", "3"]
    private static let words = ["'x'", "'X'", "'y'", "'z'"]

    static let all: [ConstraintWorld] = [
        // The schema of finding D1.
        ConstraintWorld(
            schema: """
                CREATE TABLE user(id INTEGER PRIMARY KEY, email TEXT NOT NULL COLLATE NOCASE UNIQUE, lo INT, hi INT,
                  CHECK(lo<=hi));
                CREATE UNIQUE INDEX ue ON user(lower(email));
                CREATE TABLE item(sku TEXT PRIMARY KEY COLLATE NOCASE,
                  owner INTEGER REFERENCES user(id) ON DELETE CASCADE);
                """,
            tables: [
                Table(
                    name: "user",
                    columns: [
                        ("id", few + ["NULL"]), ("email", words), ("lo", few + ["NULL"]), ("hi", ["2", "5", "NULL"]),
                    ]),
                Table(name: "item", columns: [("sku", words + ["NULL"]), ("owner", ["?ROW(user.id)", "NULL"])]),
            ]),
        // A unique index on an expression displaces rows with other IDs.
        ConstraintWorld(
            schema: """
                CREATE TABLE user(c1 TEXT NOT NULL UNIQUE, oc);
                CREATE UNIQUE INDEX u ON user(coalesce(oc, 0));
                """,
            identities: ["user": ["c1"]],
            tables: [Table(name: "user", columns: [("c1", words), ("oc", few + ["0", "NULL"])])]),
        ConstraintWorld(
            schema: """
                CREATE TABLE user(id INTEGER PRIMARY KEY, name TEXT, place TEXT, up AS (upper(name)));
                CREATE UNIQUE INDEX u ON user(coalesce(name, 'none') COLLATE NOCASE DESC, "place")
                  WHERE place IS NOT 'z';
                CREATE UNIQUE INDEX v ON user(up || place);
                """,
            tables: [
                Table(
                    name: "user",
                    columns: [("id", few + ["NULL", "NULL"]), ("name", words + ["NULL"]), ("place", words + ["NULL"])])
            ]),
        // Rows that refer to each other by keys that they compete for.
        ConstraintWorld(
            schema: """
                CREATE TABLE item(name TEXT PRIMARY KEY NOT NULL,
                  next TEXT UNIQUE REFERENCES item(name) ON DELETE SET NULL,
                  tag TEXT UNIQUE);
                """,
            tables: [
                Table(
                    name: "item",
                    columns: [("name", words), ("next", ["?ROW(item.name)", "NULL"]), ("tag", words + ["NULL"])])
            ]),
        ConstraintWorld(
            schema: """
                CREATE TABLE orders(shop TEXT NOT NULL, number INT NOT NULL, note TEXT UNIQUE,
                  PRIMARY KEY (shop, number));
                CREATE TABLE line(id INTEGER PRIMARY KEY, shop TEXT NOT NULL, number INT NOT NULL, what TEXT UNIQUE,
                  FOREIGN KEY (shop, number) REFERENCES orders ON DELETE CASCADE ON UPDATE CASCADE);
                CREATE TABLE mark(id INTEGER PRIMARY KEY, shop TEXT, number INT, note TEXT REFERENCES orders(note),
                  FOREIGN KEY (shop, number) REFERENCES orders ON DELETE SET NULL ON UPDATE CASCADE);
                """,
            tables: [
                Table(name: "orders", columns: [("shop", words), ("number", ["1", "2"]), ("note", words + ["NULL"])]),
                Table(name: "line", columns: [("id", few + ["NULL"]), ("what", words + ["NULL"])]),
                Table(name: "mark", columns: [("id", few + ["NULL"]), ("note", ["?ROW(orders.note)", "NULL"])]),
            ],
            scripts: [
                """
                INSERT INTO line(shop, number, what) SELECT shop, number, 'w?N' FROM orders
                  ORDER BY (number * 7 + ?N) % 11 LIMIT 1
                """,
                """
                INSERT INTO mark(shop, number) SELECT shop, number FROM orders ORDER BY (number * 7 + ?N) % 11 LIMIT 1
                """,
                """
                UPDATE mark SET (shop, number) =
                  (SELECT shop, number FROM orders ORDER BY (number * 7 + ?N) % 5 LIMIT 1)
                """,
            ]),
        // A row that can do without one of its references, but not without both.
        ConstraintWorld(
            schema: """
                CREATE TABLE owner(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
                CREATE TABLE pet(id INTEGER PRIMARY KEY, mine INTEGER REFERENCES owner(id) ON DELETE CASCADE,
                  yours INTEGER REFERENCES owner(id) ON DELETE CASCADE, name TEXT,
                  CHECK (mine IS NOT NULL OR yours IS NOT NULL));
                CREATE UNIQUE INDEX p ON pet(coalesce(mine, 0), name);
                """,
            tables: [
                Table(name: "owner", columns: [("id", few + ["NULL"]), ("name", words)]),
                Table(
                    name: "pet",
                    columns: [
                        ("id", few + ["NULL"]), ("mine", ["?ROW(owner.id)", "NULL"]),
                        ("yours", ["?ROW(owner.id)", "NULL"]), ("name", words + ["NULL"]),
                    ]),
            ]),
        ConstraintWorld(
            schema: """
                CREATE TABLE seat(id INTEGER PRIMARY KEY, place TEXT UNIQUE, email TEXT UNIQUE ON CONFLICT REPLACE,
                  a INT, b INT, active INT, both AS (a + b) UNIQUE, UNIQUE (a, place));
                CREATE UNIQUE INDEX s ON seat(email, b) WHERE active;
                CREATE TABLE guest(email TEXT REFERENCES seat(email) ON DELETE SET NULL ON UPDATE CASCADE,
                  seat INTEGER NOT NULL REFERENCES seat(id) ON DELETE CASCADE ON UPDATE CASCADE, name TEXT,
                  PRIMARY KEY (seat, name));
                """,
            tables: [
                Table(
                    name: "seat",
                    columns: [
                        ("id", few + ["NULL"]), ("place", words + ["NULL"]), ("email", words + ["NULL"]),
                        ("a", few + ["NULL"]), ("b", few + ["NULL"]), ("active", ["0", "1"]),
                    ]),
                Table(
                    name: "guest",
                    columns: [("email", ["?ROW(seat.email)", "NULL"]), ("seat", ["?ROW(seat.id)"]), ("name", words)]),
            ]),
        // Rows that can't exist without each other.
        ConstraintWorld(
            schema: """
                CREATE TABLE team(id INTEGER PRIMARY KEY,
                  lead INTEGER NOT NULL REFERENCES person(id) DEFERRABLE INITIALLY DEFERRED,
                  name TEXT UNIQUE);
                CREATE TABLE person(id INTEGER PRIMARY KEY, team INTEGER NOT NULL REFERENCES team(id) ON DELETE CASCADE
                  DEFERRABLE INITIALLY DEFERRED, name TEXT);
                CREATE TABLE knot(name TEXT PRIMARY KEY NOT NULL,
                  next TEXT NOT NULL REFERENCES knot(name) ON DELETE CASCADE
                  DEFERRABLE INITIALLY DEFERRED);
                """,
            tables: [
                Table(name: "team", columns: [("name", words + ["NULL"]), ("lead", ["?ROW(person.id)"])]),
                Table(name: "person", columns: [("name", words), ("team", ["?ROW(team.id)"])]),
                Table(name: "knot", columns: [("name", words), ("next", ["?ROW(knot.name)"])]),
            ],
            scripts: [
                """
                INSERT INTO team(id, lead, name) VALUES (10?N, 20?N, 't?N');
                INSERT INTO person(id, team, name) VALUES (20?N, 10?N, 'p')
                """,
                "INSERT INTO knot VALUES ('a?N', 'b?N'), ('b?N', 'a?N')",
                "INSERT INTO knot VALUES ('x', 'y'), ('y', 'z'), ('z', 'x')",
            ]),
        ConstraintWorld(
            schema: """
                CREATE TABLE user(id INTEGER PRIMARY KEY, email TEXT UNIQUE COLLATE NOCASE, nick TEXT UNIQUE);
                CREATE TABLE mail(id INTEGER PRIMARY KEY,
                  to_ TEXT NOT NULL REFERENCES user(email) ON DELETE CASCADE ON UPDATE CASCADE,
                  cc TEXT REFERENCES user(nick) ON DELETE SET NULL ON UPDATE CASCADE,
                  reply INTEGER UNIQUE REFERENCES mail(id));
                """,
            tables: [
                Table(
                    name: "user",
                    columns: [("id", few + ["NULL"]), ("email", words + ["NULL"]), ("nick", words + ["NULL"])]),
                Table(
                    name: "mail",
                    columns: [
                        ("id", few + ["NULL"]), ("to_", ["?ROW(user.email)"]), ("cc", ["?ROW(user.nick)", "NULL"]),
                        ("reply", ["?ROW(mail.id)", "NULL"]),
                    ]),
            ]),
        // IDs that are made from other rows' IDs.
        ConstraintWorld(
            schema: """
                CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
                CREATE TABLE profile(id INTEGER PRIMARY KEY REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE,
                  bio TEXT UNIQUE);
                CREATE TABLE member(person INTEGER NOT NULL REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE,
                  club TEXT NOT NULL, number INT UNIQUE, PRIMARY KEY (person, club)) WITHOUT ROWID;
                """,
            tables: [
                Table(name: "person", columns: [("id", few + ["NULL"]), ("name", words)]),
                Table(
                    name: "profile",
                    columns: [("id", ["coalesce(?ROW(person.id), 'none')"]), ("bio", words + ["NULL"])]),
                Table(
                    name: "member",
                    columns: [("person", ["?ROW(person.id)"]), ("club", words), ("number", few + ["NULL"])]),
            ]),
    ]

    // MARK: Statements

    /// - Parameter keepsKeys: true if the program enforces foreign keys.
    func statement(_ random: inout SplitMix, keepsKeys: Bool) -> String {
        if !scripts.isEmpty, random.once(in: 3) { return fill(random.pick(scripts), &random) }
        let table = random.pick(tables)
        switch random.below(20) {
        case 0...8:
            let verb = random.pick(["INSERT", "INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE"])
            let columns = table.columns.filter { $0.values.count < 3 || !random.once(in: 6) }
            guard !columns.isEmpty else { return "SELECT 1" }
            let values = columns.map { fill(random.pick($0.values), &random) }
            let upsert =
                verb == "INSERT" && random.once(in: 4)
                ? " ON CONFLICT DO UPDATE SET \(assignment(table, &random))" : ""
            return
                """
                \(verb) INTO \(table.name)(\(columns.map(\.name).joined(separator: ", ")))
                  VALUES (\(values.joined(separator: ", ")))\(upsert)
                """
        case 9...15:
            let verb = random.pick(["UPDATE", "UPDATE OR IGNORE", "UPDATE OR REPLACE"])
            let sets = Set((0...random.below(2)).map { _ in assignment(table, &random) })
            var seen: Set<Substring> = []
            let distinct = sets.sorted().filter { seen.insert($0.prefix { $0 != " " }).inserted }
            return "\(verb) \(table.name) SET \(distinct.joined(separator: ", ")) WHERE \(condition(table, &random))"
        default: return "DELETE FROM \(table.name) WHERE \(condition(table, &random))"
        }
    }

    private func assignment(_ table: Table, _ random: inout SplitMix) -> String {
        let column = random.pick(table.columns)
        // SQLite can assign an integer key, but it can't be set to NULL.
        let values = column.name == "id" ? column.values.filter { $0 != "NULL" } : column.values
        return "\(column.name) = \(fill(random.pick(values), &random))"
    }

    private func condition(_ table: Table, _ random: inout SplitMix) -> String {
        let column = random.pick(table.columns)
        return "\(column.name) IS \(fill(random.pick(column.values), &random))"
    }

    private func fill(_ text: String, _ random: inout SplitMix) -> String {
        let number = random.below(5)
        var text = text.replacing("?N", with: "\(number)")
        while let match = text.firstMatch(of: /\?ROW\((\w+)\.(\w+)\)/) {
            let (table, column) = (match.output.1, match.output.2)
            let order = "(unicode(\(column)) * 7 + \(number * 3)) % 11, \(column)"
            text.replaceSubrange(
                match.range,
                with: "(SELECT \(column) FROM \(table) WHERE \(column) IS NOT NULL ORDER BY \(order) LIMIT 1)")
        }
        return text
    }
}
