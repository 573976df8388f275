import Foundation
import MartletStore
import Testing

/// When transactions came into a store, as far as that has to be known.
@Suite struct HistoryArrivalsTests {
    private static let age: Int64 = 1600

    /// One row comes at each time, and has the time as its number.
    @Test func noTransactionSeemsOlderThanItsArrivalAndNoneMuchYounger() throws {
        var arrivals = HistoryArrivals()
        var largest = 0
        for now in 0..<Int64(4000) {
            arrivals.note(newest: now, at: now, age: Self.age)
            largest = max(largest, try JSONEncoder().encode(arrivals).count)
            let limit = now - Self.age
            guard limit >= 0 else {
                #expect(arrivals.last(before: limit) == 0)
                continue
            }
            #expect(arrivals.last(before: limit) <= limit)
            #expect(arrivals.last(before: limit) > limit - Self.age / 16)
        }
        #expect(largest < 1000)
    }

    @Test func theAgeOfWhatWasThereAtTheFirstLookIsItsOwn() {
        var arrivals = HistoryArrivals()
        #expect(arrivals.last(before: 0) == .max)
        arrivals.note(newest: 50, at: 5000, age: Self.age)
        #expect(arrivals.last(before: 5000 - Self.age) == 50)
        arrivals.note(newest: 60, at: 5100, age: Self.age)
        #expect(arrivals.last(before: 5100 - Self.age) == 50)
        #expect(arrivals.last(before: 5100) == 60)
    }

    /// A clock that was far ahead for a moment doesn't keep history until that time.
    @Test func looksFromTheFutureCountAsPresent() {
        var arrivals = HistoryArrivals()
        arrivals.note(newest: 10, at: 1000, age: Self.age)
        arrivals.note(newest: 20, at: 1_000_000, age: Self.age)
        arrivals.note(newest: 30, at: 2000, age: Self.age)
        #expect(arrivals.last(before: 1999) == 10)
        arrivals.note(newest: 40, at: 2000 + Self.age, age: Self.age)
        #expect(arrivals.last(before: 2000) == 20)
        #expect(arrivals.last(before: 2000 + Self.age) == 40)
    }
}
