import Foundation
import SwiftData
import Testing

/// A relationship with one model at each end.
struct OneToOneTests {
    let container: ModelContainer
    let context: ModelContext
    let ada = Employee(name: "Ada")
    let ben = Employee(name: "Ben")
    let badge = Badge(number: 1)

    init() throws {
        container = try companyContainer()
        context = ModelContext(container)
        context.insert(ada)
        context.insert(ben)
        context.insert(badge)
        ada.badge = badge
        try context.save()
    }

    private func storedHolders() throws -> [String?] {
        try container.reader().fetch(FetchDescriptor<Badge>(sortBy: [SortDescriptor(\.number)]))
            .map { $0.holder?.name }
    }

    @Test func theEndWithoutAColumnIsSaved() throws {
        badge.holder = ben
        #expect(ada.badge == nil)
        #expect(ben.badge === badge)
        try context.save()
        #expect(try storedHolders() == ["Ben"])
    }

    @Test func aNewPartnerReleasesBothFormerOnes() throws {
        let other = context.inserting(Badge(number: 2))
        ben.badge = other
        try context.save()
        ada.badge = other
        #expect(badge.holder == nil)
        #expect(ben.badge == nil)
        #expect(other.holder === ada)
        try context.save()
        #expect(try storedHolders() == [nil, "Ada"])
    }

    @Test func settingNilReleasesTheOtherEnd() throws {
        badge.holder = nil
        #expect(ada.badge == nil)
        try context.save()
        #expect(try storedHolders() == [nil])
        #expect(try container.reader().fetchCount(FetchDescriptor<Badge>()) == 1)
    }

    @Test func partnersCanBeSwapped() throws {
        let other = context.inserting(Badge(number: 2))
        ben.badge = other
        try context.save()
        ada.badge = other
        ben.badge = badge
        try context.save()
        #expect(try storedHolders() == ["Ben", "Ada"])
    }

    @Test func rollbackRestoresThePair() throws {
        ben.badge = badge
        context.rollback()
        #expect(ada.badge === badge)
        #expect(ben.badge == nil)
        #expect(badge.holder === ada)
    }

    @Test func deletingEitherEndReleasesTheOther() throws {
        context.delete(badge)
        try context.save()
        #expect(ada.badge == nil)
        let second = context.inserting(Badge(number: 2))
        second.holder = ben
        try context.save()
        context.delete(ben)
        try context.save()
        #expect(second.holder == nil)
        #expect(try storedHolders() == [nil])
    }

    @Test func unreadPartnersAreReleased() throws {
        let context = ModelContext(container)
        let ben = try #require(
            try context.fetch(FetchDescriptor<Employee>(predicate: #Predicate { $0.name == "Ben" })).first)
        let badge = try #require(try context.all(Badge.self).first)
        ben.badge = badge
        try context.save()
        let found = try container.reader().fetch(FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.name)]))
        #expect(found.map { $0.badge?.number } == [nil, 1])
    }
}
