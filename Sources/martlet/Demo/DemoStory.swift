import Foundation
import MartletAgent
import MartletStore
import MartletSync

/// The story of SampleTrips: three devices, a topic, and what happens between them. Each step checks what it prints.
struct DemoStory {
    let phone: DemoNode
    let tablet: DemoNode
    let edge: DemoNode
    let broker: String
    var others: [DemoNode] { [tablet, edge] }
    var all: [DemoNode] { [phone, tablet, edge] }

    private static let alps = "name = 'Alps' AND start_date = '2027-01-10'"

    func play() throws {
        try addATrip()
        try editDifferentAttributes()
        try editTheSame()
        try useTheWidget()
        try goOffline()
        try deleteATrip()
        try readLocalHistory()
        try compareDigests()
    }

    private func title(_ text: String) { print("\n\(Terminal.coloured(text, .bold))") }
    private func say(_ text: String) { print("  " + Terminal.wrapped(text, after: 2, indent: 10)) }

    private func addATrip() throws {
        title("1. A trip is added on the phone")
        try phone.app(
            """
            INSERT INTO trip(name, start_date, end_date, destination) \
            VALUES ('Warm-up', '2026-12-01', '2026-12-02', 'Ulm')
            """)
        for node in others {
            _ = try node.wait(for: ["Ulm"], from: "SELECT destination FROM trip WHERE name = 'Warm-up'")
        }
        let committed = try phone.app(
            """
            INSERT INTO trip(name, start_date, end_date, destination) \
            VALUES ('Alps', '2027-01-10', '2027-01-17', 'Zermatt');
            INSERT INTO accommodation(trip, name) VALUES (last_insert_rowid(), 'Chalet Edelweiss');
            """)
        say("phone   commits a trip to the Alps with its accommodation, in one transaction")
        let sql = "SELECT t.name, t.destination, a.name FROM trip t JOIN accommodation a ON a.trip = t.id"
        for node in others {
            let seen = try node.wait(for: ["Alps | Zermatt | Chalet Edelweiss"], from: sql)
            say("\(pad(node))shows it \(milliseconds(seen - committed)) after the commit")
        }
    }

    private func editDifferentAttributes() throws {
        title("2. Two devices edit different attributes of one trip")
        try phone.app("UPDATE trip SET destination = 'Saas-Fee' WHERE \(Self.alps)")
        try tablet.app("UPDATE trip SET rating = 5 WHERE \(Self.alps)")
        say("phone   changes the destination, and tablet rates it, at the same time")
        for node in all {
            _ = try node.wait(for: ["Saas-Fee | 5"], from: "SELECT destination, rating FROM trip WHERE \(Self.alps)")
        }
        say("all     show Saas-Fee, rated 5: both edits are kept")
    }

    private func editTheSame() throws {
        title("3. Two devices edit the same attribute")
        phone.disconnect()
        tablet.disconnect()
        try phone.app("UPDATE trip SET destination = 'Grindelwald' WHERE \(Self.alps)")
        // The clock counts milliseconds; the next edit must be later.
        let before = WallClock.milliseconds
        while WallClock.milliseconds <= before + 1 { usleep(200) }
        try tablet.app("UPDATE trip SET destination = 'Davos' WHERE \(Self.alps)")
        say("phone   sets Grindelwald; tablet, which hasn't seen that, sets Davos a little later")
        try phone.connect(to: broker)
        // A third node recognizes two edits as a conflict if the losing one arrives first; the authors always do.
        _ = try edge.wait(for: ["Grindelwald"], from: "SELECT destination FROM trip WHERE \(Self.alps)")
        try tablet.connect(to: broker)
        for node in all { _ = try node.wait(for: ["Davos"], from: "SELECT destination FROM trip WHERE \(Self.alps)") }
        say("all     show Davos: the later edit wins, everywhere")
        for node in all {
            _ = try node.wait(
                for: ["Grindelwald"], from: "SELECT value FROM _martlet_conflicts WHERE kind = 'attribute'")
        }
        say("all     keep Grindelwald in the conflict journal: `martlet conflicts` lists it, and can reapply it")
    }

    private func useTheWidget() throws {
        title("4. A widget that knows nothing about Martlet writes to the phone's file")
        let sql = "UPDATE accommodation SET is_confirmed = 1 WHERE name = 'Chalet Edelweiss'"
        let program = try Widget.run(sql, on: phone.path)
        let committed = ContinuousClock.now
        say("widget  (\(program)) confirms the accommodation")
        for node in others {
            let seen = try node.wait(
                for: ["1"], from: "SELECT is_confirmed FROM accommodation WHERE name = 'Chalet Edelweiss'")
            say("\(pad(node))shows it \(milliseconds(max(.zero, seen - committed))) after the widget ended")
        }
    }

    private func goOffline() throws {
        title("5. The edge box goes offline, and both sides keep working")
        edge.disconnect()
        for number in 1...200 {
            try phone.app(
                """
                INSERT INTO trip(name, start_date, end_date, destination) \
                VALUES ('Phone \(number)', '2027-02-01', '2027-02-02', 'Rome')
                """)
            try edge.app(
                """
                INSERT INTO trip(name, start_date, end_date, destination) \
                VALUES ('Edge \(number)', '2027-03-01', '2027-03-02', 'Oslo')
                """)
        }
        say("phone   adds 200 trips, edge adds 200 trips: both number their rows from the same integer")
        _ = try tablet.wait(for: ["200 | 0"], from: Self.counts)
        try edge.connect(to: broker)
        let began = ContinuousClock.now
        for node in all { _ = try node.wait(for: ["200 | 200"], from: Self.counts) }
        say("all     have all 400 trips \(milliseconds(.now - began)) after the edge box came back")
    }

    private static let counts =
        "SELECT count(*) FILTER (WHERE name LIKE 'Phone %'), count(*) FILTER (WHERE name LIKE 'Edge %') FROM trip"

    private func deleteATrip() throws {
        title("6. The trip is deleted on the tablet")
        try tablet.app("DELETE FROM trip WHERE \(Self.alps)")
        for node in [phone, edge] {
            _ = try node.wait(
                for: ["0 | 0"],
                from: "SELECT (SELECT count(*) FROM trip WHERE \(Self.alps)), (SELECT count(*) FROM accommodation)")
        }
        say("all     no longer have the trip or its accommodation")
        var query = HistoryQuery(author: .equal(TransactionAuthor.sync))
        query.newestFirst = true
        query.entities = ["trip"]
        query.limit = 1
        guard let last = try phone.store.fetchHistory(query).first,
            let tombstone = last.changes.first(where: { $0.entity == "trip" })?.tombstone,
            tombstone["name"] == .text("Alps")
        else { throw DemoFailure("The phone's history has no tombstone of the trip.") }
        say(
            """
            phone   has a tombstone of what was deleted: \(Text.values(tombstone)), by \
            \(last.origin?.name ?? "?")'s \(last.origin?.author ?? "?")
            """
        )
    }

    private func readLocalHistory() throws {
        title("7. A reader of the tablet's history leaves out the sync author")
        let everything = try tablet.store.fetchHistory()
        let local = try tablet.store.fetchHistory(HistoryQuery(author: .notEqual(TransactionAuthor.sync))).filter {
            $0.author != nil
        }
        guard local.allSatisfy({ $0.author == "app" && $0.origin == nil }) else {
            throw DemoFailure("The local history contains remote transactions.")
        }
        guard local.count == 3 else {
            throw DemoFailure("The tablet's app made 3 transactions, but its history has \(local.count).")
        }
        say("tablet  has \(everything.count) transactions in all; its own are these \(local.count):")
        for transaction in local {
            let change = transaction.changes.first { $0.entity == "trip" }
            let values = change.map { $0.kind == .delete ? $0.tombstone : $0.values } ?? [:]
            say("          \(change?.kind.rawValue ?? "") \(change?.entity ?? "") \(Text.values(values))")
        }
    }

    private func compareDigests() throws {
        title("8. Check that all devices agree")
        let deadline = ContinuousClock.now + .seconds(10)
        var digests: [StoreDigest] = []
        repeat {
            digests = try all.map { try StoreDigest.compute($0.store) }
        } while Set(digests.map(\.digest)).count > 1 && ContinuousClock.now < deadline
        for (node, digest) in zip(all, digests) {
            let rows = digest.entities.reduce(0) { $0 + $1.rowCount }
            say("\(pad(node))\(digest.digest)  \(rows) rows")
        }
        guard Set(digests.map(\.digest)).count == 1 else { throw DemoFailure("The digests differ.") }
        say(Terminal.coloured("all digests are equal", .green))
    }

    private func pad(_ node: DemoNode) -> String { node.name.padding(toLength: 8, withPad: " ", startingAt: 0) }

    private func milliseconds(_ duration: Duration) -> String {
        let value = duration / .milliseconds(1)
        return value < 10 ? "\((value * 10).rounded() / 10) ms" : "\(Int(value.rounded())) ms"
    }
}

/// Another program that writes to a store: the sqlite3 shell, or Python.
enum Widget {
    /// - Returns: the name of the program.
    static func run(_ sql: String, on path: String) throws -> String {
        let candidates = [
            ("the sqlite3 shell", ["sqlite3", path, "PRAGMA busy_timeout = 5000; " + sql]),
            (
                "Python",
                [
                    "python3", "-c",
                    "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()", path,
                    sql,
                ]
            ),
        ]
        for (name, arguments) in candidates {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = arguments
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            if process.terminationStatus == 0 { return name }
        }
        throw DemoFailure("Neither sqlite3 nor python3 could write into \(path).")
    }
}
