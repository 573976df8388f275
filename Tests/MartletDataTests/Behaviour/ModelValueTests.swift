import Foundation
import GRDB
import MartletData
import MartletStore
import SwiftData
import Testing

/// Values at the limits of each type survive a round trip.
struct ModelValueTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try sampleContainer()
        context = ModelContext(container)
    }

    /// Saves a model, and fetches it again in another context.
    private func trip(_ change: (Sample) -> Void) throws -> Sample {
        let sample = context.inserting(Sample(0))
        change(sample)
        try context.save()
        return try #require(try container.reader().all(Sample.self).last)
    }

    @Test(arguments: [Int.min, -1, 0, .max]) func integersAreExact(_ number: Int) throws {
        #expect(try trip { $0.number = number }.number == number)
        #expect(try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.number == number })) == 1)
    }

    @Test(arguments: [UInt64(1) << 63, .max, (1 << 63) - 1]) func unsignedIntegersAreExact(_ number: UInt64) throws {
        #expect(try trip { $0.big = number }.big == number)
        #expect(try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.big == number })) == 1)
    }

    @Test(arguments: [Double.infinity, -.infinity, .leastNonzeroMagnitude, .greatestFiniteMagnitude, -0.1, 0.1])
    func realsAreExact(_ number: Double) throws {
        let found = try trip {
            $0.ratio = number
            $0.maybe = number
        }
        #expect(found.ratio.bitPattern == number.bitPattern)
        #expect(found.maybe?.bitPattern == number.bitPattern)
    }

    @Test func aSaveRefusesNaNThatMemoryKeeps() throws {
        let sample = context.inserting(Sample(1))
        sample.ratio = .nan
        #expect(sample.ratio.isNaN)
        #expect(throws: SwiftDataError.modelValidationFailure) { try context.save() }
        sample.ratio = 0.5
        try context.save()
        #expect(try container.reader().all(Sample.self).map(\.ratio) == [0.5])
    }

    @Test func nanDoesNotSilentlyBecomeNil() throws {
        let sample = context.inserting(Sample(1))
        sample.maybe = .nan
        #expect(sample.maybe?.isNaN == true)
        #expect(throws: SwiftDataError.modelValidationFailure) { try context.save() }
        sample.maybe = nil
        try context.save()
        sample.date = Date(timeIntervalSince1970: .nan)
        #expect(throws: SwiftDataError.modelValidationFailure) { try context.save() }
    }

    @Test(arguments: [
        Date.distantPast, .distantFuture, Date(timeIntervalSince1970: -62_135_596_800),
        Date(timeIntervalSince1970: -0.25), Date(timeIntervalSince1970: 1_700_000_000.123456),
    ]) func datesAreExact(_ date: Date) throws {
        #expect(try trip { $0.date = date }.date == date)
        #expect(try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.date == date })) == 1)
    }

    @Test func theCurrentDateFindsItself() throws {
        let now = Date.now
        let sample = try trip { $0.date = now }
        #expect(abs(sample.date.timeIntervalSince(now)) < 0.000_000_5)
        #expect(try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.date == now })) == 1)
        let kept = sample.date
        #expect(try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.date == kept })) == 1)
    }

    @Test func datesBefore1970AreOrdered() throws {
        for seconds in [-3.5, -1e9, 0, -0.5] {
            let sample = context.inserting(Sample(Int(seconds)))
            sample.date = Date(timeIntervalSince1970: seconds)
        }
        try context.save()
        let found = try context.fetch(FetchDescriptor<Sample>(sortBy: [SortDescriptor(\.date)]))
        #expect(found.map(\.date.timeIntervalSince1970) == [-1e9, -3.5, -0.5, 0])
    }

    @Test func dataOfMegabytesSurvivesASave() throws {
        let data = Data((0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        #expect(try trip { $0.data = data }.data == data)
        #expect(try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.data == data })) == 1)
    }

    @Test func emptyDataIsNotNil() throws {
        #expect(try trip { $0.data = Data() }.data == Data())
        #expect(try trip { $0.data = nil }.data == nil)
        let empty = Data()
        #expect(try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.data == nil })) == 1)
        #expect(try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.data == empty })) == 1)
    }

    @Test func aSliceOfDataSurvivesASave() throws {
        let data = Data([1, 2, 3, 4, 5])[2...3]
        #expect(try trip { $0.data = data }.data == Data([3, 4]))
    }

    @Test func emptyTextIsNotNil() throws {
        #expect(try trip { $0.note = "" }.note == "")
        #expect(try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.note == nil })) == 0)
        #expect(try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.note == "" })) == 1)
    }

    @Test(arguments: [Colour?.none, .red, .green]) func optionalEnumsSurviveASave(_ colour: Colour?) throws {
        #expect(try trip { $0.otherColour = colour }.otherColour == colour)
        #expect(
            try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.otherColour == colour })) == 1)
    }

    @Test func aForeignValueOfAnotherTypeIsAnErrorThatNamesItsProperty() throws {
        try container.store.write { try $0.execute(sql: "INSERT INTO Sample(number, text) VALUES ('seven', 'a')") }
        do {
            _ = try context.all(Sample.self)
            Issue.record("The fetch went well.")
        } catch let error as SwiftDataError {
            #expect(error == .corruptValue)
            #expect(error.message.contains("Sample.number of row 1"))
            #expect(!error.message.contains("seven"))
        }
        // Correcting the value makes the row readable again.
        try container.store.write { try $0.execute(sql: "UPDATE Sample SET number = 7.0") }
        #expect(try context.all(Sample.self).map(\.number) == [7])
    }

    @Test func anOverflowingNumberIsAnErrorAndDoesNotWrap() throws {
        let container = try companyContainer()
        try container.store.write { try $0.execute(sql: "INSERT INTO Everything(small) VALUES (300)") }
        #expect(throws: SwiftDataError.corruptValue) { try container.reader().all(Everything.self) }
    }
}
