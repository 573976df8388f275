import Foundation
import MartletData
import SwiftData
import Testing

/// Identifiers, and the state of models in a context.
struct ModelIdentityTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try sampleContainer()
        context = ModelContext(container)
    }

    @Test func aNewModelHasATemporaryIdentifierUntilTheSave() throws {
        let sample = Sample(1)
        let before = sample.persistentModelID
        #expect(before.storeIdentifier == nil)
        #expect(before.entityName == "Sample")
        context.insert(sample)
        #expect(sample.persistentModelID == before)
        #expect(sample.id == before)
        try context.save()
        #expect(sample.persistentModelID != before)
        #expect(sample.persistentModelID.storeIdentifier != nil)
    }

    @Test func temporaryIdentifiersDiffer() {
        #expect(Sample(1).persistentModelID != Sample(1).persistentModelID)
    }

    @Test func bothIdentifiersFindASavedModel() throws {
        let sample = context.inserting(Sample(1))
        let temporary = sample.persistentModelID
        #expect(context.model(for: temporary) as? Sample === sample)
        try context.save()
        #expect(context.model(for: temporary) as? Sample === sample)
        #expect(context.model(for: sample.persistentModelID) as? Sample === sample)
        let registered: Sample? = context.registeredModel(for: temporary)
        #expect(registered === sample)
        // Another context doesn't know the temporary identifier.
        let other: Sample? = container.reader().registeredModel(for: temporary)
        #expect(other == nil)
    }

    @Test func aRolledBackInsertIsNotFoundByItsIdentifier() throws {
        let sample = context.inserting(Sample(1))
        let temporary = sample.persistentModelID
        context.rollback()
        #expect(context.existingModel(for: temporary) == nil)
        #expect(sample.persistentModelID == temporary)
    }

    @Test func identifiersAreEqualAndHashEquallyInEveryContext() throws {
        let sample = context.inserting(Sample(1))
        try context.save()
        let other = try #require(try container.reader().all(Sample.self).first)
        #expect(other.persistentModelID == sample.persistentModelID)
        #expect(Set([other.persistentModelID, sample.persistentModelID]).count == 1)
        #expect(Set([other, sample]).count == 2)
    }

    @Test func aDecodedIdentifierFindsTheModelInAnotherContainer() throws {
        try withTemporaryFolder { folder in
            let configuration = ModelConfiguration(url: folder.appending(path: "a.store"))
            let context = ModelContext(try sampleContainer(configuration))
            let sample = context.inserting(Sample(7))
            try context.save()
            let data = try JSONEncoder().encode(["id": sample.persistentModelID])
            let decoded = try JSONDecoder().decode([String: PersistentIdentifier].self, from: data)
            #expect(decoded["id"] == sample.persistentModelID)
            let other = ModelContext(try sampleContainer(configuration))
            #expect((other.model(for: try #require(decoded["id"])) as? Sample)?.number == 7)
        }
    }

    @Test func anIdentifierOfAnotherStoreFindsNothing() throws {
        let stranger = ModelContext(try sampleContainer())
        let foreign = stranger.inserting(Sample(1))
        context.insert(Sample(2))
        try stranger.save()
        try context.save()
        let id = foreign.persistentModelID
        #expect(context.existingModel(for: id) == nil)
        #expect(
            try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.persistentModelID == id })) == 0)
        #expect(
            try context.fetchCount(FetchDescriptor<Sample>(predicate: #Predicate { $0.persistentModelID != id })) == 1)
    }

    /// The rows of all three have the same number.
    @Test(arguments: [false, true]) func anIdentifierOfAnotherEntitySelectsNothing(isSaved: Bool) throws {
        let owner = context.inserting(Owner("a"))
        let sample = context.inserting(Sample(1, owner: owner))
        let tag = Tag("x")
        sample.tags = [tag]
        if isSaved { try context.save() }
        let (own, ownersID, tagsID) = (sample.persistentModelID, owner.persistentModelID, tag.persistentModelID)
        func numbers(_ predicate: Predicate<Sample>) throws -> [Int] {
            try context.fetch(FetchDescriptor(predicate: predicate)).map(\.number)
        }
        #expect(try numbers(#Predicate { $0.persistentModelID == ownersID }) == [])
        #expect(try numbers(#Predicate { $0.persistentModelID != ownersID }) == [1])
        #expect(try numbers(#Predicate { $0.owner?.persistentModelID == tagsID }) == [])
        #expect(try numbers(#Predicate { $0.owner?.persistentModelID != tagsID }) == [1])
        #expect(try numbers(#Predicate { ($0.owner?.persistentModelID ?? own) == tagsID }) == [])
        #expect(try numbers(#Predicate { $0.persistentModelID == $0.owner!.persistentModelID }) == [])
        #expect(try numbers(#Predicate { $0.tags.contains { $0.persistentModelID == own } }) == [])
        let others = [ownersID, tagsID]
        #expect(try numbers(#Predicate { others.contains($0.persistentModelID) }) == [])
        #expect(try numbers(#Predicate { !others.contains($0.persistentModelID) }) == [1])
        let all = others + [own]
        #expect(try numbers(#Predicate { all.contains($0.persistentModelID) }) == [1])
        #expect(
            try numbers(#Predicate { $0.persistentModelID == own && $0.owner?.persistentModelID == ownersID }) == [1])
        #expect(try numbers(#Predicate { $0.tags.contains { $0.persistentModelID == tagsID } }) == [1])
    }

    /// Another context has deleted the owner before this one looks it up.
    @Test func aRelationshipToAModelThatIsNotThereIsEmpty() throws {
        let owner = context.inserting(Owner("a"))
        context.insert(Sample(1))
        try context.save()
        let id = owner.persistentModelID
        context.delete(owner)
        try context.save()
        let other = ModelContext(container)
        let missing = try #require(other.model(for: id) as? Owner)
        let sample = try #require(try other.all(Sample.self).first)
        sample.owner = missing
        other.insert(Sample(2, owner: missing))
        #expect(sample.owner == nil)
        try other.save()
        #expect(try container.reader().all(Owner.self).isEmpty)
        #expect(try container.reader().all(Sample.self).map { $0.owner == nil } == [true, true])
        other.insert(missing)
        #expect(throws: SwiftDataError.modelNotFound) { try other.save() }
    }

    @Test func aDecodedTemporaryIdentifierStillFindsTheModel() throws {
        let sample = context.inserting(Sample(1))
        let data = try JSONEncoder().encode(sample.persistentModelID)
        let decoded = try JSONDecoder().decode(PersistentIdentifier.self, from: data)
        #expect(decoded == sample.persistentModelID)
        try context.save()
        #expect(context.model(for: decoded) as? Sample === sample)
    }

    @Test func aDamagedIdentifierIsADecodingError() {
        for text in ["{}", "[]", "7", #"{"entityName":"Sample"}"#, #"{"entityName":"Sample","key":{"row":{}}}"#] {
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(PersistentIdentifier.self, from: Data(text.utf8))
            }
        }
    }

    @Test func theNumberOfADeletedRowIsNotReused() throws {
        let first = context.inserting(Sample(1))
        try context.save()
        let id = first.persistentModelID
        context.delete(first)
        try context.save()
        let second = context.inserting(Sample(2))
        try context.save()
        #expect(second.persistentModelID != id)
        #expect(first.persistentModelID == id)
        #expect(context.existingModel(for: id) == nil)
    }

    @Test func aReleasedObjectIsReadAgain() throws {
        context.insert(Sample(1))
        try context.save()
        weak var forgotten: Sample?
        do {
            let sample = try context.all(Sample.self).first
            forgotten = sample
            #expect(forgotten != nil)
        }
        #expect(forgotten == nil)
        #expect(try context.all(Sample.self).map(\.number) == [1])
    }

    @Test func aContextReleasesModelsThatReferToEachOther() throws {
        weak var saved: Sample?
        for round in 0..<11 {
            let owner = context.inserting(Owner("\(round)"))
            for number in 0..<1_000 {
                let sample = context.inserting(Sample(number, owner: owner))
                if round == 0, number == 0 { saved = sample }
            }
            try context.save()
        }
        #expect(saved == nil)
        let reader = container.reader()
        weak var read: Sample?
        for owner in try reader.all(Owner.self) {
            for sample in owner.samples where sample.owner === owner {
                if read == nil { read = sample }
            }
        }
        #expect(read != nil)
        #expect(try reader.fetchCount(FetchDescriptor<Sample>()) == 11_000)
        #expect(read == nil)
    }

    @Test func aLargeSaveDoesNotKeepTheModelsOfLaterOnes() throws {
        func save(_ count: Int) throws {
            let owner = context.inserting(Owner("a"))
            for number in 0..<count { context.insert(Sample(number, owner: owner)) }
            try context.save()
        }
        try save(12_000)
        weak var later: Sample?
        do {
            let sample = context.inserting(Sample(0, owner: context.inserting(Owner("b"))))
            later = sample
            try context.save()
            #expect(sample.owner?.samples == [sample])
        }
        #expect(later != nil)
        for _ in 0..<11 { try save(1_000) }
        #expect(later == nil)
    }

    @Test func aLongChainOfModelsIsReleased() {
        weak var first: Owner?
        do {
            var last = Owner("0")
            first = last
            for number in 1..<100_000 { last = Owner("\(number)", boss: last) }
        }
        #expect(first == nil)
    }

    @Test func theContextKeepsAChangedObjectUntilTheSave() throws {
        context.insert(Sample(1))
        try context.save()
        try context.all(Sample.self).first?.number = 2
        #expect(context.changedModelsArray.count == 1)
        try context.save()
        #expect(try container.reader().all(Sample.self).map(\.number) == [2])
    }

    // MARK: Pending changes

    private func state() -> [Int] {
        [context.insertedModelsArray, context.changedModelsArray, context.deletedModelsArray].map(\.count)
    }

    @Test func anEmptyContextHasNoChanges() throws {
        #expect(!context.hasChanges)
        #expect(state() == [0, 0, 0])
        try context.save()
        context.rollback()
        #expect(try context.history().isEmpty)
    }

    @Test func aModelIsInOneOfTheArraysAtATime() throws {
        let sample = Sample(1)
        sample.number = 2
        #expect(!sample.hasChanges)
        context.insert(sample)
        #expect(sample.hasChanges)
        sample.number = 3
        #expect(state() == [1, 0, 0])
        try context.save()
        #expect(state() == [0, 0, 0])
        #expect(!sample.hasChanges)
        sample.number = 4
        #expect(state() == [0, 1, 0])
        context.delete(sample)
        #expect(state() == [0, 0, 1])
        #expect(sample.hasChanges)
        context.insert(sample)
        #expect(state() == [0, 1, 0])
        context.delete(sample)
        try context.save()
        #expect(state() == [0, 0, 0])
        #expect(!sample.hasChanges)
        #expect(sample.isDeleted)
    }

    @Test(arguments: [false, true])
    func aNewModelThatIsDeletedAndInsertedAgainIsSaved(appliesRules: Bool) throws {
        let owner = context.inserting(Owner("a"))
        try context.save()
        let sample = context.inserting(Sample(1, owner: owner))
        context.delete(sample)
        #expect(state() == [0, 0, 0])
        // Separates the two.
        if appliesRules { context.processPendingChanges() }
        context.insert(sample)
        #expect(!sample.isDeleted)
        #expect(state() == [1, 0, 0])
        #expect(owner.samples.contains { $0 === sample })
        try context.save()
        let found = try #require(try container.reader().all(Sample.self).first)
        #expect(found.number == 1)
        #expect(found.owner?.name == "a")
    }

    @Test func aNewModelThatIsDeletedInsertedAndDeletedAgainIsNotSaved() throws {
        let sample = context.inserting(Sample(1))
        context.delete(sample)
        context.insert(sample)
        context.delete(sample)
        #expect(state() == [0, 0, 0])
        context.insert(Sample(2))
        try context.save()
        #expect(try container.reader().all(Sample.self).map(\.number) == [2])
    }

    @Test func insertingTwiceInsertsOnce() throws {
        let sample = Sample(1)
        context.insert(sample)
        context.insert(sample)
        #expect(state() == [1, 0, 0])
        try context.save()
        context.insert(sample)
        #expect(state() == [0, 0, 0])
        #expect(try context.fetchCount(FetchDescriptor<Sample>()) == 1)
    }

    @Test func settingARelationshipChangesTheModelThatStoresIt() throws {
        let (sample, tag) = (context.inserting(Sample(1)), context.inserting(Tag("x")))
        try context.save()
        sample.tags = [tag]
        #expect(context.hasChanges)
        #expect(sample.hasChanges)
        try context.save()
        #expect(!context.hasChanges)
        sample.owner = Owner("a")
        #expect(state() == [1, 1, 0])
    }

    @Test func readingChangesNothing() throws {
        let sample = context.inserting(Sample(1, owner: Owner("a")))
        sample.tags = [Tag("x")]
        try context.save()
        let other = ModelContext(container)
        let found = try #require(try other.all(Sample.self).first)
        _ = (found.owner?.samples.count, found.tags.first?.samples.count, found.text, found.owner?.boss)
        #expect(!other.hasChanges)
        #expect(!found.hasChanges)
    }

    @Test func accessingADeletedModelAfterTheSaveIsHarmless() throws {
        let sample = context.inserting(Sample(1, text: "a", owner: Owner("a")))
        try context.save()
        context.delete(sample)
        try context.save()
        #expect(sample.text == "a")
        _ = (sample.owner, sample.tags)
        sample.text = "b"
        sample.owner = nil
        #expect(!context.hasChanges)
        try context.save()
        #expect(try context.fetchCount(FetchDescriptor<Sample>()) == 0)
    }

    // MARK: Transactions

    private struct Stop: Error {}

    @Test func aThrowingTransactionRevertsAllPendingChanges() throws {
        let sample = context.inserting(Sample(1))
        try context.save()
        sample.number = 2
        #expect(throws: Stop.self) {
            try context.transaction {
                sample.number = 3
                context.insert(Sample(4))
                context.delete(sample)
                throw Stop()
            }
        }
        #expect(!context.hasChanges)
        #expect(sample.number == 1)
        #expect(!sample.isDeleted)
        #expect(try container.reader().all(Sample.self).map(\.number) == [1])
    }

    @Test func aTransactionThatCannotBeSavedIsReverted() throws {
        #expect(throws: SwiftDataError.modelValidationFailure) {
            try context.transaction {
                let sample = context.inserting(Sample(1))
                sample.ratio = .nan
            }
        }
        #expect(!context.hasChanges)
        #expect(try context.fetchCount(FetchDescriptor<Sample>()) == 0)
    }

    @Test func aTransactionIsOneTransactionOfTheHistory() throws {
        context.author = "importer"
        try context.transaction {
            for number in 1...3 { context.insert(Sample(number)) }
        }
        let history = try context.history()
        #expect(history.map(\.changes.count) == [3])
        #expect(history.map(\.author) == ["importer"])
    }

    @Test func changesSavedWithinAThrowingTransactionStay() throws {
        #expect(throws: Stop.self) {
            try context.transaction {
                context.insert(Sample(1))
                try context.save()
                context.insert(Sample(2))
                throw Stop()
            }
        }
        #expect(try container.reader().all(Sample.self).map(\.number) == [1])
    }
}
