import Foundation
import MartletStore
import MartletTestSupport
import SwiftData
import Testing

/// Getters can't say that the store could not be read. What a program computes from their default values must not be
/// saved.
struct FailedReadTests {
    /// Calls `body` with a context and the path of its store, which has a company with two employees.
    private func withCompany(_ body: (ModelContext, String) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "c.store")
            let container = try companyContainer(ModelConfiguration(url: url))
            let filling = ModelContext(container)
            let company = Company(code: "c", title: "T")
            for age in [41, 42] { filling.insert(Employee(name: "e\(age)", age: age, company: company)) }
            try filling.save()
            try body(ModelContext(container), url.path)
        }
    }

    /// Another program takes a column away, and gives it back.
    private func without(
        _ column: String, of table: String = "Employee", _ path: String, _ body: () throws -> Void
    ) throws {
        try ForeignProgram.shell.run("ALTER TABLE \(table) RENAME COLUMN \(column) TO away", on: path)
        try body()
        try ForeignProgram.shell.run("ALTER TABLE \(table) RENAME COLUMN away TO \(column)", on: path)
    }

    private func firstEmployee(_ context: ModelContext) throws -> Employee {
        var descriptor = FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.name)])
        descriptor.propertiesToFetch = [\.name]
        return try #require(try context.fetch(descriptor).first)
    }

    @Test func aChangeOfAnAttributeThatCouldNotBeReadIsNotSaved() throws {
        try withCompany { context, path in
            let employee = try firstEmployee(context)
            try without("age", path) { employee.age += 1 }
            let error = #expect(throws: SwiftDataError.saveNotAllowed) { try context.save() }
            #expect(error?.message.contains("Employee.age") == true)
            context.rollback()
            #expect(employee.age == 41)
            employee.age += 1
            try context.save()
            #expect(try ForeignProgram.shell.run("SELECT age FROM Employee ORDER BY age", on: path) == "42\n42\n")
        }
    }

    /// The getter fails, and when the setter looks, the store can be read again.
    @Test func aChangeAfterAFailedGetterIsNotSaved() throws {
        try withCompany { context, path in
            let employee = try firstEmployee(context)
            var age = -1
            try without("age", path) { age = employee.age }
            #expect(age == 0)
            employee.age = age + 1
            #expect(throws: SwiftDataError.saveNotAllowed) { try context.save() }
            context.rollback()
            #expect(employee.age == 41)
        }
    }

    /// What was computed may be anywhere, even in a new model.
    @Test func nothingComputedFromAFailedGetterIsSaved() throws {
        try withCompany { context, path in
            let company = try #require(try context.fetch(FetchDescriptor<Company>()).first)
            try without("age", path) { context.insert(Company(code: "n", title: "\(company.employees.count)")) }
            #expect(company.employees.count == 2)
            #expect(throws: SwiftDataError.saveNotAllowed) { try context.save() }
            #expect(throws: SwiftDataError.saveNotAllowed) { try context.save() }
            context.rollback()
            context.insert(Company(code: "n", title: "\(company.employees.count)"))
            try context.save()
            #expect(try ForeignProgram.shell.run("SELECT title FROM Company ORDER BY title", on: path) == "2\nT\n")
        }
    }

    /// A program that doesn't find a model may insert it again.
    @Test func aModelThatCouldNotBeReadIsNotMissing() throws {
        try withCompany { context, path in
            let identifier = try #require(try context.fetchIdentifiers(FetchDescriptor<Employee>()).first)
            try without("age", path) {
                #expect(context.existingModel(for: identifier) == nil)
                context.insert(Employee(name: "again", age: 1))
            }
            #expect(throws: SwiftDataError.saveNotAllowed) { try context.save() }
            context.rollback()
            #expect(context.existingModel(for: identifier) != nil)
        }
    }

    @Test func aGetterThatFailedReadsAgain() throws {
        try withCompany { context, path in
            let employee = try firstEmployee(context)
            try without("age", path) { #expect(employee.age == 0) }
            #expect(employee.age == 41)
            context.rollback()
            employee.age += 1
            try context.save()
            #expect(try ForeignProgram.shell.run("SELECT age FROM Employee ORDER BY age", on: path) == "42\n42\n")
        }
    }

    @Test func aSetterAfterAFailedGetterKeepsItsValue() throws {
        try withCompany { context, path in
            try ForeignProgram.shell.run("UPDATE Employee SET nickname = 'n'", on: path)
            let employee = try firstEmployee(context)
            try without("age", path) {
                employee.age = 7
                #expect(employee.age == 7)
            }
            #expect(employee.age == 7)
            // Reads everything that the fetch didn't.
            #expect(employee.nickname == "n")
            #expect(employee.age == 7)
            #expect(throws: SwiftDataError.saveNotAllowed) { try context.save() }
            context.rollback()
            #expect(employee.age == 41)
        }
    }

    /// A fetch can throw. Nothing was computed from what it didn't return.
    @Test func aFailedPrefetchThrows() throws {
        try withCompany { context, path in
            var descriptor = FetchDescriptor<Company>()
            descriptor.relationshipKeyPathsForPrefetching = [\.employees]
            try without("age", path) { _ = #expect(throws: StoreError.self) { try context.fetch(descriptor) } }
            try context.save()
            context.insert(Company(code: "n"))
            // With a pending change, each relationship is read by itself.
            try without("age", path) { _ = #expect(throws: StoreError.self) { try context.fetch(descriptor) } }
            try context.save()
            #expect(try ForeignProgram.shell.run("SELECT count(*) FROM Company", on: path) == "2\n")
        }
    }

    /// A save reads what the delete rules change.
    @Test func aSaveThatCouldNotReadForADeleteRuleCanBeTriedAgain() throws {
        try withCompany { context, path in
            let badge = Badge(number: 1)
            context.insert(badge)
            try firstEmployee(context).badge = badge
            try context.save()
            let other = ModelContext(context.container)
            let kept = try #require(try other.fetch(FetchDescriptor<Badge>()).first)
            #expect(kept.holder?.name == "e41")
            other.delete(try firstEmployee(other))
            try without("number", of: "Badge", path) { _ = #expect(throws: StoreError.self) { try other.save() } }
            #expect(kept.holder != nil)
            try other.save()
            #expect(kept.holder == nil)
        }
    }

    /// A save counts the models of relationships that have a limit, those of the former owners, too.
    @Test func aSaveThatCouldNotCountCanBeTriedAgain() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "c.store")
            let container = try ModelContainer(for: Crew.self, configurations: ModelConfiguration(url: url))
            let filling = ModelContext(container)
            let crew = Crew()
            filling.insert(crew)
            crew.sailors = [Sailor(), Sailor()]
            try filling.save()
            let context = ModelContext(container)
            let leaving = try #require(try context.fetch(FetchDescriptor<Sailor>()).first)
            leaving.crew = nil
            try without("name", of: "Sailor", url.path) {
                _ = #expect(throws: StoreError.self) { try context.save() }
            }
            try context.save()
            #expect(try ForeignProgram.shell.run("SELECT count(crew) FROM Sailor", on: url.path) == "1\n")
        }
    }

    @Test func aListThatCouldNotBeReadIsNotReplaced() throws {
        try withCompany { context, path in
            let company = try #require(try context.fetch(FetchDescriptor<Company>()).first)
            var employees: [Employee] = []
            try without("age", path) { employees = company.employees }
            #expect(employees.isEmpty)
            company.employees = employees + [Employee(name: "new", age: 1)]
            #expect(throws: SwiftDataError.saveNotAllowed) { try context.save() }
            context.rollback()
            #expect(company.employees.count == 2)
            company.employees.append(Employee(name: "new", age: 1))
            try context.save()
            let read = "SELECT count(*) FROM Employee WHERE company IS NOT NULL"
            #expect(try ForeignProgram.shell.run(read, on: path) == "3\n")
        }
    }
}
