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
        func look() -> KeptStatements { container.store.database.inDatabase { KeptStatements($0) } }
        for round in 1...2 { try work(round) }
        let first = look()
        try work(3)
        let before = look()
        for round in 4...6 { try work(round) }
        let regular = before.run(since: first)
        #expect(regular.count > 3)
        #expect(look().recompiled(since: before).intersection(regular) == [])
    }
}
