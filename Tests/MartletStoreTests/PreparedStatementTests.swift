import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Binding of texts and blobs, of which short ones are kept beside the statement.
@Suite struct PreparedStatementTests {
    /// Sizes around those at which the memory of a parameter grows, and at which SQLite copies a value instead.
    private static let sizes = [0, 1, 2, 15, 16, 31, 32, 33, 63, 64, 200, 255, 256, 257, 300, 5000]

    private func text(_ size: Int, _ letter: Character) -> String { String(repeating: letter, count: size) }

    @Test func everyBindReplacesTheValueBefore() throws {
        let queue = try DatabaseQueue()
        var generator = SystemRandomNumberGenerator()
        try queue.write { db in
            let echo = try PreparedStatement(db, "SELECT ?1, ?2, ?3")
            for round in 0..<2000 {
                let letters = ["a", "b", "c", "d"].shuffled(using: &generator).map { Character($0) }
                let first = text(Self.sizes.randomElement(using: &generator) ?? 0, letters[0])
                let second = Array(text(Self.sizes.randomElement(using: &generator) ?? 0, letters[1]).utf8)
                echo.bind(1, text: first)
                echo.bind(2, blob: second)
                if round % 7 == 0 {
                    echo.bindNull(3)
                } else {
                    echo.bind(3, .rawText([0xff, UInt8(round % 100)]))
                }
                let found = try #require(
                    try echo.first { [$0.value(0), $0.value(1), $0.value(2)] }, "round \(round)")
                #expect(
                    found == [
                        .text(first), .blob(second), round % 7 == 0 ? .null : .rawText([0xff, UInt8(round % 100)]),
                    ])
            }
        }
    }

    @Test func aParameterKeepsItsValueFromRunToRun() throws {
        let queue = try DatabaseQueue()
        try queue.write { db in
            try db.execute(sql: "CREATE TABLE item(a TEXT, b BLOB, n INTEGER)")
            let insert = try PreparedStatement(db, "INSERT INTO item VALUES (?1, ?2, ?3)")
            for size in Self.sizes {
                insert.bind(1, text: text(size, "x"))
                // Of another library's type, in memory that is gone after the call.
                insert.bind(2, blob: Data(repeating: 7, count: size))
                for number in 0..<3 {
                    insert.bind(3, Int64(number))
                    try insert.run()
                }
            }
            let kept = try Int.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM item
                    WHERE a = replace(hex(zeroblob(length(a))), '00', 'x')
                    AND hex(b) = replace(hex(zeroblob(length(a))), '00', '07')
                    """)
            #expect(kept == 3 * Self.sizes.count)
            // A statement is compiled again after the schema has changed, and its parameters move to the new one.
            try db.execute(sql: "CREATE TABLE other(a)")
            insert.bind(1, text: "short")
            try insert.run()
            try db.execute(sql: "DROP TABLE other")
            try insert.run()
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM item WHERE a = 'short'") == 2)
        }
    }

    @Test func aRunningStatementKeepsItsValues() throws {
        let queue = try DatabaseQueue()
        try queue.write { db in
            let count = try PreparedStatement(
                db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i, ?1 FROM n")
            count.bind(1, text: "kept")
            #expect(try count.step())
            // SQLite refuses this until the statement is at its end, and keeps the value.
            count.bind(1, text: "late")
            #expect(count.text(1) == "kept")
            #expect(throws: StoreError.self) { try count.step() }
            count.bind(1, text: "late")
            var found: [String] = []
            while try count.step() { found.append(count.text(1)) }
            #expect(found == ["late", "late", "late"])
        }
    }

    /// A program that reads what an insert returns, and forgets to reset it.
    @Test func noInsertIsSkippedAfterARow() throws {
        let queue = try DatabaseQueue()
        try queue.write { db in
            try db.execute(sql: "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT)")
            let insert = try PreparedStatement(db, "INSERT INTO item(name) VALUES (?1) RETURNING id")
            insert.bind(1, text: "a")
            #expect(try insert.step())
            insert.bind(1, text: "b")
            let error = #expect(throws: StoreError.self) { try insert.step() }
            #expect(error?.hint.contains("reset()") == true)
            insert.bind(1, text: "b")
            #expect(try insert.first { $0.integer(0) } == 2)
            #expect(try String.fetchAll(db, sql: "SELECT name FROM item ORDER BY id") == ["a", "b"])
        }
    }

    @Test func aValueThatIsTooLargeIsNotStoredAsNull() throws {
        let queue = try DatabaseQueue()
        try queue.write { db in
            try db.execute(sql: "CREATE TABLE item(value)")
            db.limitValues(to: 1000)
            let insert = try PreparedStatement(db, "INSERT INTO item VALUES (?1)")
            let tooLarge: [Value] = [
                .blob([UInt8](repeating: 1, count: 1001)), .text(text(1001, "x")),
                .rawText([UInt8](repeating: 0xff, count: 1001)),
            ]
            for value in tooLarge {
                insert.bind(1, value)
                #expect(throws: StoreError.self) { try insert.run() }
                // Whoever runs it again must not store NULL either.
                #expect(throws: StoreError.self) { try insert.run() }
                insert.bind(1, value)
                #expect(try !insert.runUnlessConstrained())
                insert.bind(1, blob: [UInt8](repeating: 1, count: 900))
                try insert.run()
            }
            #expect(try Int.fetchAll(db, sql: "SELECT length(value) FROM item") == [900, 900, 900])
        }
    }

    @Test func everyRefusedParameterMustBeBoundBeforeTheNextRun() throws {
        let queue = try DatabaseQueue()
        try queue.write { db in
            db.limitValues(to: 1000)
            let echo = try PreparedStatement(db, "SELECT ?1, ?2")
            for index: Int32 in [1, 2] { echo.bind(index, text: text(1001, "x")) }
            echo.bind(2, text: "b")
            echo.reset()
            let error = #expect(throws: StoreError.self) { try echo.step() }
            #expect(error?.message.contains("Parameter 1 ") == true)
            // The program never ran the statement with the value that was refused.
            echo.bind(1, text: "a")
            #expect(try echo.first { [$0.text(0), $0.text(1)] } == ["a", "b"])
        }
    }

    @Test func aParameterThatTheStatementLacksIsAnError() throws {
        let queue = try DatabaseQueue()
        try queue.write { db in
            let echo = try PreparedStatement(db, "SELECT ?1")
            for index: Int32 in [-1, 0, 2, 1000, .max, .min] {
                echo.bind(index, text: "elsewhere")
                echo.bind(index, blob: [1, 2])
                echo.bind(1, text: "here")
                let error = #expect(throws: StoreError.self) { try echo.step() }
                #expect(error?.message.contains("Parameter \(index) ") == true)
                #expect(try echo.first { $0.text(0) } == "here")
            }
        }
    }
}
