import Foundation
import GRDB
import MartletData
import MartletStore
import SwiftData
import Testing

/// Texts that are difficult for C strings, encodings and normalization.
struct TextTests {
    static let texts = [
        "", " ", "a\u{0}b", "\u{0}", "é", "e\u{301}", "👩‍👩‍👧", "🇦🇹", "z\u{335}\u{327}", "\u{FEFF}x", "a\r\nb", "'\"\\",
        "%_*?", "\u{10FFFF}",
    ]
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try sampleContainer()
        context = ModelContext(container)
    }

    private func count(_ predicate: Predicate<Sample>) throws -> Int {
        try context.fetchCount(FetchDescriptor(predicate: predicate))
    }

    @Test(arguments: texts) func textsKeepEveryScalar(_ text: String) throws {
        context.insert(Sample(0, text: text, note: text))
        try context.save()
        let found = try #require(try container.reader().all(Sample.self).first)
        #expect(found.text.unicodeScalars.elementsEqual(text.unicodeScalars))
        #expect(found.note?.unicodeScalars.elementsEqual(text.unicodeScalars) == true)
    }

    @Test(arguments: texts) func textsAreFoundByEqualitySubstringAndPrefix(_ text: String) throws {
        context.insert(Sample(0, text: text))
        context.insert(Sample(1, text: "x" + text + "y"))
        context.insert(Sample(2, text: text + "y"))
        try context.save()
        #expect(try count(#Predicate { $0.text == text }) == 1)
        #expect(try count(#Predicate { $0.text.contains(text) }) == 3)
        #expect(try count(#Predicate { $0.text.starts(with: text) }) == (text.isEmpty ? 3 : 2))
        #expect(try count(#Predicate { $0.text.localizedStandardContains(text) }) >= 1)
        let list = [text, "other"]
        #expect(try count(#Predicate { list.contains($0.text) }) == 1)
    }

    @Test func aTextWithNULIsNotCutAtIt() throws {
        context.insert(Sample(0, text: "a\u{0}b"))
        context.insert(Sample(1, text: "a"))
        try context.save()
        #expect(try count(#Predicate { $0.text == "a" }) == 1)
        #expect(try count(#Predicate { $0.text.starts(with: "a\u{0}b") }) == 1)
        #expect(try count(#Predicate { $0.text.starts(with: "a\u{0}c") }) == 0)
        #expect(try count(#Predicate { $0.text.count == 3 }) == 1)
        #expect(try count(#Predicate { $0.text.localizedStandardContains("B") }) == 1)
    }

    @Test func theLengthCountsCharactersLikeSwift() throws {
        context.insert(Sample(0, text: "👩‍👩‍👧"))
        context.insert(Sample(1, text: "e\u{301}"))
        try context.save()
        #expect(try count(#Predicate { $0.text.count == 1 }) == 2)
    }

    /// As SQLite and its indexes compare them: texts that look alike may differ.
    @Test func textsAreComparedByScalars() throws {
        context.insert(Sample(0, text: "é"))
        try context.save()
        let decomposed = "e\u{301}"
        #expect(try count(#Predicate { $0.text == "é" }) == 1)
        #expect(try count(#Predicate { $0.text == decomposed }) == 0)
        #expect(try count(#Predicate { $0.text.localizedStandardContains(decomposed) }) == 1)
    }

    @Test func textsThatLookAlikeAreDifferentUniqueKeys() throws {
        context.insert(Tag("é"))
        context.insert(Tag("e\u{301}"))
        context.insert(Tag("a\u{0}b"))
        context.insert(Tag("a"))
        try context.save()
        #expect(try container.reader().fetchCount(FetchDescriptor<Tag>()) == 4)
        context.insert(Tag("a\u{0}b"))
        try context.save()
        #expect(try container.reader().fetchCount(FetchDescriptor<Tag>()) == 4)
    }

    @Test func anEmojiIsAUniqueKey() throws {
        context.insert(Tag("👩‍👩‍👧"))
        try context.save()
        let again = context.inserting(Tag("👩‍👩‍👧"))
        try context.save()
        #expect(try container.reader().all(Tag.self).map(\.persistentModelID) == [again.persistentModelID])
    }

    @Test func localizedSearchIgnoresCaseAndAccents() throws {
        context.insert(Sample(0, text: "Crème BRÛLÉE"))
        try context.save()
        #expect(try count(#Predicate { $0.text.localizedStandardContains("creme brulee") }) == 1)
        #expect(try count(#Predicate { $0.text.localizedStandardContains("brulée") }) == 1)
        #expect(try count(#Predicate { $0.text.contains("crème") }) == 0)
    }

    @Test func patternCharactersAreMatchedLiterally() throws {
        context.insert(Sample(0, text: "100%"))
        context.insert(Sample(1, text: "1000"))
        try context.save()
        #expect(try count(#Predicate { $0.text.contains("0%") }) == 1)
        #expect(try count(#Predicate { $0.text.starts(with: "100%") }) == 1)
        #expect(try count(#Predicate { $0.text.localizedStandardContains("_") }) == 0)
    }

    @Test func textThatIsNotUTF8IsAnError() throws {
        context.insert(Sample(0, text: "a"))
        try context.save()
        try container.store.write { try $0.execute(sql: "UPDATE Sample SET text = CAST(x'ff61' AS TEXT)") }
        #expect(throws: SwiftDataError.corruptValue) { try container.reader().all(Sample.self) }
    }

    @Test func aTextOfAMegabyteIsStoredAndSearched() throws {
        let text = String(repeating: "ä", count: 1_000_000) + "needle"
        context.insert(Sample(0, text: text))
        try context.save()
        #expect(try container.reader().all(Sample.self).first?.text == text)
        #expect(try count(#Predicate { $0.text.contains("needle") }) == 1)
    }
}

/// Models in a database of another program, whose encoding is UTF-16.
struct WideTextTests {
    @Test(arguments: ["UTF-16le", "UTF-16be"])
    func predicatesReadTextsOfAUTF16Database(_ encoding: String) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "a.store")
            let program = try DatabaseQueue(path: file.path)
            try program.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA encoding = '\(encoding)'; CREATE TABLE other(x)")
                #expect(try String.fetchOne(db, sql: "PRAGMA encoding") == encoding)
            }
            try program.close()
            let context = ModelContext(try sampleContainer(ModelConfiguration(url: file)))
            for (number, text) in ["Étude", "ab", "a\u{0}b"].enumerated() {
                context.insert(Sample(number, text: text))
            }
            try context.save()
            func numbers(_ predicate: Predicate<Sample>) throws -> [Int] {
                try context.fetch(FetchDescriptor(predicate: predicate)).map(\.number)
            }
            #expect(try numbers(#Predicate { $0.text.localizedStandardContains("etude") }) == [0])
            #expect(try numbers(#Predicate { $0.text.caseInsensitiveCompare("AB") == .orderedSame }) == [1])
            #expect(try numbers(#Predicate { $0.text.count == 2 }) == [1])
            #expect(try numbers(#Predicate { $0.text.starts(with: "a") }) == [1, 2])
            #expect(try numbers(#Predicate { $0.text.contains("b") }) == [1, 2])
        }
    }
}
