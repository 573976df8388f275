import Foundation
import GRDB
import MartletData
import MartletStore
import MartletTestSupport
import SwiftData
import Testing

/// A context's statements are compiled once.
struct KeptStatementTests {
    @Test func fetchingAndSavingCompileNoStatementAnew() throws {
        let container = try companyContainer()
        let context = ModelContext(container)
        func work(_ round: Int) throws {
            context.insert(Employee(name: "\(round)", age: round))
            try context.save()
            let old = try context.fetch(FetchDescriptor<Employee>(predicate: #Predicate { $0.age < round }))
            old.first?.age -= 1
            try context.save()
            _ = try context.fetchCount(FetchDescriptor<Employee>(predicate: #Predicate { $0.age < round }))
            _ = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        }
        for round in 1...3 { try work(round) }
        let before = container.store.database.inDatabase(\.recompilations)
        #expect(before.statements > 3)
        for round in 4...6 { try work(round) }
        let after = container.store.database.inDatabase(\.recompilations)
        #expect(after.count == before.count)
    }
}
