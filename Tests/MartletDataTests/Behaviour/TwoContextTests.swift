import Foundation
import MartletData
import MartletStore
import SwiftData
import Testing

/// Two contexts that work on the same models.
struct TwoContextTests {
    let container: ModelContainer
    let first: ModelContext
    let second: ModelContext
    let mine: Sample
    let theirs: Sample

    init() throws {
        container = try sampleContainer()
        first = ModelContext(container)
        second = ModelContext(container)
        mine = Sample(1, text: "old", owner: Owner("a"))
        first.insert(mine)
        try first.save()
        theirs = try #require(try second.all(Sample.self).first)
    }

    private func stored() throws -> [Sample] { try container.reader().all(Sample.self) }

    @Test func eachContextHasItsOwnObject() throws {
        #expect(mine !== theirs)
        #expect(mine != theirs)
        #expect(mine.persistentModelID == theirs.persistentModelID)
        #expect(theirs.owner !== mine.owner)
        mine.text = "new"
        #expect(theirs.text == "old")
    }

    @Test func theNextFetchUpdatesAStaleObject() throws {
        mine.text = "new"
        try first.save()
        #expect(theirs.text == "old")
        #expect(try second.all(Sample.self).first === theirs)
        #expect(theirs.text == "new")
    }

    @Test func aFetchKeepsChangesOfAStaleObject() throws {
        mine.text = "new"
        mine.number = 2
        try first.save()
        theirs.text = "mine"
        _ = try second.all(Sample.self)
        #expect(theirs.text == "mine")
        try second.save()
        _ = try second.all(Sample.self)
        #expect(theirs.number == 2)
        #expect(try stored().map(\.text) == ["mine"])
    }

    @Test func concurrentChangesOfDifferentAttributesAreBothKept() throws {
        mine.text = "new"
        theirs.number = 2
        try first.save()
        try second.save()
        let found = try #require(try stored().first)
        #expect(found.text == "new")
        #expect(found.number == 2)
    }

    @Test func theLaterSaveOfTheSameAttributeWins() throws {
        mine.text = "first"
        theirs.text = "second"
        try second.save()
        try first.save()
        #expect(try stored().map(\.text) == ["first"])
        _ = try second.all(Sample.self)
        #expect(theirs.text == "first")
    }

    @Test func aSaveSkipsAModelDeletedElsewhereAndSavesTheRest() throws {
        let owner = try #require(theirs.owner)
        first.delete(mine)
        try first.save()
        theirs.text = "new"
        owner.rank = 7
        second.insert(Sample(2))
        let updated = try updates(of: second) { try second.save() }
        #expect(!second.hasChanges)
        #expect(theirs.isDeleted && theirs.text == "new")
        #expect(updated == [owner.persistentModelID])
        #expect(try stored().map(\.number) == [2])
        #expect(try container.reader().all(Owner.self).map(\.rank) == [7])
        #expect(try second.all(Sample.self).map(\.number) == [2])
    }

    /// The updated identifiers in the notification of a save.
    private func updates(
        of context: ModelContext, _ save: () throws -> Void
    ) rethrows -> Set<PersistentIdentifier> {
        nonisolated(unsafe) var updated: Set<PersistentIdentifier> = []
        let observer = NotificationCenter.default.addObserver(
            forName: ModelContext.didSave, object: context, queue: nil
        ) { notification in
            let key = ModelContext.NotificationKey.updatedIdentifiers
            updated = notification.userInfo?[key] as? Set<PersistentIdentifier> ?? []
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        try save()
        return updated
    }

    @Test func aSaveSkipsRelationshipsOfAModelDeletedElsewhere() throws {
        let tag = Tag("a")
        second.insert(tag)
        first.delete(mine)
        try first.save()
        theirs.tags = [tag]
        try second.save()
        #expect(theirs.isDeleted)
        #expect(try container.reader().all(Tag.self).map(\.samples.count) == [0])
    }

    @Test func deletingAModelThatIsDeletedElsewhereIsNoError() throws {
        first.delete(mine)
        try first.save()
        second.delete(theirs)
        try second.save()
        #expect(try stored().isEmpty)
    }

    @Test func deletingAModelThatIsChangedElsewhereDeletesIt() throws {
        mine.text = "new"
        try first.save()
        second.delete(theirs)
        try second.save()
        #expect(try stored().isEmpty)
        mine.text = "newer"
        try first.save()
        #expect(mine.isDeleted)
        #expect(try stored().isEmpty)
    }

    @Test func aModelDeletedElsewhereKeepsItsLastValues() throws {
        _ = theirs.owner
        first.delete(mine)
        try first.save()
        #expect(theirs.text == "old")
        #expect(theirs.owner?.name == "a")
        #expect(theirs.tags.isEmpty)
        #expect(second.existingModel(for: theirs.persistentModelID) === theirs)
    }

    @Test func aReferenceToAModelDeletedElsewhereBecomesNil() throws {
        let owner = try #require(theirs.owner)
        try first.delete(model: Owner.self)
        try first.save()
        let new = second.inserting(Sample(2, owner: owner))
        try second.save()
        #expect(new.owner == nil && owner.isDeleted)
        #expect(try stored().map(\.number) == [1, 2])
        #expect(try stored().allSatisfy { $0.owner == nil })
    }

    @Test func aSaveSkipsALinkToAModelDeletedElsewhere() throws {
        let (kept, gone) = (Tag("kept"), Tag("gone"))
        second.insert(kept)
        second.insert(gone)
        try second.save()
        try first.delete(model: Tag.self, where: #Predicate { $0.name == "gone" })
        try first.save()
        theirs.tags = [kept, gone]
        try second.save()
        #expect(gone.isDeleted)
        #expect(try stored().flatMap(\.tags).map(\.name) == ["kept"])
    }

    @Test func aFetchShowsARelationshipChangedElsewhere() throws {
        let owner = try #require(theirs.owner)
        #expect(owner.samples.count == 1)
        first.insert(Sample(2, owner: mine.owner))
        try first.save()
        #expect(owner.samples.count == 1)
        _ = try second.all(Owner.self)
        #expect(owner.samples.map(\.number) == [1, 2])
    }

    @Test func aModelMovedElsewhereCanBeRemovedFromItsNewList() throws {
        #expect(theirs.owner?.name == "a")
        mine.owner = Owner("b")
        try first.save()
        let owners = try second.fetch(FetchDescriptor<Owner>(predicate: #Predicate { $0.name == "b" }))
        let owner = try #require(owners.first)
        #expect(owner.samples == [theirs])
        #expect(theirs.owner === owner)
        owner.samples = []
        try second.save()
        #expect(try stored().map { $0.owner?.name } == [nil])
    }

    @Test func concurrentChangesOfAListAreBothKept() throws {
        let owner = try #require(theirs.owner)
        mine.owner?.samples.append(Sample(2))
        owner.samples.append(Sample(3))
        try first.save()
        try second.save()
        let found = try #require(try container.reader().all(Owner.self).first)
        #expect(found.samples.map(\.number).sorted() == [1, 2, 3])
    }

    @Test func aLinkAddedByBothContextsIsSavedOnce() throws {
        let tag = first.inserting(Tag("x"))
        try first.save()
        let same = try #require(try second.all(Tag.self).first)
        mine.tags = [tag]
        theirs.tags = [same]
        try first.save()
        try second.save()
        #expect(try stored().first?.tags.count == 1)
    }

    @Test func aUniqueValueInsertedByBothContextsMakesOneModel() throws {
        first.insert(Tag("x"))
        second.insert(Tag("x"))
        try first.save()
        try second.save()
        #expect(try container.reader().fetchCount(FetchDescriptor<Tag>()) == 1)
    }

    @Test func aRelationshipToAModelOfAnotherContextIsRefused() throws {
        let sample = second.inserting(Sample(2))
        sample.owner = mine.owner
        #expect(throws: SwiftDataError.modelOfAnotherContext) { try second.save() }
        second.rollback()
        // The other context is unaffected.
        #expect(!first.hasChanges)
        #expect(mine.owner?.samples == [mine])
        try second.save()
        try first.save()
        #expect(try stored().count == 1)
    }

    @Test func aListWithAModelOfAnotherContextIsRefused() throws {
        let owner = try #require(theirs.owner)
        owner.samples.append(mine)
        #expect(throws: SwiftDataError.modelOfAnotherContext) { try second.save() }
        second.rollback()
        #expect(!first.hasChanges)
        #expect(mine.owner?.samples == [mine])
        #expect(owner.samples == [theirs])
    }

    @Test func deletingAModelOfAnotherContextDoesNothing() throws {
        second.delete(mine)
        #expect(!second.hasChanges)
        #expect(!mine.isDeleted)
    }

    @Test func aModelOfAnotherContainerIsRefused() throws {
        let other = ModelContext(try sampleContainer())
        other.insert(mine)
        #expect(throws: SwiftDataError.modelOfAnotherContext) { try other.save() }
        other.rollback()
        other.insert(Sample(5))
        try other.save()
        #expect(try other.all(Sample.self).map(\.number) == [5])
    }

    @Test func aModelUnknownToTheContainerIsRefused() throws {
        first.insert(Badge(number: 1))
        #expect(throws: SwiftDataError.invalidSchema) { try first.save() }
        #expect(throws: SwiftDataError.invalidSchema) { try first.all(Badge.self) }
        first.rollback()
        mine.text = "new"
        try first.save()
        #expect(try stored().map(\.text) == ["new"])
    }

    @Test func aRollbackInOneContextLeavesTheOther() throws {
        mine.text = "mine"
        theirs.text = "theirs"
        first.rollback()
        #expect(theirs.text == "theirs")
        try second.save()
        #expect(try stored().map(\.text) == ["theirs"])
    }

    @Test func aRolledBackModelHasItsLastReadValuesUntilTheNextFetch() throws {
        mine.text = "new"
        try first.save()
        theirs.number = 5
        second.rollback()
        #expect(theirs.text == "old")
        _ = try second.all(Sample.self)
        #expect(theirs.text == "new")
    }
}
