import Foundation
import GRDB
import MartletData
import MartletStore
import SwiftData
import Testing

/// Another process, which knows SQLite but not Martlet, works on the file of an open container.
struct TwoProcessTests {
    private func elsewhere(_ sql: String, _ url: URL) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        let script =
            "import sqlite3,sys; c=sqlite3.connect(sys.argv[1],timeout=20); c.executescript(sys.argv[2]); "
            + "c.commit(); c.close()"
        process.arguments = ["python3", "-c", script, url.path, sql]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }

    private func withStore(_ body: (ModelContext, URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "a.store")
            let context = ModelContext(try sampleContainer(.init(url: url)))
            context.insert(Sample(1, text: "old", owner: Owner("a")))
            try context.save()
            try body(context, url)
        }
    }

    @Test func theNextFetchFindsItsInsert() throws {
        try withStore { context, url in
            #expect(try context.fetchCount(FetchDescriptor<Sample>()) == 1)
            try elsewhere("INSERT INTO Sample(number, text, owner) VALUES (2, 'theirs', 1)", url)
            #expect(try context.all(Sample.self).map(\.text) == ["old", "theirs"])
            #expect(try context.all(Owner.self).first?.samples.count == 2)
        }
    }

    @Test func theNextFetchUpdatesTheObject() throws {
        try withStore { context, url in
            let sample = try #require(try context.all(Sample.self).first)
            try elsewhere("UPDATE Sample SET text = 'theirs'", url)
            #expect(sample.text == "old")
            _ = try context.all(Sample.self)
            #expect(sample.text == "theirs")
        }
    }

    @Test func aSaveKeepsItsUpdateOfAnotherAttribute() throws {
        try withStore { context, url in
            let sample = try #require(try context.all(Sample.self).first)
            sample.number = 9
            try elsewhere("UPDATE Sample SET text = 'theirs'", url)
            try context.save()
            let found = try #require(try context.container.reader().all(Sample.self).first)
            #expect(found.text == "theirs")
            #expect(found.number == 9)
        }
    }

    @Test func aSaveSkipsAModelThatItDeleted() throws {
        try withStore { context, url in
            let sample = try #require(try context.all(Sample.self).first)
            sample.number = 9
            try elsewhere("DELETE FROM Sample", url)
            try context.save()
            #expect(sample.isDeleted)
            #expect(try context.all(Sample.self).isEmpty)
            context.insert(Sample(2))
            try context.save()
            #expect(try context.all(Sample.self).map(\.number) == [2])
        }
    }

    @Test func aReferenceToARowThatItDeletedIsNil() throws {
        try withStore { context, url in
            try elsewhere("PRAGMA foreign_keys = OFF; DELETE FROM Owner", url)
            let sample = try #require(try context.container.reader().all(Sample.self).first)
            #expect(sample.owner == nil)
            #expect(
                try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.owner?.name == nil })) == 1)
        }
    }

    @Test func anUpsertUpdatesItsRow() throws {
        try withStore { context, url in
            let mine = context.inserting(Tag("x"))
            try elsewhere("INSERT INTO Tag(name) VALUES ('x')", url)
            try context.save()
            #expect(try context.all(Tag.self) == [mine])
        }
    }

    @Test func theHistoryHasItsChangesWithoutAnAuthor() throws {
        try withStore { context, url in
            context.author = "app"
            try elsewhere("INSERT INTO Sample(number) VALUES (2); UPDATE Sample SET text = 'x' WHERE number = 1", url)
            context.insert(Sample(3))
            try context.save()
            let history = try context.history().dropFirst()
            #expect(history.last?.author == "app")
            #expect(history.dropLast().allSatisfy { $0.author == nil })
            #expect(history.dropLast().map(\.changes.count).reduce(0, +) == 2)
        }
    }

    @Test func anIndexAndAColumnThatItAddsAreLeftAlone() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "a.store")
            do { _ = try sampleContainer(.init(url: url)) }
            try elsewhere(
                "ALTER TABLE Sample ADD COLUMN extra TEXT DEFAULT 'e'; CREATE INDEX theirs ON Sample(extra)", url)
            let container = try sampleContainer(.init(url: url))
            let context = ModelContext(container)
            let sample = context.inserting(Sample(1))
            try context.save()
            try elsewhere("UPDATE Sample SET extra = 'changed'", url)
            sample.number = 2
            try context.save()
            let rows = try container.store.database.read {
                try String.fetchAll($0, sql: "SELECT extra FROM Sample INDEXED BY theirs")
            }
            #expect(rows == ["changed"])
        }
    }
}
