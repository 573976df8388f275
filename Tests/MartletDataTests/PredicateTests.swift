import Foundation
import SwiftData
import Testing

struct PredicateTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try companyContainer()
        context = ModelContext(container)
        let (a, b) = (Company(code: "a", title: "Acme"), Company(code: "b", title: "Bolt"))
        context.insert(a)
        context.insert(b)
        a.employees = [Employee(name: "Ada", age: 36, nickname: "Countess"), Employee(name: "Ben", age: 20)]
        b.employees = [Employee(name: "Cleo", age: 50, nickname: "")]
        context.insert(Employee(name: "Dan", age: 64))
        try context.save()
    }

    private func names(_ predicate: Predicate<Employee>) throws -> String {
        try context.fetch(FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.name)]))
            .map { String($0.name.prefix(1)) }.joined()
    }

    @Test func comparisonsAndLogicBecomeSQL() throws {
        let limit = 36
        #expect(try names(#Predicate { $0.age > limit }) == "CD")
        #expect(try names(#Predicate { $0.age >= limit && $0.age < 60 }) == "AC")
        #expect(try names(#Predicate { $0.age == 20 || !($0.age != 64) }) == "BD")
        #expect(try names(#Predicate { $0.age * 2 - 1 == 39 }) == "B")
        #expect(try names(#Predicate { $0.age / 7 == 5 && $0.age % 7 == 1 }) == "A")
        #expect(try names(#Predicate { -$0.age < -60 }) == "D")
        #expect(try names(#Predicate { $0.age > 40 ? $0.name == "Dan" : $0.name == "Ada" }) == "AD")
    }

    @Test func rangesBecomeSQL() throws {
        let range = 20..<50
        #expect(try names(#Predicate { range.contains($0.age) }) == "AB")
        #expect(try names(#Predicate { (20...50).contains($0.age) }) == "ABC")
    }

    @Test func optionalsBecomeSQL() throws {
        #expect(try names(#Predicate { $0.nickname == nil }) == "BD")
        #expect(try names(#Predicate { $0.nickname != "Countess" }) == "BCD")
        #expect(try names(#Predicate { ($0.nickname ?? "none") == "none" }) == "BD")
        #expect(try names(#Predicate { $0.nickname?.isEmpty == true }) == "C")
        #expect(try names(#Predicate { $0.nickname?.contains("unt") ?? false }) == "A")
        #expect(
            try names(
                #Predicate {
                    if let nickname = $0.nickname { nickname.starts(with: "C") } else { $0.age == 64 }
                }) == "AD")
        #expect(try names(#Predicate { !($0.nickname!.isEmpty) }) == "ABD")
    }

    @Test func searchesInTextsBecomeSQL() throws {
        #expect(try names(#Predicate { $0.name.contains("e") }) == "BC")
        #expect(try names(#Predicate { $0.name.starts(with: "Cl") }) == "C")
        #expect(try names(#Predicate { $0.name.localizedStandardContains("A") }) == "AD")
        let part = ""
        #expect(try names(#Predicate { $0.name.localizedStandardContains(part) }) == "ABCD")
        #expect(try names(#Predicate { $0.name.count == 4 }) == "C")
    }

    @Test func membershipInCapturedListsBecomesSQL() throws {
        let wanted = ["Ada", "Dan", "Zoe"]
        #expect(try names(#Predicate { wanted.contains($0.name) }) == "AD")
        let many = Array(0..<10_000) + [64]
        #expect(try names(#Predicate { many.contains($0.age) }) == "ABCD")
        let nicknames: [String?] = [nil, "Countess"]
        #expect(try names(#Predicate { nicknames.contains($0.nickname) }) == "ABD")
        let none: [String] = []
        #expect(try names(#Predicate { none.contains($0.name) }) == "")
    }

    @Test func pathsThroughRelationshipsBecomeJoins() throws {
        #expect(try names(#Predicate { $0.company?.title == "Acme" }) == "AB")
        #expect(try names(#Predicate { $0.company == nil }) == "D")
        #expect(try names(#Predicate { $0.company?.title != "Acme" }) == "CD")
        let company = try #require(try context.fetch(FetchDescriptor<Company>()).first)
        let id = company.persistentModelID
        #expect(try names(#Predicate { $0.company?.persistentModelID == id }) == "AB")
        let stranger = try companyContainer()
        let other = ModelContext(stranger)
        let foreign = Company(code: "x")
        other.insert(foreign)
        try other.save()
        let foreignID = foreign.persistentModelID
        #expect(try names(#Predicate { $0.company?.persistentModelID == foreignID }) == "")
    }

    private func codes(_ predicate: Predicate<Company>) throws -> String {
        try context.fetch(FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.code)])).map(\.code).joined()
    }

    @Test func questionsAboutRelationshipsBecomeSubqueries() throws {
        #expect(try codes(#Predicate { $0.employees.contains { $0.age < 30 } }) == "a")
        #expect(try codes(#Predicate { $0.employees.allSatisfy { $0.age > 30 } }) == "b")
        #expect(try codes(#Predicate { $0.employees.count == 2 }) == "a")
        #expect(try codes(#Predicate { $0.offices.isEmpty }) == "ab")
        #expect(try codes(#Predicate { $0.employees.filter { $0.age > 30 }.count == 1 }) == "ab")
        #expect(try codes(#Predicate { company in company.employees.contains { $0.name == company.title } }) == "")
    }

    @Test func enumsAndNestedPredicatesBecomeSQL() throws {
        let model = Everything()
        model.colour = .green
        context.insert(model)
        context.insert(Everything())
        try context.save()
        #expect(try context.fetchCount(FetchDescriptor<Everything>(predicate: #Predicate { $0.colour == .green })) == 1)
        let green = Colour.green
        #expect(try context.fetchCount(FetchDescriptor<Everything>(predicate: #Predicate { $0.colour != green })) == 1)
        let old = #Predicate<Employee> { $0.age > 40 }
        let named = #Predicate<Employee> { $0.name.contains("a") }
        #expect(try names(#Predicate { old.evaluate($0) && !named.evaluate($0) }) == "C")
    }

    @Test func whatSQLCannotDoIsRefused() throws {
        #expect(throws: SwiftDataError.unsupportedPredicate) { try names(#Predicate { $0.note == "none" }) }
        #expect(throws: SwiftDataError.unsupportedPredicate) {
            try context.fetch(FetchDescriptor<Everything>(predicate: #Predicate { $0.decimal * 2 > 3 }))
        }
        #expect(throws: SwiftDataError.unsupportedSortDescriptor) {
            try context.fetch(FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.note)]))
        }
    }

    @Test func castsNarrowToASubclass() throws {
        let context = ModelContext(try tripContainer())
        context.insert(BusinessTrip(name: "Fair", perdiem: 80))
        context.insert(PersonalTrip(name: "Sister", reason: .family))
        try context.save()
        let rich = #Predicate<Trip> { (($0 as? BusinessTrip)?.perdiem ?? 0) > 50 }
        #expect(try context.fetch(FetchDescriptor(predicate: rich)).map(\.name) == ["Fair"])
        let family = #Predicate<PersonalTrip> { $0.reason == .family && $0.name == "Sister" }
        #expect(
            try context.fetch(FetchDescriptor(predicate: family, sortBy: [SortDescriptor(\.startDate)])).map(\.name)
                == ["Sister"])
    }
}
